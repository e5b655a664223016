//! Redundant Data Bundling (Petlund 2008): while the connection is thin, what is outstanding goes
//! along with what leaves anyway, as far as there is room in the segment.

use rexmit_core::Instant;
use rexmit_recovery::{BundleRoom, ThinConfig};

use super::Connection;
use super::outbound::{GROUP, Outbound, Piece};
use crate::error::ThinError;

impl Outbound {
    /// Copies what left before `new`, which is about to leave with `room` for payload, into the
    /// packet being built. Returns where the segment starts.
    #[inline]
    pub(super) fn copy_before(&mut self, now: Instant, new: Piece, room: u32) -> u64 {
        if !self.recovery.may_copy(GROUP) {
            return new.start;
        }
        let new_bytes = new.len + u32::from(new.has_fin);
        let bundle = BundleRoom { new_bytes, room: room - new.len, is_contiguous: true };
        let mut next = self.recovery.first_to_copy(now, GROUP, bundle);
        let mut start = new.start;
        while let Some(unit) = next {
            let Some(&piece) = self.recovery.copy(unit) else { break };
            start = start.min(piece.start);
            self.note_sent_again(piece, unit);
            next = self.recovery.next_to_copy(unit);
        }
        start
    }

    /// Whether the unit behind `unit`, which leaves again, goes along for the `len` bytes that they
    /// make, though it is not judged lost.
    pub(super) fn may_bundle_behind(&self, unit: u64, len: u32) -> bool {
        let limit = self.recovery.thin_config(GROUP).max_bundle_bytes;
        (limit == 0 || len <= limit) && self.recovery.next_to_bundle(unit) == Some(unit + 1)
    }
}

impl Connection {
    /// What is done about loss while the connection is thin, from now on.
    pub(crate) fn set_thin(&mut self, thin: ThinConfig) -> Result<(), ThinError> {
        if !thin.is_valid() {
            return Err(ThinError::Invalid);
        }
        self.out.recovery.set_thin(GROUP, thin);
        Ok(())
    }

    /// Whether small segments wait for what is outstanding (RFC 9293 §3.7.4).
    pub(super) fn nagles(&self) -> bool {
        let recovery = &self.out.recovery;
        let is_off = || recovery.thin_config(GROUP).no_delay && recovery.is_thin(GROUP);
        self.config.nagle && !is_off()
    }
}
