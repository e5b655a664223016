//! ICE restarts (RFC 8445 §9): by either side, while messages are sent and lost, and from another address.

mod common;

use std::time::Duration;

use common::{CLIENT, Pair, address, config, settings};
use rexmit_core::Seed;
use rexmit_dtls::Fingerprint;
use rexmit_webrtc::{
    Agent, ChannelConfig, ChannelId, Description, Event, IceMode, MAX_PEER_ADDRESSES, Message,
    OfferError, Setup,
};

const MODES: [IceMode; 2] = [IceMode::Full, IceMode::Lite];

/// The description as it arrives on the other side.
fn sent(description: &Description) -> Description {
    description.to_string().parse().unwrap()
}

/// A connection over a lossy network, and the client's ordered channel.
fn connected(mode: IceMode, seed: u64) -> (Pair, ChannelId) {
    let mut pair = Pair::with(mode, seed);
    let now = pair.now;
    let channel = pair.client.agent.open(now, ChannelConfig::new("numbers")).unwrap();
    pair.connect();
    pair.loss = 0.05;
    (pair, channel)
}

/// Restarts ICE: at the client, or at the server.
fn restart(pair: &mut Pair, is_by_client: bool) {
    let now = pair.now;
    let (asking, asked) = if is_by_client {
        (&mut pair.client.agent, &mut pair.server.agent)
    } else {
        (&mut pair.server.agent, &mut pair.client.agent)
    };
    let offer = asking.restart_ice(now).unwrap();
    let answer = asked.answer_again(now, &sent(&offer)).unwrap();
    asking.accept(now, &sent(&answer)).unwrap();
}

fn has_restarted(events: &[Event]) -> bool {
    events.contains(&Event::IceRestarted)
}

fn texts(events: &[Event]) -> Vec<String> {
    let text = |event: &Event| match event {
        Event::Message { message, .. } => message.as_text().map(str::to_owned),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

#[test]
fn messages_arrive_once_and_in_order_across_a_restart_by_either_side() {
    for (seed, mode) in MODES.into_iter().cycle().take(8).enumerate() {
        let is_by_client = seed % 4 < 2;
        let (mut pair, channel) = connected(mode, seed as u64);
        for n in 0..200 {
            if n == 60 {
                restart(&mut pair, is_by_client);
            }
            let message = Message::text(n.to_string());
            pair.client.agent.send(pair.now, channel, &message).unwrap();
            pair.run_for(Duration::from_millis(10));
        }
        pair.run_until(|pair| texts(&pair.server.events).len() == 200);
        let expected: Vec<String> = (0..200).map(|n| n.to_string()).collect();
        assert_eq!(texts(&pair.server.events), expected, "{mode:?}");
        pair.run_until(|pair| {
            has_restarted(&pair.client.events) && has_restarted(&pair.server.events)
        });
        // Neither a second handshake nor a second association.
        for host in [&pair.client, &pair.server] {
            let connections = host.events.iter().filter(|it| **it == Event::Connected).count();
            assert!(connections == 1 && !host.agent.is_closed(), "{mode:?}");
        }
    }
}

#[test]
fn a_restart_finds_a_client_that_has_another_address() {
    for (mode, is_by_client) in MODES.into_iter().flat_map(|mode| [(mode, true), (mode, false)]) {
        let (mut pair, channel) = connected(mode, 1);
        pair.client.address = address("203.0.113.9:5000");
        restart(&mut pair, is_by_client);
        pair.client.agent.send(pair.now, channel, &Message::text("moved")).unwrap();
        pair.run_until(|pair| texts(&pair.server.events) == ["moved"]);
        pair.run_until(|pair| has_restarted(&pair.server.events));
        assert_eq!(pair.server.agent.remote(), Some(pair.client.address), "{mode:?}");
        // The former address is forgotten.
        pair.run_for(Duration::from_secs(6));
        assert_eq!(pair.server.agent.peer_addresses(), [pair.client.address], "{mode:?}");
    }
}

#[test]
fn a_restart_without_an_answer_or_a_pair_is_given_up_and_the_connection_goes_on() {
    let (mut pair, channel) = connected(IceMode::Full, 1);
    let first = pair.client.agent.restart_ice(pair.now).unwrap();
    pair.run_for(Duration::from_secs(31));
    assert!(!has_restarted(&pair.client.events) && !pair.client.agent.is_closed());
    // Its answer is too late.
    let answer = pair.server.agent.answer_again(pair.now, &first).unwrap();
    assert_eq!(pair.client.agent.accept(pair.now, &answer), Err(OfferError::NotWaiting));
    pair.run_for(Duration::from_secs(31));
    pair.client.agent.send(pair.now, channel, &Message::text("still there")).unwrap();
    pair.run_until(|pair| texts(&pair.server.events) == ["still there"]);
    restart(&mut pair, true);
    pair.run_until(|pair| has_restarted(&pair.client.events) && has_restarted(&pair.server.events));
}

#[test]
fn an_offer_with_the_same_credentials_is_no_restart() {
    let (mut pair, _) = connected(IceMode::Full, 1);
    let now = pair.now;
    let offer = pair.client.agent.restart_ice(now).unwrap();
    let first = pair.server.agent.answer_again(now, &offer).unwrap();
    let second = pair.server.agent.answer_again(now, &offer).unwrap();
    assert_eq!((&first.ufrag, &first.password), (&second.ufrag, &second.password));
    assert_eq!((first.session, first.version + 1), (second.session, second.version));
    pair.client.agent.accept(now, &first).unwrap();
    pair.run_until(|pair| has_restarted(&pair.client.events));
}

#[test]
fn a_description_of_another_connection_is_refused() {
    let (mut pair, _) = connected(IceMode::Full, 1);
    let now = pair.now;
    let offer = pair.client.agent.restart_ice(now).unwrap();
    let mut with = |change: &dyn Fn(&mut Description)| {
        let mut other = offer.clone();
        change(&mut other);
        pair.server.agent.answer_again(now, &other).map(drop)
    };
    let stranger: Fingerprint = "AB:".repeat(32).trim_end_matches(':').parse().unwrap();
    let refused = Err(OfferError::OtherConnection);
    assert_eq!(with(&|it| it.fingerprints = vec![stranger]), refused);
    assert_eq!(with(&|it| it.fingerprints.push(stranger)), refused);
    assert_eq!(with(&|it| it.sctp_port += 1), refused);
    // The server has answered, so it is the DTLS client.
    assert_eq!(with(&|it| it.setup = Setup::Active), refused);
    assert_eq!(with(&|it| it.setup = Setup::Passive), Ok(()));
    let mut answer = pair.server.agent.answer_again(now, &offer).unwrap();
    assert_eq!(answer.setup, Setup::Active);
    answer.fingerprints = vec![stranger];
    assert_eq!(pair.client.agent.accept(now, &answer), refused);

    // There is no connection before the answer, and none after the end.
    let (mut agent, offer) = Agent::offer(now, settings(config(CLIENT)), &Seed::from_u64(1));
    assert_eq!(agent.restart_ice(now).map(drop), Err(OfferError::NoConnection));
    assert_eq!(agent.answer_again(now, &offer).map(drop), Err(OfferError::NoConnection));
    pair.client.agent.close(now);
    assert_eq!(pair.client.agent.restart_ice(now).map(drop), Err(OfferError::NoConnection));
}

#[test]
fn restarts_without_end_leave_no_more_addresses_than_three_generations_have() {
    let (mut pair, channel) = connected(IceMode::Lite, 1);
    pair.loss = 0.0;
    for n in 0..60 {
        pair.client.address.set_port(10_000 + n);
        restart(&mut pair, true);
        pair.run_for(Duration::from_millis(500));
        assert!(pair.server.agent.peer_addresses().len() <= 3 * MAX_PEER_ADDRESSES);
    }
    assert_eq!(pair.server.agent.peer_addresses().len(), 2);
    pair.client.agent.send(pair.now, channel, &Message::text("last")).unwrap();
    pair.run_until(|pair| texts(&pair.server.events) == ["last"]);
}
