//! Both directions of the emulated link, and the capture of their packets.

use rexmit_core::Instant;
use rexmit_netsim::path::{Arrival, PathConfig};

use super::capture::{Recorder, Shown};
use super::config::LinkConfig;
use super::direction::{Bound, Direction, Packet, Tag};
use super::error::EmulatorError;

/// The most buffers kept for later packets.
const MAX_SPARE: usize = 1024;

/// The paths in both directions. `T` is the data that the link attaches to a packet.
#[derive(Debug)]
pub(super) struct TwoWay<T> {
    pub(super) forward: Direction<T>,
    pub(super) backward: Direction<T>,
    recorder: Option<Recorder>,
    /// Buffers of packets that were sent, for reuse.
    spare: Vec<Vec<u8>>,
}

impl<T: Tag> TwoWay<T> {
    pub(super) fn new(config: &LinkConfig) -> Result<Self, EmulatorError> {
        let direction = |name: &'static str, path: &PathConfig| {
            Direction::new(path, &config.seed.split(name), config.max_packets_in_flight)
                .map_err(|source| EmulatorError::Path { direction: name, source })
        };
        Ok(Self {
            forward: direction("forward", &config.forward)?,
            backward: direction("backward", &config.backward)?,
            recorder: None,
            spare: Vec::new(),
        })
    }

    /// Records all packets from now on.
    pub(super) fn set_recorder(&mut self, recorder: Recorder) {
        self.recorder = Some(recorder);
    }

    /// Packets that are missing in the capture.
    pub(super) fn missed(&self) -> u64 {
        self.recorder.as_ref().map_or(0, Recorder::missed)
    }

    /// Called when a packet entered the path at `arrival`.
    pub(super) fn offer(
        &mut self,
        arrival: Instant,
        (bound, shown): (Bound, Shown),
        tag: T,
        bytes: &[u8],
    ) {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(bytes);
        let packet = Packet { tag, bytes: copy };
        if let Some(dropped) = self.direction(bound).offer(arrival, packet) {
            self.on_dropped(arrival, (bound, shown), bytes, dropped);
        }
    }

    /// Called when a packet was dropped because of `why`; the path held no buffer for it.
    pub(super) fn on_dropped(
        &mut self,
        at: Instant,
        whose: (Bound, Shown),
        bytes: &[u8],
        why: &'static str,
    ) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record(at, whose, bytes.to_vec(), Some(why));
        }
    }

    /// Called when a packet left the path, or was dropped if the comment says so. `shown` is `None` if its
    /// client is not known any more; then it is not recorded.
    pub(super) fn on_left(
        &mut self,
        at: Instant,
        (bound, shown): (Bound, Option<Shown>),
        bytes: Vec<u8>,
        comment: Option<&'static str>,
    ) {
        match (&mut self.recorder, shown) {
            (Some(recorder), Some(shown)) => recorder.record(at, (bound, shown), bytes, comment),
            _ if self.spare.len() < MAX_SPARE => self.spare.push(bytes),
            _ => {}
        }
    }

    /// When the next packet is due.
    pub(super) fn next_arrival(&self) -> Instant {
        let arrivals = [self.forward.next_arrival(), self.backward.next_arrival()];
        arrivals.into_iter().flatten().fold(Instant::FAR_FUTURE, Instant::min)
    }

    /// The next packet that is due in this direction, with the bit flipped if it was corrupted.
    pub(super) fn poll_arrival(
        &mut self,
        bound: Bound,
        now: Instant,
    ) -> Option<Arrival<Packet<T>>> {
        self.direction(bound).poll_arrival(now)
    }

    /// The next packet in this direction that was dropped from a queue, and the cause. To be called until it returns `None`
    /// whenever packets were offered or polled.
    pub(super) fn poll_dropped(&mut self, bound: Bound) -> Option<(Packet<T>, &'static str)> {
        self.direction(bound).poll_dropped()
    }

    /// Called when a packet delivered by the path could not be sent.
    pub(super) fn on_unsent(&mut self, bound: Bound) {
        self.direction(bound).on_unsent();
    }

    const fn direction(&mut self, bound: Bound) -> &mut Direction<T> {
        match bound {
            Bound::Forward => &mut self.forward,
            Bound::Backward => &mut self.backward,
        }
    }
}
