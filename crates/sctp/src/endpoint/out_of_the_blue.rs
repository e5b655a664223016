//! Packets out of the blue: correct, but for no existing association (RFC 9260 §8.4).

use rexmit_core::{Instant, Route};

use super::Endpoint;
use super::setup::answer_ports;
use crate::wire::{Cause, Chunk, Header, Packet, PacketWriter, RawChunk};

/// The reply to a packet out of the blue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Nothing,
    ShutdownComplete,
    Abort,
}

impl Endpoint {
    /// Answers a packet that belongs to no association, or drops it.
    ///
    /// The ABORT of RFC 9260 §8.4 (8) is not sent for an association that we ended by SHUTDOWN COMPLETE: the packet was
    /// overtaken by the peer's SHUTDOWN ACK, and ABORT could overtake SHUTDOWN COMPLETE and end the peer's
    /// association as a failure.
    pub(super) fn on_out_of_the_blue(&mut self, now: Instant, route: Route, packet: &Packet<'_>) {
        self.around.statistics.out_of_the_blue += 1;
        let answer = answer_to(packet);
        let tag = packet.header.verification_tag;
        if answer == Answer::Nothing
            || (answer == Answer::Abort && self.lookup.has_completed_shutdown(now, tag))
        {
            return;
        }
        // The tag is reflected, and the T bit says so.
        let header = Header { verification_tag: tag, ..answer_ports(packet) };
        let mut reply = Vec::new();
        let limit = self.config.association.max_packet_bytes;
        let mut writer = PacketWriter::new(&mut reply, limit, header);
        match answer {
            Answer::ShutdownComplete => writer.shutdown_complete(true),
            _ => writer.abort(true, |_| {}),
        };
        writer.finish();
        self.reply(route, reply);
    }
}

/// Applies the rules of RFC 9260 §8.4 in order, except rules 3 and 4, which the caller has applied.
fn answer_to(packet: &Packet<'_>) -> Answer {
    let has = |is: fn(&Chunk<'_>) -> bool| {
        let decode = |raw: RawChunk<'_>| raw.decode().is_ok_and(|chunk| is(&chunk));
        packet.chunks().map_while(Result::ok).any(decode)
    };
    if has(|chunk| matches!(chunk, Chunk::Abort { .. })) {
        Answer::Nothing
    } else if has(|chunk| matches!(chunk, Chunk::ShutdownAck)) {
        Answer::ShutdownComplete
    } else if has(|chunk| matches!(chunk, Chunk::ShutdownComplete { .. } | Chunk::CookieAck))
        || has(is_stale_cookie)
    {
        Answer::Nothing
    } else {
        Answer::Abort
    }
}

fn is_stale_cookie(chunk: &Chunk<'_>) -> bool {
    match chunk {
        Chunk::Error { causes } => {
            causes.flatten().any(|cause| matches!(cause, Cause::StaleCookie { .. }))
        }
        _ => false,
    }
}
