//! Tests of `config`.

mod config;
mod thin;
