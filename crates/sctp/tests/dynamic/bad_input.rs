//! Input that must not change any address (RFC 4895 §6.3, RFC 5061 §5.2, §5.3).

use rexmit_core::Machine as _;
use rexmit_sctp::wire::AsconfChange::{Add, Delete, SetPrimary, Unknown};
use rexmit_sctp::wire::{RawParam, write_checksum};
use rexmit_sctp::{EndpointStatistics, MAX_ADDRESSES};

use crate::kit::*;
use crate::peer::{Dynamic, Keys, requests};
use crate::{ANY, ip};

const RESOURCE_SHORTAGE: u16 = 0xA1;
const UNRESOLVABLE: u16 = 5;

fn counts(s: &Dynamic) -> EndpointStatistics {
    *s.endpoint.endpoint_statistics()
}

impl Dynamic {
    /// Asserts that no event occurred and no response is sent.
    #[track_caller]
    fn expect_no_change(&mut self) {
        assert_eq!(self.events(), []);
        self.expect_silence();
        assert_eq!(self.statistics().paths.len(), 1);
    }
}

/// RFC 5061 §5.2 D5: an ASCONF without AUTH is dropped with the rest of its packet; chunks before it are processed.
#[test]
fn asconf_without_auth_is_dropped_with_the_rest_of_its_packet() {
    let mut s = Dynamic::server();
    s.peer_writes(|p| {
        p.heartbeat(b"before");
        p.asconf(tsn(0), ip(2), requests(&[Add(ip(3))]));
        p.heartbeat(b"behind")
    });
    expect_packet!(s.s, [HeartbeatAck(b"before")]);
    s.expect_no_change();
    s.peer_writes(|p| p.asconf_ack(tsn(0), |_| ()));
    s.expect_no_change();
    assert_eq!(counts(&s).unauthenticated, 2);
    // Under an AUTH that stands behind it, too.
    s.peer_writes(|p| {
        p.asconf(tsn(0), ip(2), requests(&[Add(ip(3))]));
        p.auth(0, 3, 32)
    });
    s.expect_no_change();
}

/// RFC 4895 §6.3: a single wrong bit in AUTH or after it suffices.
#[test]
fn asconf_with_a_wrong_mac_is_dropped() {
    let mut s = Dynamic::server();
    let right = s.asconf(0, &[Add(ip(3))]);
    for bit in wire::COMMON_HEADER_LEN * 8..right.len() * 8 {
        let mut forged = right.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        write_checksum(&mut forged);
        let is_type = bit / 8 == wire::COMMON_HEADER_LEN;
        let is_hmac = (18..20).contains(&(bit / 8));
        s.deliver(&forged);
        if is_type || is_hmac {
            // Another chunk altogether, or another hash function, which is reported.
            while s.poll_packet().is_some() {}
            assert_eq!(s.events(), []);
        }
        s.expect_no_change();
    }
    s.deliver(&right);
    assert_eq!(s.take_answer(0, 2), [], "the right one");
    s.take_probe();
}

/// RFC 4895 §6.3: a hash function that was not offered is reported; the chunks that the AUTH covers are dropped.
#[test]
fn an_unsupported_hash_function_is_reported() {
    let mut s = Dynamic::server();
    s.keys.hmac = 4;
    s.peer_asks(0, &[Add(ip(3))]);
    expect_packet!(s.s, [Error { causes }]
        if causes.collect::<Vec<_>>() == [Ok(Cause::UnsupportedHmac(4))]);
    s.expect_no_change();
    assert_eq!(counts(&s).unauthenticated, 1);
}

/// RFC 4895 §6.3: an unknown key number.
#[test]
fn an_unknown_key_is_dropped() {
    let mut s = Dynamic::server();
    s.keys.shared.0 = 1;
    s.peer_asks(0, &[Add(ip(3))]);
    s.expect_no_change();
}

/// RFC 5061 §5.2 E2, E5: serial numbers that are old, or ahead.
#[test]
fn serial_numbers_that_are_not_the_next_one_are_dropped() {
    let mut s = Dynamic::server();
    for n in [1, 2, 1 << 30, (1 << 31) - 1, u32::MAX, 1 << 31] {
        s.peer_asks(n, &[Add(ip(3))]);
        s.expect_no_change();
    }
    assert_eq!(counts(&s).asconfs_refused, 6);
    let first = s.asconf(0, &[]);
    s.deliver(&first);
    s.take_answer(0, 2);
    s.peer_asks(1, &[]);
    s.take_answer(1, 2);
    // The answer to the first one is not kept any more.
    s.deliver(&first);
    s.expect_no_change();
    assert_eq!(counts(&s).asconfs_refused, 7);
}

/// RFC 5061 §5.3 F9, F11: an association has at most [`MAX_ADDRESSES`]. Once a request is refused, all later address
/// changes in the same ASCONF are refused, too.
#[test]
fn a_flood_of_addresses_is_refused() {
    let mut s = Dynamic::server();
    let flood: Vec<_> = (10..60).map(|host| Add(ip(host))).chain([Delete(ip(10))]).collect();
    s.peer_asks(0, &flood);
    let refused = s.take_answer(0, 2);
    let first = MAX_ADDRESSES as u32; // With the one that it has.
    let expected: Vec<_> = (first..=51).map(|n| (n, RESOURCE_SHORTAGE)).collect();
    let fits = refused.len();
    assert!(fits > 20, "the number that fits a packet: {fits}");
    assert_eq!(refused, expected[..fits]);
    assert_eq!(s.statistics().paths.len(), MAX_ADDRESSES);
    assert_eq!(counts(&s).addresses_refused, u64::from(52 - first));
    while s.poll_packet().is_some() {}
    // Over many ASCONFs, too; and paths do not pile up.
    for n in 1..100 {
        let host = 10 + (n % 7) as u8;
        s.peer_asks(
            n,
            &[Delete(ip(host)), Add(ip(host + 100)), Delete(ip(host + 100)), Add(ip(host))],
        );
        assert_eq!(s.take_answer(n, 2), []);
        while s.poll_packet().is_some() {}
    }
    assert_eq!(s.statistics().paths.len(), MAX_ADDRESSES);
}

/// Adding an address that the association already has changes nothing.
#[test]
fn a_duplicate_address_changes_nothing() {
    let mut s = Dynamic::server();
    s.peer_asks(0, &[Add(ip(2)), Add(ANY)]);
    assert_eq!(s.take_answer(0, 2), []);
    s.expect_no_change();
    assert_eq!(counts(&s).addresses_refused, 2);
}

/// Addresses that do not belong to a single host, or whose scope the two sides do not share.
#[test]
fn addresses_that_the_peer_cannot_have_are_refused() {
    let mut s = Dynamic::server();
    let forged =
        ["224.0.0.1", "255.255.255.255", "127.0.0.1", "10.0.0.1", "169.254.1.1", "ff02::1"];
    for (n, address) in (0..).zip(forged) {
        s.peer_asks(n, &[Add(address.parse().unwrap())]);
        assert_eq!(s.take_answer(n, 2), [(1, UNRESOLVABLE)], "{address}");
    }
    // None of our addresses can reach this one: the endpoint has IPv4 only.
    s.expect_no_change();
}

/// RFC 5061 §5.3 F7, F8.
#[test]
fn the_last_address_and_the_source_are_not_deleted() {
    let mut s = Dynamic::server();
    s.peer_asks(0, &[Delete(ip(2))]);
    assert_eq!(s.take_answer(0, 2), [(1, 0xA0)]);
    s.expect_no_change();
    s.peer_asks(1, &[Add(ip(3))]);
    s.take_answer(1, 2);
    s.take_probe();
    s.peer_asks(2, &[Delete(ip(2)), Delete(ip(3)), SetPrimary(ip(2))]);
    assert_eq!(s.take_answer(2, 2), [(1, 0xA2), (2, RESOURCE_SHORTAGE), (3, 0)]);
    // From an address that is not its own, all others would be the last.
    s.from(9).peer_asks(3, &[Delete(ANY)]);
    assert_eq!(s.take_answer(3, 9), [(1, 0xA0)]);
    assert_eq!(s.statistics().paths.len(), 2);
}

/// Addresses that the peer does not have are neither deleted nor made primary.
#[test]
fn addresses_that_are_not_there_are_not_deleted() {
    let mut s = Dynamic::server();
    s.peer_asks(0, &[Delete(ip(9)), SetPrimary(ip(9))]);
    assert_eq!(s.take_answer(0, 2), [(1, UNRESOLVABLE), (2, UNRESOLVABLE)]);
    s.expect_no_change();
}

/// RFC 5061 §5.2 D3, D5: an ASCONF from another address without the right tag or key is dropped.
#[test]
fn asconf_from_elsewhere_needs_the_tag_and_the_key() {
    let mut s = Dynamic::server();
    s.from(9);
    let mut forged = s.asconf(0, &[Add(ANY), Delete(ANY)]);
    let last = forged.len() - 1;
    forged[last] ^= 1;
    write_checksum(&mut forged);
    s.deliver(&forged);
    s.expect_no_change();
    // Without AUTH the packet belongs to no association.
    let tag = s.peer.endpoint_tag;
    s.peer_writes(|p| p.asconf(tsn(0), ip(2), requests(&[Add(ANY)])));
    expect_packet!(s.s, tag tag, [Abort { t_bit: true, .. }]);
    s.peer.endpoint_tag = tag ^ 1;
    s.peer_asks(0, &[Add(ANY)]);
    let wrong = tag ^ 1;
    expect_packet!(s.s, tag wrong, [Abort { t_bit: true, .. }]);
    s.peer.endpoint_tag = tag;
    s.expect_no_change();
    // DATA after an AUTH is not enough: an ASCONF is required.
    s.peer_signs(|p| p.data(&data(0, b"from elsewhere")));
    expect_packet!(s.s, tag tag, [Abort { t_bit: true, .. }]);
    s.expect_no_change();
}

/// RFC 5061 §5.2 V2: unknown parameters are reported if their type requires it.
#[test]
fn unknown_requests_are_reported() {
    let mut s = Dynamic::server();
    let raw = |kind, value: &[u8]| {
        let bytes = [&[0xC1, 0, 0, 0][..], &tsn(0).to_be_bytes(), &[0, 5, 0, 8, 192, 0, 2, 2]];
        let mut chunk = bytes.concat();
        chunk.extend([&u16::to_be_bytes(kind)[..], &[0, 8], value].concat());
        chunk.extend([0xC0, 1, 0, 16, 0, 0, 0, 9, 0, 5, 0, 8, 192, 0, 2, 3]);
        chunk[3] = chunk.len() as u8;
        chunk
    };
    let chunk = raw(0xC0FE, &[0, 0, 0, 7]);
    s.peer_signs(|p| p.plain(wire::kind::ASCONF, 0, &chunk[4..]));
    assert_eq!(s.take_answer(0, 2), [(7, 8), (9, 0)], "reported, and gone on");
    s.take_probe();
    assert_eq!(s.statistics().paths.len(), 2);
    let _ = Unknown(RawParam { kind: 0, value: &[], bytes: &[] });
}

/// A truncated request makes the whole ASCONF malformed: no part of it is performed.
#[test]
fn a_malformed_asconf_does_nothing() {
    let mut s = Dynamic::server();
    let mut value = tsn(0).to_be_bytes().to_vec();
    value.extend([0, 5, 0, 8, 192, 0, 2, 2]);
    value.extend([0xC0, 1, 0, 16, 0, 0, 0, 9, 0, 5, 0, 8, 192, 0, 2, 3]);
    value.extend([0xC0, 1, 0, 12, 0, 0, 0, 9, 0, 5, 0, 8]);
    s.peer_signs(|p| p.plain(wire::kind::ASCONF, 0, &value));
    s.expect_no_change();
    assert_eq!(counts(&s).asconfs_refused, 1);
}

/// RFC 5061 §4.2.7: for a peer that does not offer all required extensions, ASCONF is an unknown chunk.
#[test]
fn without_an_offer_asconf_is_unknown() {
    let keys = Keys { hmacs: vec![2], ..Keys::default() };
    let mut s = Dynamic::server_with(keys, |_, _| ());
    s.peer_writes(|p| p.asconf(tsn(0), ip(2), requests(&[Add(ip(3))])));
    expect_packet!(s.s, [Error { .. }]);
    s.peer_asks(0, &[Add(ip(3))]);
    s.expect_no_change();
    let mut s =
        Dynamic::server_with(Keys::default(), |_, a| a.extensions.dynamic_addresses = false);
    s.peer_writes(|p| p.asconf(tsn(0), ip(2), requests(&[Add(ip(3))])));
    expect_packet!(s.s, [Error { .. }]);
    s.expect_no_change();
}

/// Refused ASCONFs do not delay other pending work.
#[test]
fn refused_asconfs_stop_their_timer() {
    let mut s = Dynamic::server();
    s.peer_asks(7, &[Add(ip(3))]);
    s.expect_no_change();
    assert_eq!(s.endpoint.poll_timeout(), None);
    assert!(s.endpoint.is_idle());
}
