//! The device itself: opened and configured by a library, read and written without blocking.

use std::fs::File;
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rexmit_core::config;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::{Batch, NetNamespace, TunError, interface};

config! {
    /// The configuration of a device.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct TunConfig {
        /// The interface's name, at most 15 bytes. Default `None`: the kernel chooses (`tun0`, …).
        pub name: Option<String>,
        /// The MTU, in bytes, at least [`MIN_MTU`]; for IPv6 at least [`MIN_MTU_IPV6`]. Default 1500.
        pub mtu: u16,
        /// The kernel's IPv4 address and the length of the network's prefix. Default none.
        pub ipv4: Option<(Ipv4Addr, u8)>,
        /// The kernel's IPv6 addresses and the lengths of their prefixes. Default none: IPv6 is then disabled on the
        /// device, so that the kernel sends no multicasts of its own.
        pub ipv6: Vec<(Ipv6Addr, u8)>,
        /// The most packets that wait in the kernel to be read; it drops further ones. Default 1000. In a
        /// [user namespace](super::enter_user_namespace) the kernel always uses 500.
        pub queue_packets: u32,
        /// Whether the device is the default route. Default false. Meant for devices in a namespace of their
        /// own.
        pub is_default_route: bool,
    }
}

impl Default for TunConfig {
    fn default() -> Self {
        Self {
            name: None,
            mtu: 1500,
            ipv4: None,
            ipv6: Vec::new(),
            queue_packets: 1000,
            is_default_route: false,
        }
    }
}

impl TunConfig {
    /// The shortest MTU of a device.
    pub const MIN_MTU: u16 = 68;
    /// The shortest MTU of a device with IPv6 addresses (RFC 8200 §5).
    pub const MIN_MTU_IPV6: u16 = 1280;

    /// # Errors
    /// [`TunError::InvalidConfig`] with a description.
    fn validate(&self) -> Result<(), TunError> {
        let least = if self.ipv6.is_empty() { Self::MIN_MTU } else { Self::MIN_MTU_IPV6 };
        if self.mtu < least {
            let mtu = self.mtu;
            return Err(TunError::InvalidConfig(format!("its MTU is {mtu}, but at least {least}")));
        }
        let is_too_long = |prefix: u8, of: u8| prefix == 0 || prefix > of;
        if self.ipv4.is_some_and(|(_, prefix)| is_too_long(prefix, 32))
            || self.ipv6.iter().any(|(_, prefix)| is_too_long(*prefix, 128))
        {
            return Err(TunError::InvalidConfig("no network has a prefix of that length".into()));
        }
        Ok(())
    }

    fn addresses(&self) -> impl Iterator<Item = (IpAddr, u8)> {
        let v4 = self.ipv4.iter().map(|(address, prefix)| ((*address).into(), *prefix));
        v4.chain(self.ipv6.iter().map(|(address, prefix)| ((*address).into(), *prefix)))
    }
}

/// A TUN device: a network interface of the kernel whose other end is this value. Dropping it removes the
/// interface.
///
/// Packets are IP packets, without anything before them. Reads and writes never block.
pub struct Tun {
    device: SyncDevice,
    name: String,
    mtu: u16,
}

impl Tun {
    /// Creates the interface, with the addresses and MTU of `config`.
    ///
    /// # Errors
    /// See [`TunError`]; the text says what is missing or invalid, and the remedy.
    pub fn open(config: &TunConfig) -> Result<Self, TunError> {
        config.validate()?;
        for (address, prefix) in config.addresses() {
            interface::refuse_taken(address, prefix)?;
        }
        // Only to tell a missing driver from a missing permission.
        File::options().read(true).write(true).open("/dev/net/tun").map_err(TunError::from_node)?;
        let failed = |error| TunError::from_interface(config.name.as_deref(), error);
        let device = builder(config).build_sync().map_err(failed)?;
        device.set_nonblocking(true).map_err(failed)?;
        match device.set_tx_queue_len(config.queue_packets) {
            // The one request that the kernel grants to root of the machine alone, not of a user
            // namespace: the device works as well with a shorter queue.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            result => result.map_err(failed)?,
        }
        let name = device.name().map_err(failed)?;
        if config.ipv6.is_empty() {
            interface::disable_ipv6(&name);
        } else {
            interface::expect_no_routers(&name);
        }
        for (address, prefix) in &config.ipv6 {
            device.add_address_v6(*address, *prefix).map_err(failed)?;
        }
        device.enabled(true).map_err(failed)?;
        if !config.ipv6.is_empty() {
            interface::await_addresses(&name);
        }
        if config.is_default_route {
            let families = (config.ipv4.is_some(), !config.ipv6.is_empty());
            interface::add_default_routes(&name, families).map_err(failed)?;
        }
        Ok(Self { device, name, mtu: config.mtu })
    }

    /// Attaches to an existing device (`ip tuntap add`) without changing it. It needs no privileges if the
    /// device was made for this user. The device stays when this value is dropped.
    ///
    /// # Errors
    /// [`TunError::NoDevice`] if it does not exist; otherwise as [`open`](Self::open).
    pub fn attach(name: &str) -> Result<Self, TunError> {
        if nix::net::if_::if_nametoindex(name).is_err() {
            return Err(TunError::NoDevice { name: name.into() });
        }
        File::options().read(true).write(true).open("/dev/net/tun").map_err(TunError::from_node)?;
        let failed = |error| TunError::from_interface(Some(name), error);
        let device =
            DeviceBuilder::new().name(name).inherit_enable_state().build_sync().map_err(failed)?;
        device.set_nonblocking(true).map_err(failed)?;
        let mtu = device.mtu().map_err(failed)?;
        Ok(Self { device, name: name.into(), mtu })
    }

    /// As [`open`](Self::open), in another network namespace. The device can be used from any
    /// thread, whatever namespace that is in.
    ///
    /// # Errors
    /// As [`open`](Self::open), and when the namespace may not be entered.
    pub fn open_in(namespace: &NetNamespace, config: &TunConfig) -> Result<Self, TunError> {
        namespace.run(|| Self::open(config))?
    }

    /// The interface's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The MTU, in bytes.
    #[must_use]
    pub const fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Reads one packet that the kernel routed to the device, truncated to `packet`. Returns its length.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) without a packet.
    pub fn receive(&self, packet: &mut [u8]) -> io::Result<usize> {
        self.device.recv(packet)
    }

    /// Reads the available packets for which `batch` has room.
    ///
    /// # Errors
    /// As [`receive`](Self::receive); `batch` is empty then.
    pub fn receive_batch(&self, batch: &mut Batch) -> io::Result<()> {
        batch.fill(|slot| self.receive(slot))
    }

    /// Passes one packet to the kernel.
    ///
    /// # Errors
    /// The error of the system, which accepts only IP packets.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.device.send(packet).map(drop)
    }

    /// Passes one packet to the kernel, with header and payload in separate slices.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_parts(&self, header: &[u8], payload: &[u8]) -> io::Result<()> {
        rustix::io::writev(self, &[IoSlice::new(header), IoSlice::new(payload)])?;
        Ok(())
    }
}

fn builder(config: &TunConfig) -> DeviceBuilder {
    let mut builder = DeviceBuilder::new().mtu(config.mtu).enable(false);
    if let Some(name) = &config.name {
        builder = builder.name(name);
    }
    if let Some((address, prefix)) = config.ipv4 {
        builder = builder.ipv4(address, prefix, None);
    }
    builder
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl AsRawFd for Tun {
    fn as_raw_fd(&self) -> RawFd {
        self.device.as_raw_fd()
    }
}

impl std::fmt::Debug for Tun {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, mtu, .. } = self;
        formatter.debug_struct("Tun").field("name", name).field("mtu", mtu).finish_non_exhaustive()
    }
}
