//! The ClientHello until the peer answers it.
//!
//! If it is lost, DTLS retransmits it after a time that is chosen without knowledge of the round trip. A browser sends
//! checks until it may send data, one in 48 ms, and each of them is an occasion to repeat the ClientHello at once. What
//! is repeated is the same record, which a peer that has got it drops as a replay (RFC 6347 §4.1.2.6).

use std::time::Duration;

use rexmit_core::Instant;

/// The shortest time between two copies: several checks of one peer may arrive together, one for each of its candidates.
const SPACING: Duration = Duration::from_millis(20);
/// Copies besides those of DTLS itself. With a peer that never answers, DTLS goes on alone.
const MAX_COPIES: u8 = 5;

/// A ClientHello without an answer.
#[derive(Default)]
pub(super) struct Hello {
    datagrams: Vec<Vec<u8>>,
    sent_at: Instant,
    copies: u8,
}

impl Hello {
    pub(super) fn sent<'a>(now: Instant, datagrams: impl Iterator<Item = &'a [u8]>) -> Self {
        Self { datagrams: datagrams.map(<[u8]>::to_vec).collect(), sent_at: now, copies: 0 }
    }

    /// Called when the peer has sent anything of DTLS.
    pub(super) fn on_answer(&mut self) {
        self.datagrams = Vec::new();
    }

    /// The datagrams to be repeated after a check of the peer.
    pub(super) fn on_check(&mut self, now: Instant) -> impl Iterator<Item = Vec<u8>> {
        let is_due = now >= self.sent_at + SPACING && self.copies < MAX_COPIES;
        if is_due {
            self.sent_at = now;
            self.copies += 1;
        }
        self.datagrams.iter().filter(move |_| is_due).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_repeat_the_hello_with_space_and_a_limit_until_it_is_answered() {
        let mut now = Instant::from_millis(1000);
        let sent = || Hello::sent(Instant::from_millis(1000), [&b"hello"[..]].into_iter());
        let mut hello = sent();
        now += SPACING - Duration::from_millis(1);
        assert_eq!(hello.on_check(now).count(), 0);
        now += Duration::from_millis(1);
        assert_eq!(hello.on_check(now).collect::<Vec<_>>(), [b"hello".to_vec()]);
        assert_eq!(hello.on_check(now).count(), 0);
        let mut copies = 1;
        for _ in 0..100 {
            now += SPACING;
            copies += hello.on_check(now).count();
        }
        assert_eq!(copies, usize::from(MAX_COPIES));
        let mut hello = sent();
        hello.on_answer();
        assert_eq!(hello.on_check(now).count(), 0);
    }
}
