//! Events of an association as text, for `--verbose`.

use rexmit::{AddressChange, CloseReason, Event, FailReason, PathState};

/// The event as a line of text.
pub(crate) fn in_words(event: &Event) -> String {
    match event {
        Event::MessageSent(id) => format!("message {} was sent", id.0),
        Event::MessageAcknowledged(id) => format!("message {} was acknowledged", id.0),
        Event::MessageFailed { id, reason, .. } => {
            format!("message {} failed: {}", id.0, failure(*reason))
        }
        Event::PeerShutdown => "the peer shuts down and accepts no more messages".into(),
        Event::PeerRestarted => "the peer restarted: unacknowledged messages failed".into(),
        Event::StreamsReset { streams: list, performed: true } => {
            format!("outgoing {} reset", streams(list))
        }
        Event::StreamsReset { streams: list, performed: false } => {
            format!("the peer refused to reset outgoing {}", streams(list))
        }
        Event::MessageDropped { stream, .. } => {
            format!("a message of the peer on stream {stream} was dropped: it is too large")
        }
        Event::PeerResetStreams(list) => format!("the peer reset incoming {}", streams(list)),
        Event::PathStatus { path, address, state } => {
            format!("path {path} to {address} is {}", path_state(*state))
        }
        Event::DataPathChanged { path, address } => {
            format!("new data is sent over path {path} to {address}")
        }
        Event::PeerAddressAdded { path, address } => {
            format!("the peer added the address {address} (path {path})")
        }
        Event::PeerAddressDeleted { path, address } => {
            format!("the peer deleted the address {address} (path {path})")
        }
        Event::AddressChanged { change, refused: None } => {
            format!("the peer accepted: {}", address_change(*change))
        }
        Event::AddressChanged { change, refused: Some(cause) } => {
            format!("the peer refused with cause {cause}: {}", address_change(*change))
        }
        Event::PeerError(cause) => format!("the peer reported the error {cause}"),
        Event::EventsDropped(missed) => format!(
            "{} events were not shown, {} of them failed messages",
            missed.events, missed.messages_failed
        ),
        Event::Closed(reason) => format!("the association is closed: {}", close(reason)),
        _ => "an unknown event".into(),
    }
}

fn failure(reason: FailReason) -> &'static str {
    match reason {
        FailReason::Expired => "its lifetime ended",
        FailReason::RetransmissionLimit => "it reached its limit of retransmissions",
        FailReason::NoSuchStream => "the peer has no such stream",
        FailReason::AssociationEnded => "the association ended before it was acknowledged",
        _ => "for an unknown reason",
    }
}

fn streams(list: &[u16]) -> String {
    match list {
        [] => "streams (all)".into(),
        list => {
            let numbers: Vec<String> = list.iter().map(u16::to_string).collect();
            format!("streams {}", numbers.join(", "))
        }
    }
}

fn path_state(state: PathState) -> &'static str {
    match state {
        PathState::Active => "active",
        PathState::PotentiallyFailed => "potentially failed",
        PathState::Inactive => "inactive",
        PathState::Unconfirmed => "unconfirmed",
        PathState::Removed => "removed",
        _ => "in another state",
    }
}

fn address_change(change: AddressChange) -> String {
    match change {
        AddressChange::Added(address) => format!("{address} added"),
        AddressChange::Deleted(address) => format!("{address} deleted"),
        AddressChange::Preferred(address) => format!("{address} preferred"),
        _ => "an unknown change".into(),
    }
}

fn close(reason: &CloseReason) -> String {
    match reason {
        CloseReason::Shutdown => "shutdown complete".into(),
        CloseReason::Aborted { reason } => format!("aborted: {}", reason.escape_ascii()),
        CloseReason::AbortedByPeer { cause, reason } if reason.is_empty() => {
            format!("aborted by the peer, cause {cause}")
        }
        CloseReason::AbortedByPeer { cause, reason } => {
            format!("aborted by the peer, cause {cause}: {}", reason.escape_ascii())
        }
        CloseReason::Unreachable => "the peer does not answer".into(),
        CloseReason::ConnectTimedOut => "the peer did not answer the connection attempt".into(),
        _ => "for an unknown reason".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sentences_and_not_debug_output() {
        let address = "192.0.2.1:9899".parse().unwrap();
        let events = [
            (Event::PeerResetStreams(vec![]), "the peer reset incoming streams (all)"),
            (
                Event::StreamsReset { streams: vec![1, 2], performed: true },
                "outgoing streams 1, 2 reset",
            ),
            (
                Event::PathStatus { path: 1, address, state: PathState::Inactive },
                "path 1 to 192.0.2.1:9899 is inactive",
            ),
            (Event::Closed(CloseReason::Shutdown), "the association is closed: shutdown complete"),
        ];
        for (event, words) in events {
            assert_eq!(in_words(&event), words);
            assert_ne!(words, format!("{event:?}"));
        }
    }
}
