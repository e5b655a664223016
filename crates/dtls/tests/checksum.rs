//! Records are authenticated, so that SCTP packets inside carry no checksum once both sides agreed (RFC 9653).

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{CLIENT, SERVER, endpoint, identity, route};
use rexmit_core::{Instant, Machine as _, Seed};
use rexmit_dtls::{Encryption, Session, SessionOutput, SessionSettings, Trust, within_records};
use rexmit_sctp::{AssociationConfig, EndpointConfig, OutboundMessage};

/// The checksums of the SCTP packets that an encrypted server sends to a client, which accepts zero checksums if it
/// `offers`; and whether a message was acknowledged.
fn checksums_of_the_server(offers: bool) -> (Vec<u32>, bool) {
    let mut now = Instant::from_millis(1000);
    let mut server = endpoint(true, Encryption::new(identity(2), Trust::anyone()), 2);
    let limits = [250, 10_000].map(Duration::from_millis);
    let settings = SessionSettings::new(identity(1), 1200, limits[0], limits[1]);
    let mut session = Session::new(now, &settings, true, Trust::anyone());
    let config = within_records(&AssociationConfig::default()).zero_checksum(offers);
    let config = EndpointConfig::default().association(Arc::new(config));
    let mut sctp = rexmit_sctp::Endpoint::new(config, &Seed::from_u64(1)).unwrap();
    let (mut association, mut checksums, mut packet) = (None, Vec::new(), Vec::new());
    let [to_server, to_client] = [route(CLIENT, SERVER), route(SERVER, CLIENT)];
    let mut is_acknowledged = false;
    for _ in 0..200 {
        let mut outputs = Vec::new();
        let mut is_secured = false;
        let mut sink = |output: SessionOutput<'_>| match output {
            SessionOutput::Transmit(datagram) => outputs.push((true, datagram.to_vec())),
            SessionOutput::Packet(packet) => outputs.push((false, packet.to_vec())),
            SessionOutput::Secured(_) => is_secured = true,
            _ => {}
        };
        if session.poll_timeout().is_some_and(|at| at <= now) {
            session.handle_timeout(now, &mut sink);
        }
        while server.poll_transmit(now, &mut packet).is_some() {
            session.handle_input(now, &packet, &mut sink);
        }
        while sctp.poll_transmit(now, &mut packet).is_some() {
            session.seal(now, &packet, &mut sink);
        }
        if is_secured {
            association = Some(sctp.connect(now, to_server, 5000).unwrap());
        }
        for (is_datagram, bytes) in outputs {
            if is_datagram {
                server.handle_input(now, to_client, &bytes);
            } else {
                checksums.push(u32::from_be_bytes(bytes[8..12].try_into().unwrap()));
                sctp.handle_input(now, to_server, &bytes);
            }
        }
        while let Some((id, event)) = sctp.poll_event() {
            if let rexmit_sctp::Event::Connected { .. } = event {
                sctp.send(now, id, OutboundMessage::new(0, "over a record")).unwrap();
            }
        }
        if let Some(of) = association.and_then(|id| sctp.statistics(id)) {
            is_acknowledged = of.traffic.messages_accepted > 0 && of.send_buffered_bytes == 0;
        }
        if server.poll_timeout().is_some_and(|at| at <= now) {
            server.handle_timeout(now);
        }
        if sctp.poll_timeout().is_some_and(|at| at <= now) {
            sctp.handle_timeout(now);
        }
        now += Duration::from_millis(10);
    }
    (checksums, is_acknowledged)
}

#[test]
fn packets_have_no_checksum_once_both_sides_agreed() {
    let (checksums, is_acknowledged) = checksums_of_the_server(true);
    assert!(is_acknowledged);
    assert_ne!(checksums[0], 0, "INIT ACK: {checksums:08x?}");
    assert!(checksums.len() > 2 && checksums[1..].iter().all(|it| *it == 0), "{checksums:08x?}");
    let (checksums, is_acknowledged) = checksums_of_the_server(false);
    assert!(is_acknowledged && checksums.iter().all(|it| *it != 0), "{checksums:08x?}");
}
