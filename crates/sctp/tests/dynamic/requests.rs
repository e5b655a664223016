//! Effects of changes of our addresses (RFC 5061 §5.1, §5.3).

use rexmit_core::Instant;
use rexmit_sctp::wire::AsconfChange::{Add, Delete, SetPrimary};
use rexmit_sctp::{AddressChange, AddressError, CloseReason, Event, PathState};

use crate::kit::*;
use crate::peer::{Dynamic, Keys};
use crate::{ANY, ip};

/// A client whose INIT listed the addresses 192.0.2.1 and 192.0.2.11.
fn two_addresses() -> Dynamic {
    let mut s = Dynamic::client_with(Keys::default(), |endpoint, _| {
        endpoint.addresses = vec![ip(1), ip(11)];
    });
    let probe = s.take_probe();
    s.answer_probe(&probe);
    s.events();
    s
}

impl Dynamic {
    fn add(&mut self, host: u8) -> Result<(), AddressError> {
        let (now, id) = (Instant::from_millis(self.now_ms()), self.id());
        self.endpoint.add_address(now, id, ip(host))
    }

    fn delete(&mut self, host: u8) -> Result<(), AddressError> {
        let (now, id) = (Instant::from_millis(self.now_ms()), self.id());
        self.endpoint.delete_address(now, id, ip(host))
    }

    fn move_to(&mut self, address: std::net::IpAddr) -> Result<(), AddressError> {
        let (now, id) = (Instant::from_millis(self.now_ms()), self.id());
        self.endpoint.move_to(now, id, address)
    }

    /// Takes the next packet. Returns the local address from which it is sent, and its chunks.
    #[track_caller]
    fn take_from(&mut self, host: u8) -> Sent {
        let sent = self.s.next_packet();
        assert_eq!(sent.route.local.ip(), ip(host), "{sent:?}");
        sent
    }

    fn live(&self) -> Vec<(std::net::IpAddr, PathState)> {
        let paths = self.statistics().paths;
        let live = paths.iter().filter(|path| path.state != PathState::Removed);
        live.map(|path| (path.local.ip(), path.state)).collect()
    }
}

/// §5.1 A1–A5, §5.3 F1, F2: a new address is distinguished from an old one, and used once it is acknowledged.
#[test]
fn an_address_is_used_once_it_is_acknowledged() {
    let mut s = Dynamic::client();
    s.add(11).unwrap();
    let asked = s.take_asconf();
    assert_eq!((asked.serial, asked.address), (tsn(0), ip(1)));
    assert_eq!(asked.route.local.ip(), ip(1));
    assert_eq!(asked.changes, [(1, Add(ip(11)))]);
    assert_eq!(s.live(), [(ip(1), PathState::Active)]);
    s.at(200).peer_grants(&asked);
    let change = AddressChange::Added(ip(11));
    assert_eq!(s.events(), [Event::AddressChanged { change, refused: None }]);
    let sent = s.take_from(11);
    assert!(matches!(sent.chunks()[..], [Heartbeat(_)]));
    assert_eq!(s.live(), [(ip(1), PathState::Active), (ip(11), PathState::Unconfirmed)]);
}

/// §5.1 B1–B5: an ASCONF is retransmitted at the retransmission timeout, which doubles, with the same serial number,
/// until it is answered.
#[test]
fn asconf_is_repeated_at_these_times() {
    let mut s = Dynamic::client();
    s.add(11).unwrap();
    let first = s.take_asconf();
    for ms in [1_000, 3_000, 7_000, 15_000, 31_000] {
        s.at(ms);
        let again = s.take_asconf();
        assert_eq!((again.serial, &again.changes), (first.serial, &first.changes));
    }
    s.at(40_000).peer_grants(&first);
    s.take_from(11);
    assert_eq!(s.statistics().paths[0].errors, 0, "cleared (A5)");
    // The next one has the next number.
    s.delete(11).unwrap();
    assert_eq!(s.take_asconf().serial, tsn(1));
}

/// §5.1 B2: after Association.Max.Retrans retransmissions the peer is unreachable.
#[test]
fn asconf_that_is_never_answered_ends_the_association() {
    let mut s = Dynamic::client_with(Keys::default(), |_, a| a.failure.association_max_retrans = 2);
    s.add(11).unwrap();
    for ms in [0, 1_000, 3_000] {
        if ms > 0 {
            s.at(ms);
        }
        s.take_asconf();
    }
    s.at(7_000);
    assert!(s.events().contains(&Event::Closed(CloseReason::Unreachable)));
}

/// §5.1 B4: an ASCONF is retransmitted over another path, if there is one.
#[test]
fn asconf_is_repeated_over_another_path() {
    let mut s = two_addresses();
    s.add(12).unwrap();
    assert_eq!(s.take_asconf().route.local.ip(), ip(1));
    s.at(1_000);
    assert_eq!(s.take_asconf().route.local.ip(), ip(11));
}

/// §5.1.1 C1: one ASCONF at a time; requests that wait meanwhile are sent together.
#[test]
fn one_asconf_is_in_progress_at_a_time() {
    let mut s = Dynamic::client();
    s.add(11).unwrap();
    let first = s.take_asconf();
    s.add(12).unwrap();
    s.add(13).unwrap();
    s.expect_silence();
    s.peer_grants(&first);
    let second = s.take_asconf();
    assert_eq!(second.changes, [(2, Add(ip(12))), (3, Add(ip(13)))]);
    assert_eq!(second.serial, tsn(1));
    while s.poll_packet().is_some() {}
}

/// §5.3 F4: nothing is sent from a deleted address any more, and data in flight from it is retransmitted from another
/// at once.
#[test]
fn a_deleted_address_is_no_longer_used_at_once() {
    let mut s = two_addresses();
    s.send(b"one");
    assert!(matches!(s.take_from(1).chunks()[..], [Data(_)]));
    s.at(20).delete(1).unwrap();
    let asked = s.take_asconf();
    assert_eq!((asked.route.local.ip(), asked.address), (ip(11), ip(11)));
    assert_eq!(asked.changes, [(1, Delete(ip(1)))]);
    let again = s.take_from(11);
    assert!(matches!(again.chunks()[..], [Data(data)] if data.payload == b"one"));
    assert_eq!(s.live(), [(ip(11), PathState::Active)]);
    s.at(60);
    s.peer.route.local = address(11, 9899);
    s.peer_acknowledges(tsn(0));
    s.peer_grants(&asked);
    let change = AddressChange::Deleted(ip(1));
    assert!(s.events().contains(&Event::AddressChanged { change, refused: None }));
    s.expect_silence();
}

/// §5.3.1: an ABORT to an address that is being deleted answers a packet sent before the deletion.
#[test]
fn abort_to_an_address_that_is_being_deleted_is_ignored() {
    let mut s = two_addresses();
    s.delete(1).unwrap();
    let asked = s.take_asconf();
    let tag = s.peer.tag;
    s.peer_writes_under(tag, |p| p.abort(true, |_| ()));
    s.peer_writes(|p| p.abort(false, |_| ()));
    assert_eq!(s.events(), [Event::DataPathChanged { path: 1, address: address(2, 9899) }]);
    s.peer_grants(&asked);
    s.events();
    s.peer.route.local = address(11, 9899);
    s.peer_writes(|p| p.abort(false, |_| ()));
    assert!(matches!(s.events()[..], [Event::Closed(_)]));
}

/// §5.3.2: this host has moved. Only the ASCONF is sent until it is acknowledged; then all data is sent at once.
#[test]
fn a_host_that_moves_keeps_its_association() {
    let mut s = Dynamic::client();
    s.send(b"under way");
    s.take_from(1);
    s.at(10).move_to(ip(77)).unwrap();
    s.send(b"meanwhile");
    let asked = s.take_asconf();
    assert_eq!((asked.route.local.ip(), asked.address), (ip(77), ANY));
    let changes = [(1, Add(ip(77))), (2, SetPrimary(ip(77))), (3, Delete(ANY))];
    assert_eq!(asked.changes, changes);
    s.expect_silence();
    s.at(1_010);
    assert_eq!(s.take_asconf().route.local.ip(), ip(77));
    s.at(1_100).peer.route.local = address(77, 9899);
    s.peer_grants(&asked);
    for words in [&b"under way"[..], b"meanwhile"] {
        let sent = s.take_from(77);
        assert!(matches!(sent.chunks()[..], [Data(data)] if data.payload == words));
    }
    s.peer_acknowledges(tsn(1));
    assert_eq!(s.live(), [(ip(77), PathState::Active)]);
    assert_eq!(s.events().len(), 3);
}

/// A host that has listed its addresses puts one of them into the Address Parameter, by which the peer finds the
/// association.
#[test]
fn a_host_that_listed_its_addresses_sends_one_of_them_in_asconf() {
    let mut s = two_addresses();
    s.move_to(ip(77)).unwrap();
    let asked = s.take_asconf();
    assert_eq!((asked.route.local.ip(), asked.address), (ip(77), ip(1)));
    s.peer.route.local = address(77, 9899);
    s.peer_grants(&asked);
    assert_eq!(s.live(), [(ip(77), PathState::Active)]);
    // And back: to the address that it is from now on.
    s.move_to(ip(1)).unwrap();
    assert_eq!(s.take_asconf().address, ip(77));
}

/// The unspecified address in an ASCONF stands for the source of its packet, for hosts that do not know their address or
/// are behind a NAT.
#[test]
fn a_host_moves_to_an_address_that_it_does_not_know() {
    let mut s = Dynamic::client();
    s.move_to(ANY).unwrap();
    let asked = s.take_asconf();
    assert_eq!(asked.route.local, std::net::SocketAddr::new(ANY, 9899));
    assert_eq!(asked.changes, [(1, Add(ANY)), (2, SetPrimary(ANY)), (3, Delete(ANY))]);
    s.send(b"held");
    s.expect_silence();
    // A second move before the answer.
    s.move_to(ANY).unwrap();
    s.peer_grants(&asked);
    let again = s.take_asconf();
    assert_eq!(again.serial, tsn(1));
    s.expect_silence();
    s.peer.route.local = address(50, 9899);
    s.peer_grants(&again);
    assert!(matches!(s.take_from(50).chunks()[..], [Data(_)]));
}

/// §5.3 F10: if refused, the address change is undone.
#[test]
fn a_refused_change_of_address_is_undone() {
    let mut s = two_addresses();
    s.move_to(ip(77)).unwrap();
    let asked = s.take_asconf();
    let serial = asked.serial;
    s.peer_signs(|p| {
        p.asconf_ack(serial, |answers| {
            answers.refused(1, &Cause::ResourceShortage(&[]));
            answers.done(2);
        })
    });
    let refused = |event: &Event| match event {
        Event::AddressChanged { refused, .. } => *refused,
        _ => None,
    };
    let codes: Vec<_> = s.events().iter().map(refused).collect();
    assert_eq!(codes, [Some(0xA1), None, Some(0xA1)]);
    s.send(b"from where it was");
    let sent = s.next_packet();
    assert!([ip(1), ip(11)].contains(&sent.route.local.ip()), "{sent:?}");
    while s.poll_packet().is_some() {}
}

/// §5.1 A7: requests before the first refused one were performed, later ones were not.
#[test]
fn a_refusal_refuses_all_later_requests() {
    let mut s = Dynamic::client();
    for host in [11, 12, 13] {
        s.add(host).unwrap();
    }
    let serial = s.take_asconf().serial;
    s.peer_signs(|p| {
        p.asconf_ack(serial, |answers| _ = answers.refused(2, &Cause::ResourceShortage(&[])))
    });
    let outcome = |event| match event {
        Event::AddressChanged { change: AddressChange::Added(address), refused } => {
            (address, refused)
        }
        other => panic!("{other:?}"),
    };
    let outcomes: Vec<_> = s.events().into_iter().map(outcome).collect();
    assert_eq!(outcomes, [(ip(11), None), (ip(12), Some(0xA1)), (ip(13), Some(0xA1))]);
    assert_eq!(s.live().len(), 2);
    while s.poll_packet().is_some() {}
}

/// §5.3 F0, §4.3.4: a response to a request that was never sent ends the association; an old one is ignored.
#[test]
fn an_answer_without_a_request_ends_the_association() {
    let mut s = Dynamic::client();
    s.add(11).unwrap();
    let asked = s.take_asconf();
    s.peer_grants(&asked);
    s.peer_grants(&asked);
    while s.poll_packet().is_some() {}
    s.events();
    s.peer_signs(|p| p.asconf_ack(tsn(1), |_| ()));
    expect_packet!(s.s, [Abort { causes, .. }]
        if causes.collect::<Vec<_>>() == [Ok(Cause::IllegalAsconfAck)]);
    assert!(matches!(s.events()[..], [Event::Closed(CloseReason::Aborted { .. })]));
}

/// §5.1 A9: if the peer turns out not to know ASCONF, no further ones are sent.
#[test]
fn a_peer_that_does_not_know_asconf_gets_no_second_one() {
    let mut s = Dynamic::client();
    s.add(11).unwrap();
    s.take_asconf();
    s.peer_writes(|p| {
        p.error(|causes| _ = causes.push(&Cause::UnrecognizedChunkType(&[0xC1, 0, 0, 4])))
    });
    let change = AddressChange::Added(ip(11));
    assert_eq!(s.events()[0], Event::AddressChanged { change, refused: Some(6) });
    assert_eq!(s.add(12), Err(AddressError::NotSupported));
    s.expect_silence_until(5_000);
}

#[test]
fn invalid_calls_are_refused() {
    let mut s = two_addresses();
    assert_eq!(s.add(1), Err(AddressError::AlreadyThere));
    assert_eq!(s.delete(12), Err(AddressError::NoSuchAddress));
    let id = s.id();
    let local = "127.0.0.1".parse().unwrap();
    assert_eq!(s.endpoint.add_address(Instant::ZERO, id, local), Err(AddressError::OutOfScope));
    let primary = s.endpoint.set_peer_primary(Instant::ZERO, id, ip(12));
    assert_eq!(primary, Err(AddressError::NoSuchAddress));
    s.delete(1).unwrap();
    assert_eq!(s.delete(11), Err(AddressError::LastAddress));
    let limit = rexmit_sctp::MAX_ADDRESSES;
    (20..27).for_each(|host| s.add(host).unwrap());
    assert_eq!(s.add(27), Err(AddressError::TooManyAddresses { limit }));
    // The limit of changes that wait; the smallest packet holds them all, even of IPv6.
    while s.poll_packet().is_some() {}
    (0..12).for_each(|_| s.endpoint.set_peer_primary(Instant::ZERO, id, ip(11)).unwrap());
    let one_more = s.endpoint.set_peer_primary(Instant::ZERO, id, ip(11));
    assert_eq!(one_more, Err(AddressError::TooManyChanges { limit: 12 }));
    let mut s = Script::established_client();
    let id = s.id();
    let none = s.endpoint.add_address(Instant::ZERO, id, ip(11));
    assert_eq!(none, Err(AddressError::NotSupported));
}
