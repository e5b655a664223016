//! The addresses of this host and their changes, as the kernel reports them (rtnetlink(7)).

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::AbortHandle;

/// The groups of rtnetlink(7) for changes of IPv4 and of IPv6 addresses, numbered from 1.
const GROUPS: [u32; 2] = [5, 9];
/// Bytes of the receive buffer: more than the kernel puts into one datagram.
const RECEIVE_BYTES: usize = 1 << 16;
/// The most addresses that are stored, of all interfaces; further ones are ignored.
const MAX_KNOWN: usize = 256;

/// The kernel's list of addresses, kept up to date.
#[derive(Debug)]
pub(crate) struct HostAddresses {
    socket: AsyncFd<Socket>,
    known: Known,
    buffer: Vec<u8>,
}

impl HostAddresses {
    /// Reads the present addresses of the network namespace of this thread.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.set_non_blocking(true)?;
        // Joined before the first list is requested, so that no change is missed.
        GROUPS.iter().try_for_each(|&group| socket.add_membership(group))?;
        // SAFETY: the socket has the same descriptor until it is dropped.
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
        let buffer = Vec::with_capacity(RECEIVE_BYTES);
        let mut host = Self { socket, known: Known::default(), buffer };
        host.request_all()?;
        // The kernel answers at once.
        host.receive()?;
        Ok(host)
    }

    /// Addresses that can be used to send, in the order in which the kernel reported them.
    pub(crate) fn usable(&self) -> Vec<IpAddr> {
        self.known.addresses()
    }

    /// Waits until the kernel has reported a change.
    pub(crate) async fn changed(&mut self) -> io::Result<()> {
        let before = self.known.clone();
        while self.known == before {
            let mut ready = self.socket.readable_mut().await?;
            ready.clear_ready();
            self.receive()?;
        }
        Ok(())
    }

    fn request_all(&mut self) -> io::Result<()> {
        self.known = Known::default();
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        let all = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(all));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.get_ref().send_to(&bytes, &SocketAddr::new(0, 0), 0).map(drop)
    }

    /// Reads what has arrived.
    fn receive(&mut self) -> io::Result<()> {
        loop {
            self.buffer.clear();
            match self.socket.get_ref().recv_from(&mut self.buffer, 0) {
                // From the kernel only.
                Ok((_, sender)) if sender.port_number() == 0 => self.known.read(&self.buffer),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // Changes were lost.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => self.request_all()?,
                Err(error) => return Err(error),
            }
        }
    }
}

/// A task that follows the addresses; dropping this ends it.
#[derive(Debug)]
pub(crate) struct Following(AbortHandle);

impl Following {
    pub(crate) const fn new(task: AbortHandle) -> Self {
        Self(task)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The usable addresses, each with the number of its interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known(Vec<(u32, IpAddr)>);

impl Known {
    fn addresses(&self) -> Vec<IpAddr> {
        let mut addresses: Vec<IpAddr> = Vec::new();
        for &(_, address) in &self.0 {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses
    }

    /// Applies the messages of a datagram.
    fn read(&mut self, mut datagram: &[u8]) {
        while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(datagram) {
            let len = (message.header.length as usize).next_multiple_of(4);
            match message.payload {
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewAddress(new)) => {
                    self.set(&new, is_usable(&new));
                }
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelAddress(old)) => {
                    self.set(&old, false);
                }
                _ => {}
            }
            match datagram.get(len..) {
                Some(rest) if len > 0 => datagram = rest,
                _ => return,
            }
        }
    }

    fn set(&mut self, message: &AddressMessage, is_usable: bool) {
        let Some(address) = address_of(message) else { return };
        let entry = (message.header.index, address);
        let found = self.0.iter().position(|it| *it == entry);
        match found {
            Some(at) if !is_usable => drop(self.0.remove(at)),
            None if is_usable && self.0.len() < MAX_KNOWN => self.0.push(entry),
            _ => {}
        }
    }
}

/// The local address. On a point-to-point link, `Address` is that of the other end, and `Local` is ours.
fn address_of(message: &AddressMessage) -> Option<IpAddr> {
    let attributes = message.attributes.iter();
    let local = attributes.clone().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    local.or_else(|| {
        attributes.clone().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    })
}

/// Whether the address is not link-local, not under duplicate address detection, and not deprecated.
fn is_usable(message: &AddressMessage) -> bool {
    let unusable = AddressFlags::Tentative | AddressFlags::Dadfailed | AddressFlags::Deprecated;
    let header = AddressHeaderFlags::Tentative
        | AddressHeaderFlags::Dadfailed
        | AddressHeaderFlags::Deprecated;
    let has_flag = message.attributes.iter().any(
        |attribute| matches!(attribute, AddressAttribute::Flags(flags) if flags.intersects(unusable)),
    );
    message.header.scope == AddressScope::Universe
        && !message.header.flags.intersects(header)
        && !has_flag
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(index: u32, address: &str, scope: AddressScope) -> AddressMessage {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.scope = scope;
        message.attributes = vec![AddressAttribute::Address(address.parse().unwrap())];
        message
    }

    fn datagram(messages: impl IntoIterator<Item = RouteNetlinkMessage>) -> Vec<u8> {
        let mut all = Vec::new();
        for inner in messages {
            let mut message =
                NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(inner));
            message.finalize();
            let at = all.len();
            all.resize(at + message.buffer_len().next_multiple_of(4), 0);
            message.serialize(&mut all[at..]);
        }
        all
    }

    #[test]
    fn addresses_come_and_go_by_interface() {
        use RouteNetlinkMessage::{DelAddress, NewAddress};
        let wide = AddressScope::Universe;
        let mut known = Known::default();
        known.read(&datagram([
            NewAddress(message(1, "127.0.0.1", AddressScope::Host)),
            NewAddress(message(2, "192.0.2.1", wide)),
            NewAddress(message(3, "192.0.2.1", wide)),
            NewAddress(message(2, "fe80::1", AddressScope::Link)),
            NewAddress(message(2, "2001:db8::1", wide)),
        ]));
        let both: [IpAddr; 2] = ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        assert_eq!(known.addresses(), both);
        known.read(&datagram([DelAddress(message(2, "192.0.2.1", wide))]));
        let still_there = known.addresses();
        assert!(both.iter().all(|address| still_there.contains(address)), "{still_there:?}");
        known.read(&datagram([DelAddress(message(3, "192.0.2.1", wide))]));
        assert_eq!(known.addresses(), both[1..]);
    }

    #[test]
    fn an_address_under_test_or_deprecated_is_not_used() {
        let mut known = Known::default();
        for flag in [AddressFlags::Tentative, AddressFlags::Dadfailed, AddressFlags::Deprecated] {
            let mut new = message(2, "2001:db8::1", AddressScope::Universe);
            known.read(&datagram([RouteNetlinkMessage::NewAddress(new.clone())]));
            assert_eq!(known.addresses().len(), 1);
            new.attributes.push(AddressAttribute::Flags(flag));
            known.read(&datagram([RouteNetlinkMessage::NewAddress(new)]));
            assert_eq!(known.addresses(), [] as [IpAddr; 0], "{flag:?}");
        }
    }

    #[test]
    fn the_local_end_of_a_link_with_two_ends_counts() {
        let mut new = message(2, "192.0.2.9", AddressScope::Universe);
        new.attributes.push(AddressAttribute::Local("192.0.2.1".parse().unwrap()));
        let mut known = Known::default();
        known.read(&datagram([RouteNetlinkMessage::NewAddress(new)]));
        assert_eq!(known.addresses(), ["192.0.2.1".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn truncated_datagrams_and_many_addresses_are_bounded() {
        let many = (0..300u32).map(|n| {
            let address = std::net::Ipv4Addr::from(0x0A00_0001 + n).to_string();
            RouteNetlinkMessage::NewAddress(message(2, &address, AddressScope::Universe))
        });
        let bytes = datagram(many);
        let mut known = Known::default();
        known.read(&bytes);
        assert_eq!(known.0.len(), MAX_KNOWN);
        for len in 0..200 {
            Known::default().read(&bytes[..len]);
        }
    }
}
