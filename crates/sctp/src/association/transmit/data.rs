//! Filling a packet with DATA: what was judged lost, copies on purpose, then what is new.

use rexmit_core::Instant;

use crate::association::{Association, Context, State};
use crate::streams::Fragment;
use crate::wire::{DATA_HEADER_LEN, Data, DataFlags, PacketWriter, padded};

impl Association {
    /// Fills the packet with DATA: what was judged lost first, then what the profile takes along,
    /// then new chunks (RFC 9260 §6.1 C, E).
    pub(super) fn write_data(
        &mut self,
        cx: &mut Context<'_>,
        path: u8,
        writer: &mut PacketWriter<'_>,
    ) {
        self.out.recovery.begin_packet(path);
        if let Some(tsn) = self.out.recovery.next_to_resend(path) {
            self.resend_lost(cx, writer, tsn);
        }
        self.write_spaced_copies(cx.now, path, writer);
        let first_new = self.out.recovery.next_unit();
        if self.out.recovery.takes_new(path) {
            self.write_copies(cx.now, writer);
            self.send_new(cx, path, writer);
        }
        self.out.recovery.end_packet(cx.now, &mut cx.tracer());
        // What is sent again does not measure the path (RFC 9260 §8.3).
        if self.out.recovery.next_unit() > first_new {
            self.paths.get_mut(path).last_used = cx.now;
            self.turn = path + 1;
        }
        self.watch_window(cx);
    }

    fn resend_lost(&mut self, cx: &mut Context<'_>, writer: &mut PacketWriter<'_>, first: u64) {
        let mut next = Some(first);
        let mut last_resent = None;
        while let Some(tsn) = next {
            if let Some(reason) = self.reason_to_abandon(cx.now, tsn) {
                self.abandon_message(cx, tsn, reason);
            } else if self.resend(cx.now, writer, tsn) {
                last_resent = Some(tsn);
            } else {
                break;
            }
            next = self.out.recovery.next_lost_after(tsn);
        }
        // With more to be sent again than fits, there is no room, and no need to look for more.
        while !self.out.recovery.has_lost()
            && let Some(tsn) = last_resent.and_then(|tsn| self.out.recovery.next_to_bundle(tsn))
            && self.reason_to_abandon(cx.now, tsn).is_none()
            && self.resend(cx.now, writer, tsn)
        {
            last_resent = Some(tsn);
        }
    }

    /// Repeats one chunk, if it fits.
    fn resend(&mut self, now: Instant, writer: &mut PacketWriter<'_>, tsn: u64) -> bool {
        let Some(unit) = self.out.recovery.unit(tsn) else { return false };
        if padded(DATA_HEADER_LEN + unit.payload.payload.len()) > writer.room() {
            return false;
        }
        let wants_ack = self.out.recovery.wants_immediate_ack(unit.group());
        match self.out.recovery.resend(now, tsn) {
            Some(fragment) => writer.data(&data_chunk(tsn, fragment, wants_ack)),
            None => false,
        }
    }

    fn send_new(&mut self, cx: &mut Context<'_>, path: u8, writer: &mut PacketWriter<'_>) {
        let wants_sack = matches!(self.state, State::ShutdownPending);
        while let Some(len) = self.out.next_new_len_over(path) {
            if padded(DATA_HEADER_LEN + len) > writer.room() {
                break;
            }
            let wants_ack = self.out.recovery.wants_immediate_ack(self.out.next_group());
            let Some(tsn) = self.out.cut_next(cx.now, wants_sack) else { break };
            if let Some(unit) = self.out.recovery.unit(tsn) {
                writer.data(&data_chunk(tsn, &unit.payload, wants_ack));
            }
            self.on_first_sent(cx, tsn);
        }
    }
}

pub(in crate::association) fn data_chunk(
    tsn: u64,
    fragment: &Fragment,
    wants_ack: bool,
) -> Data<'_> {
    Data {
        flags: DataFlags {
            immediate: fragment.immediate || wants_ack,
            unordered: fragment.unordered,
            beginning: fragment.beginning,
            ending: fragment.ending,
        },
        tsn: tsn as u32,
        stream: fragment.stream,
        ssn: fragment.ssn,
        ppid: fragment.ppid,
        payload: &fragment.payload,
    }
}
