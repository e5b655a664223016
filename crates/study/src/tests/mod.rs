//! A study file as a whole: what is refused, with which messages, and which runs it has.

mod claims;
mod figures;
mod files;
mod kit;
mod plans;
