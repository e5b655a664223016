//! Pending segments other than data.

use crate::stream::Inserted;

/// Pending segments other than data.
#[derive(Debug, Default)]
pub(super) struct Owed {
    pub(super) reset: Option<Reset>,
    /// Whether a SYN is to be sent, or in SYN-RECEIVED a SYN-ACK.
    pub(super) syn: bool,
    pub(super) ack: bool,
    /// Acknowledgements without data for a peer that counts duplicate ACKs (RFC 5681 §4.2), because it does not
    /// understand SACK: one for each segment beyond a gap, also if several arrive at once.
    pub(super) duplicate_acks: u32,
    pub(super) keep_alive: bool,
}

impl Owed {
    pub(super) const fn is_any(&self) -> bool {
        self.reset.is_some() || self.syn || self.must_acknowledge() || self.keep_alive
    }

    /// Counts the duplicate ACKs to be sent. In-order data resets the count to zero, or to one if a gap remains.
    pub(super) fn count_duplicate_acks(&mut self, inserted: &Inserted, has_gap: bool) {
        if inserted.advanced > 0 {
            self.duplicate_acks = u32::from(has_gap);
        } else {
            self.duplicate_acks += u32::from(inserted.is_beyond_gap);
        }
    }

    pub(super) const fn must_acknowledge(&self) -> bool {
        self.ack || self.duplicate_acks > 0
    }
}

/// The kind of RST to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reset {
    /// `<SEQ=SND.NXT><ACK=RCV.NXT><CTL=RST,ACK>`: ends this connection.
    Now,
    /// `<SEQ=SEG.ACK><CTL=RST>`: the answer to an ACK that belongs to another connection.
    At(u32),
}
