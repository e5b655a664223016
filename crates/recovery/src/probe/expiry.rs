//! The probe timer expires: which packets are retransmitted, and when an expiry is postponed.

use std::time::Duration;

use rexmit_core::Instant;

use super::{MAX_LOOK_AHEAD, ProbeTimer, Round, groups_in_flight};
use crate::outstanding::PacketNumber;
use crate::state::State;

/// A timer that expires this late shows that this host is too busy to process ACKs that have arrived.
const LATE: Duration = Duration::from_millis(2);

impl ProbeTimer {
    /// Postpones an expiry that is handled late, at `now`, because ACKs may have arrived and not been processed yet: by the
    /// time by which it is late, at most by a timeout. Only once: where thousands are late, those that are postponed again and
    /// again would be what makes them late. From then on the connection is unanswered. Returns whether it was postponed.
    pub(crate) fn put_off_late<P>(&mut self, now: Instant, path: u8, state: &State<P>) -> bool {
        let least = self.least_t3(state, path).unwrap_or_default() / 2;
        let Some(probe) = self.paths.get_mut(path) else { return false };
        let late = now - probe.deadline;
        if probe.deadline > now || late < LATE || probe.first_due_at < Instant::FAR_FUTURE {
            return false;
        }
        probe.first_due_at = probe.deadline;
        probe.not_before = now + late.min(least);
        true
    }

    /// Postpones the due probes of `path` that may wait because most connections of the endpoint are unanswered: by
    /// `at_a_time` in this call, and by `longest` in all calls together. Returns whether they wait: false once `longest` is
    /// over, or if none is due.
    pub(crate) fn put_off(
        &mut self,
        now: Instant,
        path: u8,
        at_a_time: Duration,
        longest: Duration,
    ) -> bool {
        let Some(probe) = self.paths.get_mut(path) else { return false };
        if probe.deadline > now || probe.silent.is_some() {
            return false;
        }
        probe.first_due_at = probe.first_due_at.min(probe.deadline);
        let end = probe.first_due_at + longest;
        probe.not_before = end.min(now + at_a_time).max(probe.not_before);
        now < end
    }

    /// Removes the packets whose timer has expired from the queue of `round`, and returns them.
    pub(crate) fn take_expired<P>(
        &mut self,
        now: Instant,
        path: u8,
        round: Round,
        state: &State<P>,
    ) -> Vec<(Instant, PacketNumber)> {
        let mut due = Vec::new(); // Allocates only when something is lost.
        if self.paths.get(path).is_some_and(|probe| now < probe.not_before) {
            return due;
        }
        if let Some(probe) = self.paths.get_mut(path) {
            let waited = probe
                .covered
                .waiting
                .extract_if(.., |(until, _, of)| *until <= now && *of == round);
            due.extend(waited.map(|(_, packet, _)| (now, packet)));
        }
        let mut index = 0;
        while index < MAX_LOOK_AHEAD
            && let Some(probe) = self.paths.get(path)
            && let Some(&(at, packet)) = probe.covered.queues[round as usize].get(index)
        {
            let groups = groups_in_flight(state, path, packet);
            let timeout = groups.and_then(|groups| self.timeout_of(state, path, groups, round));
            let is_due = timeout.is_some_and(|timeout| at + timeout <= now);
            if groups.is_none() || is_due {
                let Some(probe) = self.paths.get_mut(path) else { break };
                probe.covered.queues[round as usize].remove(index);
                if is_due {
                    due.push((at, packet));
                    // It may have expired over copies of its units.
                    let is_own = state.outstanding.packets().sent_at(packet) == Some(at);
                    if is_own && round == Round::First {
                        probe.samples.on_first_awaited(true);
                    }
                }
            } else if state.groups.is_one() {
                break;
            } else {
                index += 1;
            }
        }
        due
    }

    /// Postpones the expiry of `packet` to `until`, or until a later packet is acknowledged.
    pub(crate) fn wait(&mut self, path: u8, packet: PacketNumber, round: Round, until: Instant) {
        if let Some(probe) = self.paths.get_mut(path) {
            probe.covered.waiting.push((until, packet, round));
        }
    }

    /// Called when the probe timer retransmits something. If this begins a round of probes, counts it as
    /// unanswered; further retransmissions within the timeout belong to the same round.
    pub(crate) fn count_round<P>(&mut self, now: Instant, path: u8, state: &State<P>) {
        let probed = state.groups.probed;
        let timeout = self.timeout_of(state, path, probed, Round::Again).unwrap_or_default();
        if let Some(probe) = self.paths.get_mut(path)
            && (probe.unanswered_rounds == 0 || now >= probe.round_began_at + timeout)
        {
            probe.unanswered_rounds += 1;
            probe.round_began_at = now;
            probe.first_due_at = Instant::FAR_FUTURE;
        }
    }

    /// Marks `path` as silent, until its next ACK, if the last ACK is too long ago. Returns whether the path
    /// is to be probed now.
    pub(crate) fn probes_silent<P>(&mut self, now: Instant, path: u8, state: &State<P>) -> bool {
        let pace = self.silent_pace(now, path, state);
        let begins =
            !self.is_silent(path) && self.silent_from(path, state).is_some_and(|from| from <= now);
        let Some(probe) = self.paths.get_mut(path) else { return false };
        if begins {
            probe.silent = Some(probe.last_sent_at + pace);
            probe.silent_probes = 0;
        }
        let is_due = probe.silent.is_some_and(|at| at <= now);
        if is_due {
            probe.silent = Some(now + pace);
            probe.silent_probes = probe.silent_probes.saturating_add(1);
        }
        is_due
    }
}
