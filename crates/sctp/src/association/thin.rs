//! Thin streams: which streams are judged by themselves, copies of what is in flight beside new DATA,
//! and round-trip times where an acknowledgement does not tell them (Petlund 2009 §5, §8).
//!
//! Whether a stream is thin, and what that means for timers and losses, is the business of loss
//! recovery.

use rexmit_core::Instant;
use rexmit_recovery::{BundleRoom, LossRecovery, MAX_GROUPS, ThinConfig, Thinness};

use super::data_out::Outbound;
use super::heartbeat::Heartbeat;
use super::transmit::data_chunk;
use super::{Association, Context};
use crate::error::ThinError;
use crate::streams::Fragment;
use crate::wire::{DATA_HEADER_LEN, PacketWriter, padded};

/// The streams that were singled out, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct ThinStreams(Vec<ThinStream>);

#[derive(Clone, Copy, Debug)]
struct ThinStream {
    stream: u16,
    group: u8,
    /// New chunks of it are of the group.
    is_singled_out: bool,
}

impl ThinStreams {
    fn position(&self, stream: u16) -> Result<usize, usize> {
        self.0.binary_search_by_key(&stream, |thin| thin.stream)
    }

    /// The group of loss recovery that new chunks of `stream` belong to.
    pub(super) fn group_of(&self, stream: u16) -> u8 {
        if self.0.is_empty() {
            return 0;
        }
        let found = self.position(stream).ok().map(|index| self.0[index]);
        found.filter(|thin| thin.is_singled_out).map_or(0, |thin| thin.group)
    }

    /// Which of them are thin now.
    pub(super) fn thinness(&self, recovery: &LossRecovery<Fragment>) -> Vec<(u16, Thinness)> {
        let singled_out = self.0.iter().filter(|thin| thin.is_singled_out);
        singled_out.map(|thin| (thin.stream, recovery.thinness(thin.group))).collect()
    }
}

/// Measuring the round trip beside the watch over the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampling {
    is_due: bool,
    /// The nonce of the HEARTBEAT that is not answered.
    awaited: Option<u64>,
    last_sent: Option<Instant>,
}

impl Sampling {
    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    pub(super) const fn ask(&mut self) {
        self.is_due = true;
    }

    pub(super) const fn on_sent(&mut self, nonce: u64, now: Instant) {
        *self = Self { is_due: false, awaited: Some(nonce), last_sent: Some(now) };
    }

    /// Whether that is the answer to the last one.
    pub(super) fn on_answered(&mut self, nonce: u64) -> bool {
        self.awaited.take_if(|awaited| *awaited == nonce).is_some()
    }
}

impl Outbound {
    /// The group of the next new chunk.
    #[inline]
    pub(super) fn next_group(&self) -> u8 {
        if self.thin_streams.0.is_empty() {
            return 0;
        }
        self.queue.peek_stream().map_or(0, |stream| self.thin_streams.group_of(stream))
    }

    /// The association begins again: what `before` was told of thin streams still holds.
    pub(super) fn take_over_thin(&mut self, before: &Self) {
        self.recovery.set_thin(0, *before.recovery.thin_config(0));
        self.thin_streams = before.thin_streams.clone();
        for group in 1..=self.thin_streams.0.len() as u8 {
            // As many as there were.
            let _ = self.recovery.add_group(*before.recovery.thin_config(group));
        }
    }
}

impl Association {
    pub(crate) fn set_thin(&mut self, thin: ThinConfig) -> Result<(), ThinError> {
        if !thin.is_valid() {
            return Err(ThinError::Invalid);
        }
        self.out.recovery.set_thin(0, thin);
        Ok(())
    }

    pub(crate) fn set_stream_thin(
        &mut self,
        stream: u16,
        thin: Option<ThinConfig>,
    ) -> Result<(), ThinError> {
        let streams = self.out.streams();
        if stream >= streams {
            return Err(ThinError::InvalidStream { streams });
        } else if thin.is_some_and(|thin| !thin.is_valid()) {
            return Err(ThinError::Invalid);
        }
        let Outbound { thin_streams, recovery, .. } = &mut self.out;
        match (thin_streams.position(stream), thin) {
            (Ok(index), thin) => {
                let known = &mut thin_streams.0[index];
                known.is_singled_out = thin.is_some();
                recovery.set_thin(known.group, thin.unwrap_or(ThinConfig::OFF));
            }
            (Err(index), Some(thin)) => {
                let limit = MAX_GROUPS - 1;
                let group =
                    recovery.add_group(thin).map_err(|_| ThinError::TooManyStreams { limit })?;
                thin_streams.0.insert(index, ThinStream { stream, group, is_singled_out: true });
            }
            (Err(_), None) => {}
        }
        Ok(())
    }

    /// Writes copies of what is in flight into a packet with new DATA, in the order of TSNs, and
    /// leaves room for the next new chunk.
    pub(super) fn write_copies(&mut self, now: Instant, writer: &mut PacketWriter<'_>) {
        let group = self.out.next_group();
        if !self.out.recovery.may_copy(group) {
            return;
        }
        let Some(len) = self.out.next_new_len() else { return };
        let new_bytes = padded(DATA_HEADER_LEN + len);
        let Some(room) = writer.room().checked_sub(new_bytes) else { return };
        let bundle =
            BundleRoom { new_bytes: new_bytes as u32, room: room as u32, is_contiguous: false };
        let wants_ack = self.out.recovery.wants_immediate_ack(group);
        let mut next = self.out.recovery.first_to_copy(now, group, bundle);
        while let Some(tsn) = next {
            // What would be given up rather than sent again is not copied either.
            if self.reason_to_abandon(now, tsn).is_none()
                && let Some(fragment) = self.out.recovery.copy(tsn)
            {
                writer.data(&data_chunk(tsn, fragment, wants_ack));
            }
            next = self.out.recovery.next_to_copy(tsn);
        }
    }

    /// Writes the copies that are due without new DATA.
    pub(super) fn write_spaced_copies(
        &mut self,
        now: Instant,
        path: u8,
        writer: &mut PacketWriter<'_>,
    ) {
        while let Some(tsn) = self.next_spaced_copy(now, path)
            && let Some(unit) = self.out.recovery.unit(tsn)
            && padded(DATA_HEADER_LEN + unit.payload.payload.len()) <= writer.room()
        {
            let wants_ack = self.out.recovery.wants_immediate_ack(unit.group());
            let Some(fragment) = self.out.recovery.send_copy(now, tsn) else { break };
            writer.data(&data_chunk(tsn, fragment, wants_ack));
        }
    }

    /// The next chunk of which a copy may leave without new DATA. What would be given up rather than
    /// sent again has none.
    pub(super) fn next_spaced_copy(&mut self, now: Instant, path: u8) -> Option<u64> {
        loop {
            let tsn = self.out.recovery.next_copy(path)?;
            if self.reason_to_abandon(now, tsn).is_none() {
                return Some(tsn);
            }
            self.out.recovery.drop_copy(path, tsn);
        }
    }

    /// What could have been acknowledged by now leaves again, if the profile does that.
    pub(super) fn on_early_retransmissions(&mut self, cx: &mut Context<'_>) {
        if !self.state.is_setting_up() && !self.state.is_closed() {
            self.out.recovery.on_early_timers(cx.now, &mut cx.tracer());
        }
    }

    /// The peer set the association up, so that nothing was measured: where a HEARTBEAT may measure what
    /// acknowledgements cannot, one leaves with the end of the setup.
    pub(super) fn ask_for_first_round_trip(&mut self) {
        let recovery = &self.out.recovery;
        if recovery.wants_other_samples() {
            let path = recovery.data_path();
            self.paths.get_mut(path).sampling.ask();
        }
    }

    /// An acknowledgement of what was sent again does not tell the round-trip time (Karn); on a thin
    /// stream a HEARTBEAT measures it, once per timeout.
    pub(super) fn ask_for_round_trip(&mut self, cx: &Context<'_>) {
        let recovery = &self.out.recovery;
        if !self.state.may_heartbeat() || !recovery.wants_other_samples() {
            return;
        }
        let path = recovery.data_path();
        let rto = recovery.rto(path);
        let entry = self.paths.get_mut(path);
        let is_measured_anyway =
            matches!(entry.heartbeat, Heartbeat::Due | Heartbeat::Awaiting { .. });
        let is_too_soon = entry.sampling.last_sent.is_some_and(|last| cx.now - last < rto);
        entry.sampling.is_due |= !is_measured_anyway && !is_too_soon;
    }
}
