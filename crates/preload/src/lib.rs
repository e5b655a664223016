//! The library that `rexmit run` preloads: libc's socket calls, with SCTP sockets served by an engine.
//!
//! [`interpose`] has the functions that programs call instead of libc's. It and [`raw`], which calls libc and the
//! kernel, are the only modules with unsafe code. A descriptor is recognised by the abstract name of its socket
//! ([`descriptor`]); [`receive`] and [`send`] are about messages, [`calls`] about everything that the engine is asked
//! for, over [`engine`]. Pointers of the program are plain numbers ([`raw::Address`]): only the kernel follows them, so
//! that a bad one is `EFAULT` and not the end of the program.
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
