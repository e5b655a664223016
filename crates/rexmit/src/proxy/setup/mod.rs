//! Directs the packets of clients to the stack of a proxy, and undoes that.
//!
//! To the kernel, the stack is another host behind a TUN device. For an address of this machine the kernel translates
//! the destination of the clients' packets (DNAT) to the stack's address and that of the answers back; the clients' own
//! addresses stay as they are. For an address that is routed to this machine and belongs to no interface, only a route
//! to the device is made.
//!
//! The changes, in this order, undone in reverse:
//!
//! 1. a TUN device with a private network; gone with the process,
//! 2. rules: the translation; a RST for clients while the device is gone; and, where forwarding was
//!    off, one that keeps this machine from forwarding anything else,
//! 3. forwarding, on that device and on the interface where the clients come in, not elsewhere.
//!
//! Rules have the listening address in their name, by which [`remove`] finds them, also those of a
//! process that was killed. Until then, they are harmless: no packet is forwarded that was not
//! before, and clients are reset.

mod config;
mod error;
mod host;
mod input;
mod iptables;
mod nft;
mod plan;
mod privileges;
mod rules;

pub use config::{DEVICE_PREFIX, Firewall, SetupConfig};
pub use error::SetupError;
pub use plan::{AppliedSetup, Setup, remove};
pub use privileges::keep_needed_capabilities;
