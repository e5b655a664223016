//! The library that `rexmit run` preloads: libc's socket calls, with SCTP sockets served by an engine.
//!
//! [`interpose`] has the functions that programs call instead of libc's. It and [`raw`], which calls libc and the
//! kernel (and waits there for room to send), are the only modules with unsafe code. A descriptor is recognised by the abstract name of its socket
//! ([`descriptor`]); [`receive`] and [`send`] handle messages, [`calls`] all requests to the engine, which [`engine`]
//! transports. Pointers of the program are plain numbers ([`raw::Address`]): only the kernel dereferences them, so that
//! an invalid one results in `EFAULT` and not in a crash.
#![cfg(target_os = "linux")]

mod ancillary;
mod calls;
mod descriptor;
mod engine;
mod interpose;
mod raw;
mod receive;
mod send;

/// An `errno`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

pub(crate) type Outcome<T> = Result<T, Errno>;
