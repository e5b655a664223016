//! The binary, run as a user or a script runs it.

mod carry;
mod compare;
mod errors;
mod help;
mod identity;
mod kernel;
mod load;
mod pcap;
mod process;
mod qlog;
mod qvis;
mod study;
mod top;
mod traces;
mod tun;
