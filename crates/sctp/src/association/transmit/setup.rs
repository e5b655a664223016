//! The packets of the setup: INIT and COOKIE ECHO (RFC 9260 §5.1).

use rexmit_core::Route;

use crate::association::init::{init_chunk, push_addresses, push_extensions};
use crate::association::{Association, Context, State, push_offer};
use crate::wire::{Cause, PacketWriter, Param, padded};

impl Association {
    /// Writes INIT in a packet of its own, with a verification tag of zero (RFC 9260 §8.5.1 A).
    pub(super) fn write_init(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Vec<u8>,
    ) -> Option<Route> {
        let State::CookieWait(setup) = &self.state else { return None };
        if !setup.is_owed() {
            return None;
        }
        let limit = self.config.max_packet_bytes;
        let mut writer = PacketWriter::new(packet, limit, self.identity.header(0));
        let srtt = self.out.recovery.paths()[self.paths.control()].timer().rtt().srtt();
        let preservative = setup.cookie_preservative(srtt);
        let route = self.paths.get(self.paths.control()).route;
        writer.init(&init_chunk(&self.identity, &self.config), |params| {
            push_extensions(params, &self.config);
            push_offer(params, &self.config, &self.identity.random);
            if let Some(life) = preservative {
                let ms = u32::try_from(life.as_millis()).unwrap_or(u32::MAX);
                params.push(&Param::CookiePreservative(ms));
            }
            push_addresses(params, &cx.around.addresses, route.remote.ip());
        });
        writer.finish();
        self.on_chunk_sent(cx);
        Some(route)
    }

    /// Writes COOKIE ECHO as the first chunk; ERROR and DATA may follow it (RFC 9260 §5.1 C).
    pub(super) fn write_cookie_echo(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Vec<u8>,
    ) -> Option<Route> {
        if !self.state.is_chunk_owed() {
            return None;
        }
        let mut writer = self.begin_packet(packet);
        writer.set_checksum(true);
        let State::CookieEchoed(_, echoed) = &self.state else { return None };
        if !writer.cookie_echo(&echoed.cookie) {
            // A cookie larger than our packets is sent alone, and IP fragments it.
            drop(writer);
            let limit = self.config.max_packet_bytes + padded(echoed.cookie.len());
            writer = PacketWriter::new(packet, limit, self.identity.header(self.peer.tag()));
            if let Some(auth) = &self.auth {
                auth.begin(&mut writer);
            }
            writer.cookie_echo(&echoed.cookie);
        } else {
            if !echoed.unrecognized.is_empty() {
                writer.error(|causes| {
                    causes.push(&Cause::UnrecognizedParameters(&echoed.unrecognized));
                });
            }
            self.write_data(cx, self.paths.control(), &mut writer);
        }
        self.finish_packet(writer);
        self.on_chunk_sent(cx);
        Some(self.paths.get(self.paths.control()).route)
    }
}
