//! TUN devices: IP packets exchanged with the kernel of this machine, as a protocol in user space
//! and the layer-3 emulator need them.
//!
//! A [`Tun`] is a network interface of the kernel whose other end is this process: packets that the kernel
//! routes to it are read here, and packets written here arrive at the kernel. The addresses of a
//! [`TunConfig`] are the kernel's; a protocol on this side uses another address of the same network. [`ip`]
//! writes and checks the headers. A [`NetNamespace`] is a network of its own for a device, a thread or a
//! program.
//!
//! ```no_run
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use rexmit::tun::ip::{HeaderConfig, PacketFilter};
//! use rexmit::tun::{AsyncTun, Batch, Tun, TunConfig};
//!
//! let config = TunConfig::default().ipv4(Some(("10.91.0.1".parse()?, 24)));
//! let tun = AsyncTun::new(Tun::open(&config)?)?;
//! // Our side of TCP (6) is 10.91.0.2.
//! let mut filter = PacketFilter::new(6, ["10.91.0.2".parse()?]);
//! let mut batch = Batch::new(tun.mtu());
//! loop {
//!     tun.receive(&mut batch).await?;
//!     for packet in batch.iter() {
//!         if let Some((route, segment)) = filter.accept(packet) {
//!             println!("{} bytes from {}", segment.len(), route.remote);
//!             let answer = b"a segment";
//!             let header = HeaderConfig::new(6).header(route, answer.len())?;
//!             tun.try_send(&header, answer)?;
//!         }
//!     }
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! Devices and namespaces made here are removed with the last handle, and so with the process, however it
//! ends.

mod asynchronous;
mod batch;
mod device;
mod error;
mod interface;
pub mod ip;
mod namespace;

pub use asynchronous::AsyncTun;
pub use batch::Batch;
pub use device::{Tun, TunConfig};
pub use error::TunError;
pub use namespace::{NetNamespace, end_with_parent, enter_user_namespace, may_create_namespaces};
