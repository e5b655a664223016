//! What acknowledgements tell the recovery timer of the time that answers take.

use std::time::Duration;

use rexmit_core::Instant;

use super::LossRecovery;
use super::overdue::Watch;
use crate::PacketNumber;
use crate::recovery_timer::Round;

/// What the acknowledgement being processed answers of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Heard {
    /// Packets, and the last of them.
    packets: u32,
    packet: Option<PacketNumber>,
    /// When the newest of them left.
    newest: Option<Instant>,
    /// When the newest and the oldest left of those that nothing repeated before they were answered.
    certain: Option<(Instant, Instant)>,
    /// Something was answered before it was repeated, by copies on purpose apart.
    is_in_time: bool,
    /// When that left whose timestamp is echoed, give or take a tick.
    pub(super) echo: Option<(Instant, Duration)>,
}

/// A unit that is acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    pub(super) unit: u64,
    pub(super) group: u8,
    pub(super) path: u8,
    pub(super) packet: PacketNumber,
    pub(super) sent_at: Option<Instant>,
    /// It left once.
    pub(super) is_first_copy: bool,
    /// Copies of it left on purpose.
    pub(super) is_copied: bool,
}

impl<P> LossRecovery<P> {
    /// A unit is acknowledged.
    pub(super) fn note_answer(&mut self, now: Instant, answered: Answered) {
        let Answered { unit, group, path, packet, sent_at, is_first_copy, is_copied } = answered;
        let is_timed = self.groups.timed() & (1 << group) != 0 && self.is_thin(group);
        let Some(watch) = self.paths[usize::from(path)].watch.as_mut().filter(|_| is_timed) else {
            return;
        };
        let is_packet = watch.heard.packet.replace(packet) != Some(packet);
        watch.heard.packets += u32::from(is_packet);
        watch.heard.is_in_time |= is_first_copy;
        if is_packet && is_first_copy {
            watch.answers.on_first_waited(false);
        }
        let certain = match (is_first_copy, is_copied) {
            (true, false) => sent_at,
            (true, true) => None,
            // It was answered sooner than anything is: that was for the copy before.
            (false, _) => watch.too_short().and_then(|shortest| {
                let log = self.log.as_mut()?;
                log.first_copies.answered_before_repeat(now, (unit, path), shortest)
            }),
        };
        match certain {
            Some(sent_at) => watch.note_certain(sent_at),
            None => watch.heard.newest = watch.heard.newest.max(sent_at),
        }
    }

    /// The answer to a packet, or to copies of what is in it, did not come in time.
    pub(super) fn note_overdue(
        &mut self,
        path: u8,
        (at, packet): (Instant, PacketNumber),
        round: Round,
    ) {
        let is_itself = self.ledger.packet(packet).is_some_and(|packet| packet.sent_at == at);
        if let (true, Round::First, Some(watch)) =
            (is_itself, round, &mut self.path_mut(path).watch)
        {
            watch.answers.on_first_waited(true);
        }
    }

    /// A unit that left once is acknowledged by its own packet, though copies of it left.
    pub(super) fn note_answer_of_copied(&mut self, path: u8, sent_at: Option<Instant>) {
        if let (Some(watch), Some(sent_at)) = (&mut self.path_mut(path).watch, sent_at) {
            watch.note_certain(sent_at);
        }
    }

    /// What the acknowledgement being processed tells of the time that answers take.
    #[inline]
    pub(super) fn learn_answers(&mut self, now: Instant) {
        for path in &mut self.paths {
            if let Some(watch) = &mut path.watch {
                watch.learn(now, path.ack.bytes > 0);
            }
        }
    }

    /// A unit that the timer sent again had arrived, as a duplicate report tells. Its acknowledgement
    /// was late, or it never came.
    pub(super) fn note_needless(&mut self, now: Instant, unit: u64) {
        let Some(first) = self.log.as_ref().and_then(|log| log.first_copies.of(unit)) else {
            return;
        };
        if first.is_answered {
            return;
        }
        self.statistics.acks_missed += 1;
        if let Some(watch) = &mut self.path_mut(first.path).watch {
            watch.answers.on_judged(true);
            if watch.answers.are_delayed() {
                watch.answers.on_answer(first.acked_at.unwrap_or(now) - first.sent_at);
            }
        }
    }
}

impl Watch {
    fn note_certain(&mut self, sent_at: Instant) {
        let certain = &mut self.heard.certain;
        *certain = Some(match *certain {
            None => (sent_at, sent_at),
            Some((newest, oldest)) => (newest.max(sent_at), oldest.min(sent_at)),
        });
        self.heard.newest = self.heard.newest.max(Some(sent_at));
    }

    fn learn(&mut self, now: Instant, has_heard: bool) {
        if has_heard {
            self.heard_at = now;
            self.is_resting = false;
        }
        // Others may be answers to what was repeated too early, and tell nothing of how early.
        if self.heard.is_in_time || self.heard.certain.is_some() {
            self.unheard = 0;
        }
        let heard = std::mem::take(&mut self.heard);
        if heard.packets == 0 {
            return;
        }
        self.answers.on_judged(false);
        if heard.echo.is_none() {
            // Who delays answers does so for every second packet (RFC 9260 §6.2): the others were lost.
            (1..heard.packets.min(2)).for_each(|_| self.answers.on_judged(true));
        }
        let Some((newest, oldest)) = heard.certain else { return };
        let is_by_itself = Some(newest) == heard.newest;
        if is_by_itself {
            self.answers.on_answer(now - newest);
        }
        let is_delayed = match heard.echo {
            // What was sent again may be what was answered: the receiver answers a duplicate at once.
            Some(_) => is_by_itself && heard.echoes(oldest),
            None => self.answers.are_delayed(),
        };
        if is_delayed && (oldest < newest || !is_by_itself) {
            self.answers.on_answer(now - oldest);
        }
    }

    /// No answer is shorter: not much, if all that were measured may be delayed.
    fn too_short(&self) -> Option<Duration> {
        let at_once = self.at_once.map_or(Duration::MAX, |rtt| rtt - rtt / 4);
        self.answers.too_short().map(|shortest| shortest.min(at_once))
    }
}

impl Heard {
    /// Whether the timestamp may be that of what left at `sent_at`: the earliest that the
    /// acknowledgement is for (RFC 7323 §4.3). With a later one, that of `sent_at` was lost.
    fn echoes(&self, sent_at: Instant) -> bool {
        let is_near = |(echo, tick)| sent_at <= echo + tick && echo <= sent_at + tick;
        self.echo.is_some_and(is_near)
    }
}
