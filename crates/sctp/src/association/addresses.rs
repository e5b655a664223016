//! The addresses that are sent to the peer, accepted from it, and paired to paths (RFC 9260 §5.1.2).
//!
//! RFC 9260 has no scope rules. Those here are the usual ones: an address is sent to a peer, and accepted
//! from one, only if its scope is no smaller than that of the peer's address, so that it means the same to
//! both sides.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rexmit_core::Route;

/// The scope in which an address is unique, smallest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Scope {
    Host,
    Link,
    /// A private network (RFC 1918, RFC 6598, RFC 4193).
    Private,
    Global,
}

/// The scope of an address that one host may have; `None` for all others: unspecified, multicast, broadcast, reserved,
/// and IPv4-mapped IPv6 addresses.
fn scope(address: IpAddr) -> Option<Scope> {
    match address {
        IpAddr::V4(address) => scope_v4(address),
        IpAddr::V6(address) => scope_v6(address),
    }
}

fn scope_v4(address: Ipv4Addr) -> Option<Scope> {
    match address.octets() {
        [0 | 224.., ..] => None,
        [127, ..] => Some(Scope::Host),
        [169, 254, ..] => Some(Scope::Link),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => {
            Some(Scope::Private)
        }
        _ => Some(Scope::Global),
    }
}

fn scope_v6(address: Ipv6Addr) -> Option<Scope> {
    if address.is_unspecified() || address.is_multicast() || address.to_ipv4_mapped().is_some() {
        return None;
    }
    Some(match address.segments()[0] {
        _ if address.is_loopback() => Scope::Host,
        0xFE80..=0xFEBF => Scope::Link,
        // Unique local addresses, and the site-local ones of old.
        0xFC00..=0xFDFF | 0xFEC0..=0xFEFF => Scope::Private,
        _ => Scope::Global,
    })
}

/// Whether `address` means the same to us and to a peer that is at `peer`.
pub(crate) fn is_in_scope(address: IpAddr, peer: IpAddr) -> bool {
    scope(address).is_some_and(|scope_of_it| Some(scope_of_it) >= scope(peer))
}

/// The number of leading bits that two addresses have in common; `None` if they are of different families.
fn common_bits(a: IpAddr, b: IpAddr) -> Option<u32> {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => Some((a.to_bits() ^ b.to_bits()).leading_zeros()),
        (IpAddr::V6(a), IpAddr::V6(b)) => Some((a.to_bits() ^ b.to_bits()).leading_zeros()),
        _ => None,
    }
}

/// The one of `choices` that has the longest common prefix with `address`; of equal ones that used by the fewest
/// `routes`, then the first.
fn nearest(
    address: IpAddr,
    choices: impl Iterator<Item = IpAddr>,
    is_used_by: impl Fn(IpAddr) -> usize,
) -> Option<IpAddr> {
    let mut best = None;
    for choice in choices {
        let Some(bits) = common_bits(address, choice) else { continue };
        let key = (bits, std::cmp::Reverse(is_used_by(choice)));
        if best.is_none_or(|(_, best)| key > best) {
            best = Some((choice, key));
        }
    }
    best.map(|(choice, _)| choice)
}

/// The unspecified address of the family of `address`.
pub(super) const fn unspecified_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// The one of `choices` that is nearest to `remote`, given the other `routes`; see [`nearest`].
pub(super) fn nearest_of(remote: IpAddr, choices: &[IpAddr], routes: &[Route]) -> Option<IpAddr> {
    let uses = |own| routes.iter().filter(|route| route.local.ip() == own).count();
    nearest(remote, choices.iter().copied(), uses)
}

/// The local address for a new route to `remote`, given the existing `routes`, the first of which is the primary one;
/// `None` without an address of the same family.
///
/// If this endpoint has addresses of its own, the one with the longest common prefix with `remote` of those in the peer's
/// scope, or the local address of the primary route; otherwise that one, or one that the driver chooses.
pub(super) fn local_for(remote: IpAddr, own: &[IpAddr], routes: &[Route]) -> Option<SocketAddr> {
    let primary = routes.first()?;
    let port = primary.local.port();
    if own.is_empty() {
        let local = primary.local.ip();
        let any = unspecified_like(remote);
        let is_same_family = local.is_ipv4() == remote.is_ipv4();
        return Some(SocketAddr::new(if is_same_family { local } else { any }, port));
    }
    let own = own.iter().copied().filter(|&own| is_in_scope(own, primary.remote.ip()));
    let uses = |own| routes.iter().filter(|route| route.local.ip() == own).count();
    let same_version = Some(primary.local).filter(|local| local.is_ipv4() == remote.is_ipv4());
    nearest(remote, own, uses).map(|own| SocketAddr::new(own, port)).or(same_version)
}

/// As [`local_for`], for [`SourceAddresses::Routed`](crate::SourceAddresses::Routed): the unspecified address, if this
/// endpoint uses addresses of that family.
pub(super) fn routed_local(remote: IpAddr, own: &[IpAddr], routes: &[Route]) -> Option<SocketAddr> {
    let primary = routes.first()?;
    let mut used = own.iter().copied().chain([primary.local.ip()]);
    let has_family = used.any(|own| own.is_ipv4() == remote.is_ipv4());
    has_family.then(|| SocketAddr::new(unspecified_like(remote), primary.local.port()))
}

/// The routes to `remotes`. Each begins at the one of our `own` addresses that has the longest common prefix with it
/// and may be used with its scope; otherwise at `local`.
pub(crate) fn routes_to(remotes: &[SocketAddr], own: &[IpAddr], local: SocketAddr) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::with_capacity(remotes.len());
    for &remote in remotes {
        let choices = own.iter().copied().filter(|&own| is_in_scope(own, remote.ip()));
        let uses = |own| routes.iter().filter(|route| route.local.ip() == own).count();
        let nearest = nearest(remote.ip(), choices, uses);
        let local = nearest.map_or(local, |own| SocketAddr::new(own, local.port()));
        routes.push(Route { local, remote });
    }
    routes
}

/// Routes for those of our own addresses that no route uses: each to the peer's address with the longest common prefix.
pub(super) fn unused_locals(own: &[IpAddr], routes: &[Route]) -> Vec<Route> {
    let mut unused: Vec<Route> = Vec::new();
    let Some(primary) = routes.first() else { return unused };
    for &local in own.iter().filter(|&&own| is_in_scope(own, primary.remote.ip())) {
        if routes.iter().chain(&unused).any(|route| route.local.ip() == local) {
            continue;
        }
        let remotes = routes.iter().map(|route| route.remote.ip());
        let uses =
            |remote| routes.iter().chain(&unused).filter(|r| r.remote.ip() == remote).count();
        let Some(remote) = nearest(local, remotes, uses) else { continue };
        let to_it = routes.iter().find(|route| route.remote.ip() == remote);
        let local = SocketAddr::new(local, primary.local.port());
        unused.extend(to_it.map(|route| Route { local, remote: route.remote }));
    }
    unused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(address: &str) -> IpAddr {
        address.parse().unwrap()
    }

    fn route(local: &str, remote: &str) -> Route {
        let at = |address| SocketAddr::new(ip(address), 9899);
        Route { local: at(local), remote: at(remote) }
    }

    #[test]
    fn a_way_begins_at_the_nearest_address_of_our_own() {
        let at = |address: &str| SocketAddr::new(ip(address), 9899);
        let own = ["10.1.0.1", "10.2.0.1", "127.0.0.1"].map(ip);
        let to = |remotes: &[&str]| {
            let remotes: Vec<_> = remotes.iter().map(|&remote| at(remote)).collect();
            let ways = routes_to(&remotes, &own, at("0.0.0.0"));
            ways.into_iter().map(|way| way.local).collect::<Vec<_>>()
        };
        assert_eq!(to(&["10.2.0.2", "10.1.0.2"]), [at("10.2.0.1"), at("10.1.0.1")]);
        assert_eq!(to(&["10.1.0.2", "10.1.0.3"]), [at("10.1.0.1"); 2]);
        assert_eq!(to(&["127.0.0.9"]), [at("127.0.0.1")]);
        assert_eq!(to(&["10.9.0.1", "10.10.0.1"]), [at("10.1.0.1"), at("10.2.0.1")], "as near");
        assert_eq!(to(&["192.0.2.1"]), [at("0.0.0.0")], "ours mean nothing there");
        assert_eq!(routes_to(&[at("10.1.0.2")], &[], at("10.0.0.7"))[0].local, at("10.0.0.7"));
    }

    #[test]
    fn only_addresses_that_mean_the_same_to_both_are_told_and_taken() {
        // Each address, and the number of `peers` to which it may be sent: the first ones, which are in the order of
        // scopes.
        let peers = ["127.0.0.1", "169.254.0.9", "10.0.0.9", "8.8.8.8"];
        let table = [
            ("127.0.0.2", 1),
            ("::1", 1),
            ("169.254.1.1", 2),
            ("fe80::1", 2),
            ("10.1.1.1", 3),
            ("172.16.0.1", 3),
            ("172.31.255.255", 3),
            ("192.168.1.1", 3),
            ("100.64.0.1", 3),
            ("fd00::1", 3),
            ("fec0::1", 3),
            ("172.32.0.1", 4),
            ("100.128.0.1", 4),
            ("192.0.2.1", 4),
            ("2001:db8::1", 4),
        ];
        for (address, count) in table {
            let told = peers.iter().filter(|peer| is_in_scope(ip(address), ip(peer))).count();
            assert_eq!(told, count, "{address}");
        }
    }

    #[test]
    fn what_is_no_address_of_one_host_is_never_taken() {
        let table = [
            "0.0.0.0",
            "0.1.2.3",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "ff02::1",
            "::ffff:10.0.0.1",
        ];
        for address in table {
            assert!(!is_in_scope(ip(address), ip("127.0.0.1")), "{address}");
        }
    }

    #[test]
    fn a_remote_address_is_reached_from_the_local_one_that_is_nearest() {
        let own = ["10.1.0.1", "10.2.0.1", "2001:db8:1::1"].map(ip);
        let routes = [route("10.1.0.1", "10.1.0.2")];
        let local = |remote| local_for(ip(remote), &own, &routes).map(|local| local.ip());
        assert_eq!(local("10.2.0.2"), Some(ip("10.2.0.1")));
        assert_eq!(local("10.1.0.77"), Some(ip("10.1.0.1")));
        assert_eq!(local("2001:db8:2::1"), Some(ip("2001:db8:1::1")));
        assert_eq!(local("198.51.100.1"), Some(ip("10.2.0.1")), "equally far: the unused one");
        assert_eq!(local_for(ip("2001:db8::1"), &own[..2], &routes), None);
    }

    #[test]
    fn without_addresses_of_our_own_the_primary_route_decides() {
        let routes = [route("10.1.0.1", "10.1.0.2")];
        let local = |remote| local_for(ip(remote), &[], &routes).map(|local| local.to_string());
        assert_eq!(local("10.2.0.2").as_deref(), Some("10.1.0.1:9899"));
        assert_eq!(local("2001:db8::1").as_deref(), Some("[::]:9899"));
    }

    /// A global peer is not reached from a private address.
    #[test]
    fn local_addresses_out_of_scope_are_not_used() {
        let own = ["10.0.0.1", "192.0.2.1"].map(ip);
        let routes = [route("192.0.2.1", "192.0.2.9")];
        let local = local_for(ip("11.0.0.1"), &own, &routes).map(|local| local.ip());
        assert_eq!(local, Some(ip("192.0.2.1")));
        assert_eq!(unused_locals(&own, &routes), []);
    }

    #[test]
    fn every_local_address_has_a_way() {
        let own = ["10.1.0.1", "10.2.0.1", "10.3.0.1", "2001:db8::1"].map(ip);
        let routes = [route("10.1.0.1", "10.1.0.2"), route("10.2.0.1", "10.2.0.2")];
        assert_eq!(unused_locals(&own, &routes), [route("10.3.0.1", "10.2.0.2")]);
        let one = [route("10.1.0.1", "10.9.0.2")];
        let expected = [route("10.2.0.1", "10.9.0.2"), route("10.3.0.1", "10.9.0.2")];
        assert_eq!(unused_locals(&own, &one), expected);
        assert_eq!(unused_locals(&[], &one), []);
    }
}
