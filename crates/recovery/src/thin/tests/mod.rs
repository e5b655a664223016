//! Tests of `thin`.

mod groups;
mod thin;
