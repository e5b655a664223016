//! Tests of `congestion`.

mod newreno;
mod rfc9260;
mod usage;
