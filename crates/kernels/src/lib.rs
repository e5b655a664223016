//! Several Linux kernels and rexmit hosts in one virtual time.
//!
//! A kernel is User Mode Linux, an ordinary process, with the boot option `time-travel=ext:`: it asks a scheduler, the
//! [`Simulation`], for each time at which it is to run. Its network device is virtio-net over vhost-user, whose
//! notifications are messages in the same order as everything else, so that frames are sent and received in virtual time.
//! Links are paths of [`rexmit_netsim::path`]; any [`Machine`](rexmit_core::Machine) can be at the other end.
//!
//! Code takes no time in a kernel, except that a program that reads the clock finds it 256 ns later each time; timers
//! expire after the next multiple of 1 µs.
//!
//! For Linux on x86-64; elsewhere this crate is empty.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod clock;
mod config;
mod device;
mod error;
mod frame;
mod host_id;
mod kernel;
mod process;
mod simulation;
mod station;
mod vhost;

pub use config::{KernelConfig, built_kernel};
pub use error::Error;
pub use host_id::HostId;
pub use simulation::Simulation;
pub use station::{MachineConfig, NoMachine};
