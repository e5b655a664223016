//! `rexmit lab serve`: the server, and its page in Chromium.

mod browser;
mod questions;
mod server;
