//! A study file as a whole: what is refused, with which words, and what is run.

mod claims;
mod figures;
mod files;
mod kit;
mod plans;
