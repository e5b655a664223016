//! Data between two connections, over clean and bad links.

use super::*;
use crate::event::CloseReason;

fn stream(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

/// Both ends send `len` bytes and finish; the received bytes must equal the sent ones.
fn exchange(pair: &mut Pair, len: usize, fate: impl FnMut(&mut Rng, &[u8]) -> Fate) {
    let bytes = stream(len);
    let (mut from_a, mut from_b) = (0, 0);
    pair.run(fate, |pair| {
        let now = pair.now;
        for (end, sent) in [(&mut pair.a, &mut from_a), (&mut pair.b, &mut from_b)] {
            if *sent < len && end.connection.state().is_synchronized() {
                *sent += end.send(now, &bytes[*sent..]);
                if *sent == len {
                    end.call(now, Connection::finish);
                }
            }
            end.read(now);
        }
        let is_over = |end: &End| matches!(end.connection.state(), State::TimeWait | State::Closed);
        is_over(&pair.a) && is_over(&pair.b)
    });
    for end in [&pair.a, &pair.b] {
        assert_eq!(end.received.len(), len);
        assert!(end.received == bytes);
        assert_eq!(end.events.last(), Some(&Event::Closed(CloseReason::Finished)));
    }
}

#[test]
fn the_connection_is_reported_at_both_ends() {
    let pair = Pair::established(config(), config());
    for (end, incoming) in [(&pair.a, false), (&pair.b, true)] {
        assert!(matches!(end.events[..], [Event::Connected { incoming: i, .. }] if i == incoming));
        assert_eq!(end.connection.state(), State::Established);
        assert!(end.connection.timestamps.is_some());
    }
}

#[test]
fn a_megabyte_each_way_over_a_clean_link() {
    let mut pair = Pair::established(config(), config());
    exchange(&mut pair, 1_000_000, |_, _| Fate::Deliver);
    for end in [&pair.a, &pair.b] {
        assert_eq!(end.connection.statistics().recovery.retransmitted.total(), 0);
        assert_eq!(end.connection.statistics().traffic.duplicates_received, 0);
    }
}

#[test]
fn data_survives_loss_reordering_and_duplication_whatever_is_agreed_on() {
    for variant in 0..32 {
        let change = |mut config: ConnectionConfig| {
            config.sack = variant & 1 == 0;
            config.timestamps = variant & 2 == 0;
            config.window_scaling = variant & 4 == 0;
            config.nagle = variant & 8 == 0;
            if variant & 16 != 0 {
                config.receive_buffer_bytes = 20_000;
            }
            config
        };
        let mut pair = Pair::new(change(config()), change(config()));
        exchange(&mut pair, 150_000, |rng, _| match rng.below(100) {
            0..5 => Fate::Lose,
            5..8 => Fate::Duplicate,
            8..16 => Fate::Delay(Duration::from_millis(rng.below(30))),
            _ => Fate::Deliver,
        });
    }
}
