//! The packets of the setup: INIT and COOKIE ECHO (RFC 9260 §5.1).

use std::net::IpAddr;

use rexmit_core::Route;

use crate::association::addresses::is_in_scope;
use crate::association::{Association, Context, State, push_offer};
use crate::config::AssociationConfig;
use crate::wire::{Cause, Header, Init, PacketWriter, Param, Params, ParamsWriter, kind, padded};

impl Association {
    /// INIT stands alone, with a verification tag of zero (RFC 9260 §8.5.1 A).
    pub(super) fn write_init(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Vec<u8>,
    ) -> Option<Route> {
        if !self.owed.setup {
            return None;
        }
        let header = Header { verification_tag: 0, ..self.header() };
        let mut writer = PacketWriter::new(packet, self.config.max_packet_bytes, header);
        let preservative = self.cookie_preservative();
        let route = self.route_of(self.control_path);
        writer.init(&self.init_chunk(), |params| {
            push_extensions(params, &self.config);
            push_offer(params, &self.config, &self.identity.random);
            if let Some(life) = preservative {
                let ms = u32::try_from(life.as_millis()).unwrap_or(u32::MAX);
                params.push(&Param::CookiePreservative(ms));
            }
            push_addresses(params, &cx.around.addresses, route.remote.ip());
        });
        writer.finish();
        self.on_setup_sent(cx);
        Some(route)
    }

    fn init_chunk(&self) -> Init<'static> {
        Init {
            initiate_tag: self.identity.local_tag,
            a_rwnd: u32::try_from(self.config.receive_buffer_bytes).unwrap_or(u32::MAX),
            outbound_streams: self.config.outbound_streams,
            inbound_streams: self.config.max_inbound_streams,
            initial_tsn: self.identity.local_initial_tsn,
            params: Params::default(),
        }
    }

    /// COOKIE ECHO stands first; ERROR and DATA may follow it (RFC 9260 §5.1 C).
    pub(super) fn write_cookie_echo(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Vec<u8>,
    ) -> Option<Route> {
        if !self.owed.setup {
            return None;
        }
        let mut writer = self.writer(packet);
        self.begin_authentic(&mut writer);
        let State::CookieEchoed(_, echoed) = &self.state else { return None };
        if !writer.cookie_echo(&echoed.cookie) {
            // A cookie beyond our packet size goes out alone, and IP fragments it.
            drop(writer);
            let limit = self.config.max_packet_bytes + padded(echoed.cookie.len());
            writer = PacketWriter::new(packet, limit, self.header());
            self.begin_authentic(&mut writer);
            writer.cookie_echo(&echoed.cookie);
        } else {
            if !echoed.unrecognized.is_empty() {
                writer.error(|causes| {
                    causes.push(&Cause::UnrecognizedParameters(&echoed.unrecognized));
                });
            }
            self.write_data(cx, self.control_path, &mut writer);
        }
        self.finish_packet(writer);
        self.on_setup_sent(cx);
        Some(self.route_of(self.control_path))
    }
}

/// Announces the extensions that are switched on (RFC 5061 §4.2.7, RFC 3758 §3.1).
pub(crate) fn push_extensions(params: &mut ParamsWriter<'_, '_>, config: &AssociationConfig) {
    if config.partial_reliability {
        params.push(&Param::ForwardTsnSupported);
    }
    let mut kinds = Vec::with_capacity(5);
    kinds.extend(config.stream_reset.then_some(kind::RE_CONFIG));
    kinds.extend(config.partial_reliability.then_some(kind::FORWARD_TSN));
    kinds.extend(config.offers_authentication().then_some(kind::AUTH));
    if config.dynamic_addresses {
        kinds.extend([kind::ASCONF, kind::ASCONF_ACK]);
    }
    if !kinds.is_empty() {
        params.push(&Param::SupportedExtensions(&kinds));
    }
}

/// Tells a peer that is at `peer` our addresses, those that mean the same to it.
pub(crate) fn push_addresses(params: &mut ParamsWriter<'_, '_>, own: &[IpAddr], peer: IpAddr) {
    for &address in own.iter().filter(|&&address| is_in_scope(address, peer)) {
        params.push(&Param::from(address));
    }
}
