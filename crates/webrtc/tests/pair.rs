//! Two agents with a network between them: setup, messages, closing, and refusals.

mod common;

use std::time::Duration;

use common::{CLIENT, DELAY, Pair, SERVER, config, settings};
use rexmit_core::{Instant, Machine as _, Seed};
use rexmit_dtls::{Fingerprint, HandshakeError, Identity, Version};
use rexmit_sctp::Reliability;
use rexmit_sctp::recovery::Deadline;
use rexmit_webrtc::{
    Agent, ChannelConfig, ChannelId, CloseReason, Event, IceMode, Message, OfferError, OpenError,
    SendError, Setup, Stage, TrySendError,
};

const MODES: [IceMode; 2] = [IceMode::Full, IceMode::Lite];

/// Messages of one channel, in the order of their arrival.
fn messages(events: &[Event]) -> Vec<(ChannelId, Message)> {
    let message = |event: &Event| match event {
        Event::Message { channel, message } => Some((*channel, message.clone())),
        _ => None,
    };
    events.iter().filter_map(message).collect()
}

/// The channel that the peer has opened with this label.
fn incoming(events: &[Event], label: &str) -> ChannelId {
    let opened = events.iter().find_map(|event| match event {
        Event::ChannelOpened { channel, config, is_incoming: true } if config.label == label => {
            Some(*channel)
        }
        _ => None,
    });
    opened.unwrap_or_else(|| panic!("no channel {label} in {events:?}"))
}

fn was_closed(events: &[Event], channel: ChannelId) -> bool {
    events.contains(&Event::ChannelClosed(channel))
}

#[test]
fn full_and_lite_agents_connect_in_either_dtls_role() {
    for mode in MODES {
        let mut pair = Pair::with(mode, 1);
        let begun = pair.now;
        pair.connect();
        assert_eq!(pair.client.agent.dtls_version(), Some(Version::Dtls13));
        assert_eq!(pair.client.agent.remote(), Some(pair.server.address));
        assert_eq!(pair.server.agent.remote(), Some(pair.client.address));
        // A check and its nomination, DTLS, and SCTP with the packets of DTLS: without a timer in between.
        let round_trips = (pair.now - begun).as_secs_f64() / (DELAY * 2).as_secs_f64();
        let most = if mode == IceMode::Lite { 4.0 } else { 5.0 };
        assert!(round_trips <= most, "{mode:?} {round_trips}");
    }
}

#[test]
fn a_lost_client_hello_is_repeated_at_the_peers_next_check() {
    /// A record of DTLS in the clear whose message is a ClientHello (RFC 6347 §4.3.2).
    fn is_client_hello(datagram: &[u8]) -> bool {
        datagram.first() == Some(&22) && datagram.get(13) == Some(&1)
    }
    let setup = |lost: Option<fn(&[u8]) -> bool>| {
        let mut pair = Pair::with(IceMode::Lite, 1);
        pair.lost = lost;
        let begun = pair.now;
        pair.connect();
        assert!(pair.lost.is_none(), "nothing was lost");
        pair.now - begun
    };
    // The second check is sent when the first one has been answered. DTLS alone waits for 250 ms.
    let longer = setup(Some(is_client_hello)) - setup(None);
    assert!(longer <= DELAY * 2, "{longer:?}");
}

#[test]
fn with_a_passive_answer_the_offerer_begins_the_handshake() {
    let now = Instant::from_millis(1);
    let (mut client, mut offer) = Agent::offer(now, settings(config(CLIENT)), &Seed::from_u64(1));
    // As an old peer offers.
    offer.setup = Setup::Active;
    let answered = Agent::answer(now, settings(config(SERVER)), &offer, &Seed::from_u64(2));
    let (server, answer) = answered.unwrap();
    assert_eq!(answer.setup, Setup::Passive);
    client.accept(now, &answer).unwrap();
    let mut pair = Pair::of(now, client, server, &Seed::from_u64(3));
    pair.connect();
}

#[test]
fn connections_are_established_and_deliver_once_and_in_order_despite_loss() {
    for seed in 0..20 {
        let mut pair = Pair::with(MODES[seed as usize % 2], seed);
        pair.loss = 0.1;
        let now = pair.now;
        let ordered = pair.client.agent.open(now, ChannelConfig::new("ordered")).unwrap();
        let unordered = ChannelConfig::new("unordered").ordered(false);
        let unordered = pair.client.agent.open(now, unordered).unwrap();
        pair.connect();
        let expected: Vec<Message> = (0..100).map(|n| Message::text(n.to_string())).collect();
        for message in &expected {
            for channel in [ordered, unordered] {
                pair.client.agent.send(pair.now, channel, message).unwrap();
            }
        }
        pair.run_until(|pair| messages(&pair.server.events).len() == 200);
        let received = messages(&pair.server.events);
        for label in ["ordered", "unordered"] {
            let channel = incoming(&pair.server.events, label);
            let of = received.iter().filter(|(of, _)| *of == channel);
            let mut of: Vec<Message> = of.map(|(_, message)| message.clone()).collect();
            if label == "unordered" {
                of.sort_by_key(|message| message.as_text().unwrap().parse::<usize>().unwrap());
            }
            assert_eq!(of, expected, "{label} {seed}");
        }
    }
}

#[test]
fn the_peer_gets_the_channel_properties_and_stream_ids_follow_the_dtls_role() {
    let mut pair = Pair::with(IceMode::Lite, 1);
    let config = ChannelConfig::new("état")
        .protocol("chat".to_owned())
        .ordered(false)
        .reliability(Reliability::MaxRetransmissions(3))
        .priority(512);
    let timed =
        ChannelConfig::new("timed").reliability(Reliability::Timed(Duration::from_millis(150)));
    let now = pair.now;
    for config in [&config, &timed] {
        pair.client.agent.open(now, config.clone()).unwrap();
        pair.server.agent.open(now, config.clone()).unwrap();
    }
    let is_open = |events: &[Event]| {
        events.iter().filter(|it| matches!(it, Event::ChannelOpened { .. })).count() == 4
    };
    pair.run_until(|pair| is_open(&pair.client.events) && is_open(&pair.server.events));
    for events in [&pair.client.events, &pair.server.events] {
        for expected in [&config, &timed] {
            for incoming in [false, true] {
                assert!(events.iter().any(|event| matches!(event,
                    Event::ChannelOpened { config, is_incoming, .. }
                        if config == expected && *is_incoming == incoming)));
            }
        }
    }
}

/// Sends as much on both channels of `from`, and returns how many messages of the second had arrived with the last of
/// the first.
fn behind(
    pair: &mut Pair,
    is_from_client: bool,
    [first, second]: [(ChannelId, ChannelId); 2],
) -> usize {
    const COUNT: usize = 200;
    let now = pair.now;
    let (from, to) = if is_from_client {
        (&mut pair.client, &mut pair.server)
    } else {
        (&mut pair.server, &mut pair.client)
    };
    to.events.clear();
    for _ in 0..COUNT {
        for (channel, _) in [second, first] {
            from.agent.send(now, channel, &Message::binary(vec![7; 1000])).unwrap();
        }
    }
    let host =
        |pair: &Pair| if is_from_client { &pair.server } else { &pair.client }.events.clone();
    let count = |events: &[Event], of| messages(events).iter().filter(|it| it.0 == of).count();
    pair.run_until(|pair| count(&host(pair), first.1) == COUNT);
    let behind = count(&host(pair), second.1);
    pair.run_until(|pair| count(&host(pair), second.1) == COUNT);
    behind
}

#[test]
fn channels_send_in_proportion_to_their_priorities_on_the_side_that_opened_them_and_on_the_other() {
    let mut pair = Pair::with(IceMode::Lite, 1);
    pair.connect();
    let opened = |pair: &mut Pair, label: &str, priority| {
        let config = ChannelConfig::new(label).priority(priority);
        let ours = pair.client.agent.open(pair.now, config).unwrap();
        let known = Event::ChannelOpened {
            channel: ours,
            config: ChannelConfig::new(label).priority(priority),
            is_incoming: false,
        };
        pair.run_until(|pair| pair.client.has(|event| *event == known));
        (ours, incoming(&pair.server.events, label))
    };
    let (high, normal) = (opened(&mut pair, "high", 1024), opened(&mut pair, "normal", 256));
    let reversed = |(ours, theirs)| (theirs, ours);
    // A fifth of the bytes is a quarter of the others'.
    let behind_of_client = behind(&mut pair, true, [high, normal]);
    assert!((35..=65).contains(&behind_of_client), "{behind_of_client}");
    let behind_of_server = behind(&mut pair, false, [reversed(high), reversed(normal)]);
    assert!((35..=65).contains(&behind_of_server), "{behind_of_server}");
    // As some peers announce all of their channels.
    let without = opened(&mut pair, "without", 0);
    let equal = behind(&mut pair, false, [reversed(without), reversed(normal)]);
    assert!(equal >= 185, "{equal}");
    // The stream of a closed channel does not keep its priority.
    pair.client.agent.close_channel(pair.now, high.0);
    pair.run_until(|pair| was_closed(&pair.client.events, high.0));
    let other = opened(&mut pair, "other", 256);
    let equal = behind(&mut pair, true, [other, normal]);
    assert!(equal >= 185, "{equal}");
}

#[test]
fn each_kind_of_message_arrives_as_it_was_sent() {
    let mut pair = Pair::with(IceMode::Full, 1);
    let now = pair.now;
    let channel = pair.client.agent.open(now, ChannelConfig::new("all")).unwrap();
    assert_eq!(
        pair.client.agent.send(now, channel, &Message::text("early")),
        Err(SendError::NotConnected.into())
    );
    pair.connect();
    let largest = vec![7; 256 * 1024];
    let all = [
        Message::text(""),
        Message::binary(Vec::new()),
        Message::text("text"),
        Message::binary(largest.clone()),
    ];
    for message in &all {
        pair.client.agent.send(pair.now, channel, message).unwrap();
    }
    let too_large = Message::binary([&largest[..], &[7]].concat());
    let refused = pair.client.agent.send(pair.now, channel, &too_large);
    assert_eq!(refused, Err(SendError::TooLarge { limit: largest.len() }.into()));
    pair.run_until(|pair| messages(&pair.server.events).len() == all.len());
    let received = messages(&pair.server.events);
    assert!(received.into_iter().map(|(_, message)| message).eq(all));
}

#[test]
fn a_negotiated_channel_is_there_without_being_opened() {
    let mut pair = Pair::with(IceMode::Full, 1);
    let config = ChannelConfig::new("known").negotiated(Some(7));
    let now = pair.now;
    let ours = pair.client.agent.open(now, config.clone()).unwrap();
    let theirs = pair.server.agent.open(now, config.clone()).unwrap();
    assert_eq!(pair.client.agent.open(now, config), Err(OpenError::InUse(7)));
    pair.connect();
    pair.client.agent.send(pair.now, ours, &Message::text("one")).unwrap();
    pair.server.agent.send(pair.now, theirs, &Message::text("two")).unwrap();
    pair.run_until(|pair| {
        !messages(&pair.client.events).is_empty() && !messages(&pair.server.events).is_empty()
    });
    assert_eq!(messages(&pair.server.events), [(theirs, Message::text("one"))]);
    assert_eq!(messages(&pair.client.events), [(ours, Message::text("two"))]);
}

#[test]
fn accepted_messages_arrive_before_a_channel_is_closed_and_its_stream_is_reused() {
    let mut pair = Pair::with(IceMode::Lite, 1);
    pair.loss = 0.05;
    let first = pair.client.agent.open(pair.now, ChannelConfig::new("first")).unwrap();
    pair.connect();
    for n in 0..50 {
        pair.client.agent.send(pair.now, first, &Message::text(format!("{n}"))).unwrap();
    }
    pair.client.agent.close_channel(pair.now, first);
    assert_eq!(
        pair.client.agent.send(pair.now, first, &Message::text("late")),
        Err(SendError::NoSuchChannel.into())
    );
    pair.run_until(|pair| was_closed(&pair.client.events, first));
    let theirs = incoming(&pair.server.events, "first");
    pair.run_until(|pair| was_closed(&pair.server.events, theirs));
    assert_eq!(messages(&pair.server.events).len(), 50);
    let closed_at = pair.server.events.iter().position(|it| *it == Event::ChannelClosed(theirs));
    assert_eq!(closed_at, Some(pair.server.events.len() - 1));

    // The server closes the next one.
    let second = pair.client.agent.open(pair.now, ChannelConfig::new("second")).unwrap();
    assert_ne!(first, second);
    pair.client.agent.send(pair.now, second, &Message::text("hello")).unwrap();
    pair.run_until(|pair| messages(&pair.server.events).len() == 51);
    let theirs = incoming(&pair.server.events, "second");
    pair.server.agent.close_channel(pair.now, theirs);
    pair.run_until(|pair| {
        was_closed(&pair.client.events, second) && was_closed(&pair.server.events, theirs)
    });
}

#[test]
fn more_channels_than_the_limit_are_closed_again() {
    let server = config(SERVER).max_channels(5);
    let mut pair = Pair::new(config(CLIENT), server, 1);
    let open = |pair: &mut Pair, n| {
        pair.client.agent.open(pair.now, ChannelConfig::new(format!("{n}"))).unwrap()
    };
    let all: Vec<ChannelId> = (0..8).map(|n| open(&mut pair, n)).collect();
    let closed =
        |pair: &Pair| all.iter().filter(|&&it| was_closed(&pair.client.events, it)).count();
    pair.connect();
    pair.run_for(Duration::from_secs(2));
    let opened = pair.server.events.iter().filter(|it| matches!(it, Event::ChannelOpened { .. }));
    assert_eq!((opened.count(), pair.server.agent.dropped_messages()), (5, 3));
    assert!(closed(&pair) <= 3);
    for _ in 0..5 {
        let refused = pair.server.agent.open(pair.now, ChannelConfig::new(""));
        assert_eq!(refused, Err(OpenError::TooMany { limit: 5 }));
    }
    let long = ChannelConfig::new("x".repeat(1025));
    let refused = pair.client.agent.open(pair.now, long);
    assert_eq!(refused, Err(OpenError::LabelTooLong { limit: 1024 }));
}

#[test]
fn the_buffered_amount_falls_to_its_threshold_once() {
    let mut pair = Pair::with(IceMode::Full, 1);
    let channel = pair.client.agent.open(pair.now, ChannelConfig::new("bulk")).unwrap();
    pair.connect();
    pair.run_for(Duration::from_secs(1));
    pair.client.agent.set_buffered_amount_low_threshold(channel, 10_000);
    let message = Message::binary(vec![0; 50_000]);
    let mut accepted = 0;
    let full = loop {
        match pair.client.agent.send(pair.now, channel, &message) {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full, TrySendError::Full);
    assert_eq!(pair.client.agent.buffered_amount(channel), accepted * 50_000);
    pair.run_until(|pair| messages(&pair.server.events).len() == accepted);
    assert_eq!(pair.client.agent.buffered_amount(channel), 0);
    let low = pair.client.events.iter().filter(|it| **it == Event::BufferedAmountLow(channel));
    assert_eq!(low.count(), 1);
    assert!(pair.client.has(|event| *event == Event::Writable));
}

#[test]
fn an_abandoned_message_is_skipped() {
    let mut pair = Pair::with(IceMode::Full, 1);
    let config = ChannelConfig::new("snapshots")
        .ordered(false)
        .reliability(Reliability::MaxRetransmissions(0));
    let channel = pair.client.agent.open(pair.now, config).unwrap();
    pair.connect();
    pair.run_for(Duration::from_secs(1));
    pair.loss = 0.3;
    for n in 0..100 {
        pair.client.agent.send(pair.now, channel, &Message::text(format!("{n}"))).unwrap();
        pair.run_for(Duration::from_millis(50));
    }
    pair.loss = 0.0;
    pair.run_for(Duration::from_secs(10));
    let count = messages(&pair.server.events).len();
    assert!((50..90).contains(&count), "{count}");
    pair.client.agent.send(pair.now, channel, &Message::text("last")).unwrap();
    pair.run_until(|pair| messages(&pair.server.events).len() == count + 1);
}

#[test]
fn a_message_on_a_stream_without_a_channel_closes_it() {
    let mut pair = Pair::with(IceMode::Full, 1);
    let config = ChannelConfig::new("known to one side").negotiated(Some(8));
    let channel = pair.client.agent.open(pair.now, config).unwrap();
    pair.connect();
    pair.client.agent.send(pair.now, channel, &Message::text("for whom?")).unwrap();
    pair.run_until(|pair| was_closed(&pair.client.events, channel));
    assert_eq!(messages(&pair.server.events), []);
    assert_eq!(pair.server.agent.dropped_messages(), 1);
}

/// RFC 8832 §6: messages of an unordered channel are sent in order until the peer has acknowledged it.
#[test]
fn no_message_overtakes_the_opening_of_its_channel() {
    for seed in 0..20 {
        let mut pair = Pair::with(IceMode::Lite, seed);
        pair.connect();
        pair.run_for(Duration::from_secs(1));
        pair.loss = 0.3;
        let config = ChannelConfig::new("unordered").ordered(false);
        let channel = pair.client.agent.open(pair.now, config).unwrap();
        for n in 0..20 {
            let message = Message::binary(vec![n; 1000]);
            pair.client.agent.send(pair.now, channel, &message).unwrap();
        }
        pair.run_until(|pair| messages(&pair.server.events).len() == 20);
        assert!(!was_closed(&pair.client.events, channel), "{seed}");
    }
}

/// RFC 8832 §6: an OPEN on a stream that is in use closes the channel that has it.
#[test]
fn a_channel_that_is_opened_on_a_used_stream_is_closed() {
    let mut pair = Pair::with(IceMode::Full, 1);
    // The first stream of the client's, which is the DTLS server.
    let theirs = ChannelConfig::new("in the way").negotiated(Some(1));
    let theirs = pair.server.agent.open(pair.now, theirs).unwrap();
    let ours = pair.client.agent.open(pair.now, ChannelConfig::new("opened")).unwrap();
    pair.run_until(|pair| {
        was_closed(&pair.client.events, ours) && was_closed(&pair.server.events, theirs)
    });
    assert_eq!(pair.server.agent.dropped_messages(), 1);
    let again = pair.client.agent.open(pair.now, ChannelConfig::new("again")).unwrap();
    pair.run_until(|pair| {
        pair.client
            .has(|it| matches!(it, Event::ChannelOpened { channel, .. } if *channel == again))
    });
}

#[test]
fn records_from_where_the_peer_has_not_shown_itself_are_dropped() {
    let mut pair = Pair::with(IceMode::Lite, 1);
    pair.connect();
    let mut packet = Vec::new();
    let channel = pair.client.agent.open(pair.now, ChannelConfig::new("moved")).unwrap();
    pair.client.agent.send(pair.now, channel, &Message::text("hello")).unwrap();
    let stranger = "203.0.113.9:4000".parse().unwrap();
    while pair.client.agent.poll_transmit(pair.now, &mut packet).is_some() {
        let route = rexmit_core::Route { local: pair.server.address, remote: stranger };
        pair.server.agent.handle_input(pair.now, route, &packet);
    }
    let sent_to = |pair: &mut Pair, at| {
        let mut packet = Vec::new();
        let agent = &mut pair.server.agent;
        std::iter::from_fn(|| agent.poll_transmit(at, &mut packet)).any(|it| it.remote == stranger)
    };
    let now = pair.now;
    assert!(!sent_to(&mut pair, now) && pair.server.agent.poll_event().is_none());
    // The dropped packets are retransmitted to the server's address.
    pair.run_until(|pair| messages(&pair.server.events).len() == 1);
}

#[test]
fn the_peer_is_notified_of_the_end() {
    let mut pair = Pair::with(IceMode::Lite, 1);
    pair.connect();
    pair.client.agent.close(pair.now);
    let end = |events: &[Event]| events.last().cloned();
    pair.run_until(|pair| pair.server.agent.is_drained());
    assert_eq!(end(&pair.client.events), Some(Event::Closed(CloseReason::Local)));
    assert_eq!(end(&pair.server.events), Some(Event::Closed(CloseReason::Peer)));
    assert_eq!(pair.client.agent.poll_timeout(), None);
    assert_eq!(pair.server.agent.poll_timeout(), None);
}

#[test]
fn nothing_is_sent_to_a_silent_peer_after_its_consent_expires() {
    for mode in MODES {
        let mut pair = Pair::with(mode, 1);
        pair.connect();
        // A peer that answers stays connected.
        pair.run_for(Duration::from_secs(120));
        assert!(!pair.server.agent.is_closed() && !pair.client.agent.is_closed());
        pair.loss = 1.0;
        let begun = pair.now;
        pair.run_until(|pair| pair.server.agent.is_drained());
        let reason = CloseReason::ConsentExpired(Duration::from_secs(30));
        assert_eq!(pair.server.events.last(), Some(&Event::Closed(reason)));
        // Consent was renewed at most some seconds before.
        let after = pair.now - begun;
        assert!((20..=30).contains(&after.as_secs()), "{after:?}");
        assert_eq!(pair.server.agent.poll_transmit(pair.now, &mut Vec::new()), None);
    }
}

#[test]
fn a_failed_setup_reports_its_stage() {
    let mut pair = Pair::with(IceMode::Lite, 1);
    pair.loss = 1.0;
    pair.run_for(Duration::from_secs(31));
    let reason = CloseReason::SetupTimedOut(Stage::Ice, Duration::from_secs(30));
    for host in [&pair.client, &pair.server] {
        assert_eq!(host.events, [Event::Closed(reason.clone())]);
    }
}

#[test]
fn a_peer_with_another_certificate_is_refused_by_name() {
    for tampered in ["offer", "answer"] {
        let now = Instant::from_millis(1);
        let other = Fingerprint::of(b"another certificate");
        let (client_identity, server_identity) =
            (Identity::generate().unwrap(), Identity::generate().unwrap());
        let client = settings(config(CLIENT).identity(client_identity.clone()));
        let server = settings(config(SERVER).identity(server_identity.clone()));
        let (mut client, mut offer) = Agent::offer(now, client, &Seed::from_u64(1));
        if tampered == "offer" {
            offer.fingerprints = vec![other];
        }
        let (server, mut answer) = Agent::answer(now, server, &offer, &Seed::from_u64(2)).unwrap();
        if tampered == "answer" {
            answer.fingerprints = vec![other];
        }
        client.accept(now, &answer).unwrap();
        let mut pair = Pair::of(now, client, server, &Seed::from_u64(3));
        pair.run_for(Duration::from_secs(40));
        let (refusing, refused, shown) = match tampered {
            "offer" => (&pair.server, &pair.client, client_identity.fingerprint()),
            _ => (&pair.client, &pair.server, server_identity.fingerprint()),
        };
        let reason = CloseReason::Dtls(HandshakeError::Untrusted(shown));
        assert_eq!(refusing.events, [Event::Closed(reason.clone())], "{tampered}");
        let told = CloseReason::Dtls(HandshakeError::RefusedByPeer(shown));
        assert_eq!(refused.events, [Event::Closed(told)], "{tampered}");
        assert!(reason.to_string().contains(&shown.to_string()));
        assert!(!pair.client.is_connected() && !pair.server.is_connected());
    }
}

/// The reset of a channel's stream may arrive before the application reads the announcement of the channel.
#[test]
fn channels_that_are_closed_at_once_are_closed_on_both_sides() {
    const CHANNELS: usize = 50;
    let mut pair = Pair::with(IceMode::Lite, 1);
    pair.connect();
    pair.run_for(Duration::from_secs(1));
    for n in 0..CHANNELS {
        let channel = pair.client.agent.open(pair.now, ChannelConfig::new(format!("{n}")));
        pair.client.agent.close_channel(pair.now, channel.unwrap());
    }
    pair.run_for(Duration::from_secs(20));
    let count =
        |events: &[Event], is: fn(&Event) -> bool| events.iter().filter(|it| is(it)).count();
    let closed = |event: &Event| matches!(event, Event::ChannelClosed(_));
    let opened = |event: &Event| matches!(event, Event::ChannelOpened { .. });
    assert_eq!(count(&pair.server.events, opened), CHANNELS);
    assert_eq!(count(&pair.server.events, closed), CHANNELS);
    assert_eq!(count(&pair.client.events, closed), CHANNELS);
}

#[test]
fn descriptions_that_do_not_fit_are_refused() {
    let now = Instant::from_millis(1);
    let lite = || settings(config(SERVER).ice(IceMode::Lite));
    let (mut client, offer) = Agent::offer(now, lite(), &Seed::from_u64(1));
    let refused = Agent::answer(now, lite(), &offer, &Seed::from_u64(2)).map(drop);
    assert_eq!(refused, Err(OfferError::BothLite));
    let full = settings(config(SERVER));
    let (mut server, mut answer) = Agent::answer(now, full, &offer, &Seed::from_u64(2)).unwrap();
    assert_eq!(server.accept(now, &answer), Err(OfferError::NotWaiting));
    answer.setup = Setup::ActPass;
    assert_eq!(client.accept(now, &answer), Err(OfferError::Setup("actpass", "answer")));
    answer.setup = Setup::Active;
    assert_eq!(client.accept(now, &answer), Ok(()));
    assert_eq!(client.accept(now, &answer), Err(OfferError::NotWaiting));
}

/// The messages that do not arrive within 35 ms, less than a round trip, of 600 over a path that loses a
/// tenth; and the events about deadlines.
fn late(deadline: Option<Deadline>) -> (usize, Vec<Event>) {
    let mut pair = Pair::with(IceMode::Lite, 1);
    pair.connect();
    let channel = ChannelConfig::new("inputs").ordered(false).deadline(deadline);
    let channel = pair.client.agent.open(pair.now, channel).unwrap();
    pair.run_for(Duration::from_millis(200));
    pair.loss = 0.1;
    let mut late = 0;
    for number in 0..600_u16 {
        pair.server.events.clear();
        let message = Message::Binary(number.to_be_bytes().to_vec().into());
        pair.client.agent.send(pair.now, channel, &message).unwrap();
        pair.run_for(Duration::from_millis(35));
        let arrived = messages(&pair.server.events);
        late += usize::from(!arrived.iter().any(|(_, arrived)| *arrived == message));
    }
    let mut events = pair.client.events;
    events.retain(|event| matches!(event, Event::Infeasible { .. }));
    (late, events)
}

/// As the channel's configuration says, and the peer need not know.
#[test]
fn messages_of_a_channel_with_a_deadline_have_copies() {
    let (without, _) = late(None);
    assert!(without > 30, "{without} late");
    let (with, infeasible) = late(Some(Deadline::new(Duration::from_millis(35), 0.98)));
    // 12 are expected at most, with a deviation of 3.5.
    assert!(with <= 26 && infeasible.is_empty(), "{with} late, {infeasible:?}");
    let (_, infeasible) = late(Some(Deadline::new(Duration::from_millis(10), 0.98)));
    assert_eq!(infeasible, [Event::Infeasible { achievable_ppm: 0 }], "the path takes 20 ms");
}
