//! The handshake at the endpoint: INIT and COOKIE ECHO (RFC 9260 §5.1, §5.2). Answering an INIT stores no
//! state: all of it is in the cookie.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rexmit_core::{Instant, Rng, Route};

use super::cookie::StateCookie;
use super::{AssociationId, Endpoint};
use crate::association::{
    Association, Auth, Context, Extras, Identity, Incoming, InitError, Ours, PeerParameters,
    init_chunk, push_addresses, push_extensions, push_offer, read_init,
};
use crate::config::AssociationConfig;
use crate::wire::{
    Cause, CausesWriter, Chunk, Header, Init, Packet, PacketWriter, Param, Params, RawChunk, kind,
};

/// The most by which a cookie's lifetime is extended if the peer requests it (RFC 9260 §3.3.2.1.3).
pub(super) const MAX_COOKIE_EXTENSION: Duration = Duration::from_secs(10);

/// The reaction of an existing association to an INIT.
enum Existing {
    /// There is no association: the Tie-Tags are 0.
    None,
    /// We have sent an INIT, too: the answer repeats the parameters of our INIT (RFC 9260 §5.2.1).
    Colliding(Identity, Arc<AssociationConfig>),
    /// The association may be restarted: the answer has a new identity, and the Tie-Tags.
    Established { tie_tags: (u32, u32) },
}

/// An INIT, as it was read, and the route that the answer takes.
#[derive(Clone, Copy)]
struct ReceivedInit<'a> {
    route: Route,
    packet: &'a Packet<'a>,
    peer: &'a PeerParameters,
    extras: &'a Extras<'a>,
}

impl Endpoint {
    /// Processes an INIT.
    pub(super) fn on_init(&mut self, now: Instant, route: Route, packet: &Packet<'_>) {
        let mut chunks = packet.chunks();
        let Some(Ok(Chunk::Init(init))) = chunks.next().and_then(Result::ok).map(|c| c.decode())
        else {
            self.around.statistics.malformed += 1;
            return;
        };
        // INIT stands alone, under a tag of zero (RFC 9260 §8.5.1 A).
        if packet.header.verification_tag != 0 || chunks.next().is_some() {
            self.around.statistics.misdirected += 1;
            return;
        }
        let read = |config: &_| {
            read_init(&init, route.remote.ip(), config).map(|(mut peer, extras)| {
                self.around.retain_usable(&mut peer.addresses, route);
                (peer, extras)
            })
        };
        let refuse = |endpoint: &mut Self, error| {
            endpoint.refuse_init(route, packet, init.initiate_tag, error);
        };
        let (mut peer, mut extras) = match read(&self.config.association) {
            Ok(read) => read,
            Err(error) => return refuse(self, error),
        };
        let index = self.find_existing(route.remote, packet.header.source_port, &peer.addresses);
        let config = self.config_to_answer_with(index);
        if !Arc::ptr_eq(&config, &self.config.association) {
            (peer, extras) = match read(&config) {
                Ok(read) => read,
                Err(error) => return refuse(self, error),
            };
        }
        self.around.statistics.addresses_refused += extras.refused_addresses;
        // An ignored one need not be remembered.
        peer.auth.take_if(|_| !config.offers_authentication());
        match index {
            Some(index) => {
                let init = ReceivedInit { route, packet, peer: &peer, extras: &extras };
                self.on_init_again(now, index, init);
            }
            None if !self.config.accept => {
                self.send_abort(route, packet, peer.tag, |_| {});
            }
            None if self.table.len() >= self.config.max_associations => {
                self.around.statistics.refused_for_limit += 1;
                self.send_abort(route, packet, peer.tag, |causes| {
                    causes.push(&Cause::OutOfResource);
                });
            }
            None => {
                let init = ReceivedInit { route, packet, peer: &peer, extras: &extras };
                self.answer_init(now, init, &Existing::None);
            }
        }
    }

    /// The configuration of the answer to an INIT: that of the association `existing` if it is being
    /// set up from here, too.
    fn config_to_answer_with(&self, existing: Option<u32>) -> Arc<AssociationConfig> {
        let slot = existing.and_then(|index| self.table.get(index));
        let association =
            slot.map(|slot| &slot.association).filter(|it| it.state().is_setting_up());
        Arc::clone(association.map_or(&self.config.association, |it| it.config()))
    }

    /// An INIT belongs to an association if any of its addresses does (RFC 9260 §5.1.2 D).
    ///
    /// The addresses that it lists have no UDP port. Over UDP they are not compared with established
    /// associations: any host can list them, and a different answer would reveal that an association exists.
    fn find_existing(&self, source: SocketAddr, port: u16, named: &[IpAddr]) -> Option<u32> {
        let is_setting_up = |&index: &u32| {
            self.table.get(index).is_some_and(|slot| slot.association.state().is_setting_up())
        };
        self.lookup.by_address(source, port).or_else(|| {
            named
                .iter()
                .filter_map(|&ip| self.lookup.by_address(SocketAddr::new(ip, source.port()), port))
                .find(|index| source.port() == 0 || is_setting_up(index))
        })
    }

    /// Processes an INIT for an existing association (RFC 9260 §5.2.1, §5.2.2, §9.2).
    fn on_init_again(&mut self, now: Instant, index: u32, init: ReceivedInit<'_>) {
        let ReceivedInit { route, packet, peer, .. } = init;
        let Some(slot) = self.table.get(index) else { return };
        let association = &slot.association;
        if association.state().is_shutdown_ack_sent() {
            self.call(now, index, |association, _| association.repeat_shutdown());
            return;
        }
        let is_known = |address| association.peer_addresses().any(|known| known == address);
        let mut added = std::iter::once(route.remote.ip())
            .chain(peer.addresses.iter().copied())
            .filter(|&address| !is_known(address));
        if let Some(first) = added.next()
            && !association.state().may_learn_addresses()
        {
            let added: Vec<_> = std::iter::once(first).chain(added).collect();
            return self.send_abort(route, packet, peer.tag, |causes| {
                causes.push_restart_with_new_addresses(added.iter().copied());
            });
        }
        // In COOKIE-WAIT an answer goes only to where the application has connected to
        // (RFC 9260 §5.2.1 rules 1 and 2); in other states the answer takes the route of the INIT.
        let is_from_known = is_known(route.remote.ip());
        let route = if is_from_known { route } else { association.primary_route() };
        let existing = if association.state().is_setting_up() {
            Existing::Colliding(*association.identity(), Arc::clone(association.config()))
        } else {
            Existing::Established { tie_tags: association.identity().tie_tags }
        };
        self.answer_init(now, ReceivedInit { route, ..init }, &existing);
    }

    /// Answers an INIT with an INIT ACK (RFC 9260 §5.1 B).
    fn answer_init(&mut self, now: Instant, init: ReceivedInit<'_>, existing: &Existing) {
        let ReceivedInit { route, packet, peer, extras } = init;
        let fresh = self.new_identity(packet.header.source_port);
        let ours = &self.config.association;
        let (identity, config) = match existing {
            Existing::None => (Identity { tie_tags: (0, 0), ..fresh }, ours),
            Existing::Colliding(identity, config) => (*identity, config),
            &Existing::Established { tie_tags } => (Identity { tie_tags, ..fresh }, ours),
        };
        let config = Arc::clone(config);
        let extension = Duration::from_millis(extras.cookie_preservative_ms.into());
        let cookie = self.signer.sign(&StateCookie {
            created: now,
            lifetime: self.config.cookie_lifetime + extension.min(MAX_COOKIE_EXTENSION),
            address: route.remote,
            identity,
            peer: peer.clone(),
        });
        let ours = init_chunk(&identity, &config);
        // RFC 9260 §3.3.3: no more than the peer takes.
        let outbound_streams = ours.outbound_streams.min(peer.inbound_streams);
        let init_ack = Init { outbound_streams, ..ours };
        let header = Header { verification_tag: peer.tag, ..answer_ports(packet) };
        let write = |addresses: &[IpAddr]| {
            let mut reply = Vec::with_capacity(512);
            let mut writer = PacketWriter::new(&mut reply, config.max_packet_bytes, header);
            writer.init_ack(&init_ack, |params| {
                params.push(&Param::StateCookie(&cookie));
                push_extensions(params, &config);
                if peer.auth.is_some() {
                    push_offer(params, &config, &identity.random);
                }
                push_addresses(params, addresses, route.remote.ip());
                for param in Params::new(&extras.unrecognized).flatten() {
                    params.push(&Param::UnrecognizedParameter(param.bytes));
                }
            });
            writer.finish();
            reply
        };
        let mut reply = write(&self.around.addresses);
        if !self.excess.allows(now, route, packet.len(), reply.len()) {
            // Without the others, the association works over the address that the INIT was sent to.
            reply = write(&[]);
            if !self.excess.allows(now, route, packet.len(), reply.len()) {
                return;
            }
        }
        self.around.statistics.inits_answered += 1;
        self.reply(route, reply);
    }

    /// Processes an INIT ACK, which may come from an address that is not known yet.
    pub(super) fn on_init_ack(&mut self, now: Instant, incoming: Incoming, packet: &Packet<'_>) {
        let source = incoming.route.remote.ip();
        let Some(index) = self.init_ack_from_elsewhere(incoming.route, packet) else {
            return self.deliver(now, incoming, packet);
        };
        self.call(now, index, |association, cx| {
            let incoming = Incoming { route: association.primary_route(), ..incoming };
            association.on_packet(cx, incoming, packet);
            association.note_addresses(cx, &[source]);
        });
    }

    /// The association in COOKIE-WAIT that an INIT ACK from an unknown address belongs to, because
    /// it names an address that is known (RFC 9260 §5.1.2 D).
    fn init_ack_from_elsewhere(&self, route: Route, packet: &Packet<'_>) -> Option<u32> {
        let Chunk::InitAck(init_ack) = packet.chunks().next()?.ok()?.decode().ok()? else {
            return None;
        };
        let index = self.lookup.by_tag(packet.header.verification_tag)?;
        let association = &self.table.get(index)?.association;
        let is_known = |address| association.peer_addresses().any(|known| known == address);
        let is_elsewhere = association.state().may_learn_addresses()
            && association.identity().remote_port == packet.header.source_port
            && !is_known(route.remote.ip());
        let read = read_init(&init_ack, route.remote.ip(), association.config());
        let (peer, _) = read.ok().filter(|_| is_elsewhere)?;
        peer.addresses.iter().any(|&address| is_known(address)).then_some(index)
    }

    fn refuse_init(&mut self, route: Route, packet: &Packet<'_>, tag: u32, error: InitError) {
        self.around.statistics.malformed += 1;
        match error {
            InitError::TagZero => {}
            InitError::Malformed => self.send_abort(route, packet, tag, |causes| {
                causes.push(&Cause::ProtocolViolation(b"a parameter's length does not fit"));
            }),
            InitError::Random => self.send_abort(route, packet, tag, |causes| {
                causes.push(&Cause::ProtocolViolation(b"RANDOM has not 32 bytes"));
            }),
            InitError::NoStreams | InitError::WindowTooSmall => {
                self.send_abort(route, packet, tag, |causes| {
                    causes.push(&Cause::InvalidMandatoryParameter);
                });
            }
            InitError::HostName(param) => self.send_abort(route, packet, tag, |causes| {
                causes.push(&Cause::UnresolvableAddress(&param));
            }),
        }
    }

    /// Sends ABORT, under the tag that it chose, to a sender without an association.
    pub(super) fn send_abort(
        &mut self,
        route: Route,
        packet: &Packet<'_>,
        tag: u32,
        causes: impl FnOnce(&mut CausesWriter<'_, '_>),
    ) {
        let header = Header { verification_tag: tag, ..answer_ports(packet) };
        let mut reply = Vec::new();
        let limit = self.config.association.max_packet_bytes;
        let mut writer = PacketWriter::new(&mut reply, limit, header);
        writer.abort(false, causes);
        writer.finish();
        self.reply(route, reply);
    }

    /// Handles COOKIE ECHO and the chunks after it in its packet (RFC 9260 §5.1.5, §5.2.4).
    pub(super) fn on_cookie_echo(&mut self, now: Instant, incoming: Incoming, packet: &Packet<'_>) {
        let route = incoming.route;
        let mut chunks = packet.chunks();
        let Some(Ok(first)) = chunks.next() else { return };
        let covered = chunks.rest();
        let auth = Some(first).filter(|first| first.kind == kind::AUTH);
        let raw = if auth.is_some() { chunks.next().and_then(Result::ok) } else { Some(first) };
        let Some(raw) = raw else { return };
        let Some(cookie) = self.signer.verify(now, raw.value) else {
            self.around.statistics.cookies_refused += 1;
            return;
        };
        let header = packet.header;
        let is_genuine = cookie.identity.local_tag == header.verification_tag
            && cookie.identity.local_port == header.destination_port
            && cookie.identity.remote_port == header.source_port
            && cookie.may_come_from(route.remote.ip());
        if !is_genuine {
            self.around.statistics.cookies_refused += 1;
            return;
        }
        let existing = find_of_cookie(self, &cookie);
        if !self.authenticate(existing, &cookie, auth.map(|auth| (auth, covered))) {
            self.around.statistics.unauthenticated += 1;
            return;
        }
        let is_present = existing
            .and_then(|index| self.table.get(index))
            .map(|slot| &slot.association)
            .is_some_and(|it| cookie.has_tags(it.identity().local_tag, it.peer().tag()));
        if let Some(late) = cookie.staleness(now).filter(|_| !is_present) {
            self.around.statistics.cookies_refused += 1;
            return self.report_stale_cookie(route, packet, &cookie, late);
        }
        let has_ended = self.lookup.is_retired(cookie.identity.local_tag)
            || self.lookup.is_peer_retired(cookie.peer.tag, cookie.created);
        if existing.is_none() && has_ended {
            // The association of this cookie has ended already.
            self.around.statistics.cookies_refused += 1;
            return self.send_abort(route, packet, cookie.peer.tag, |_| {});
        }
        // Confirmed is the address that got INIT ACK, whichever this came from (RFC 9260 §5.4).
        let confirmed = Route { remote: cookie.address, ..route };
        let index = match existing {
            None => self.accept(now, confirmed, packet, &cookie),
            Some(index) => self.compare_tags(now, confirmed, index, &cookie),
        };
        if let Some(index) = index {
            self.call(now, index, |association, cx| {
                association.on_cookie_used(cookie.created);
                association.on_packet(cx, incoming, packet);
            });
        }
    }

    /// Verifies the AUTH before COOKIE ECHO for the existing association, or for the one that the cookie would
    /// begin. Returns whether it is valid, or no AUTH is required (RFC 4895 §6.3).
    fn authenticate(
        &mut self,
        existing: Option<u32>,
        cookie: &StateCookie,
        auth: Option<(RawChunk<'_>, &[u8])>,
    ) -> bool {
        let config = &self.config_to_answer_with(existing);
        let Some((auth, covered)) = auth else {
            return !config.authentication.chunks.contains(&kind::COOKIE_ECHO);
        };
        match existing.and_then(|index| self.table.get_mut(index)) {
            Some((_, slot)) if !slot.association.state().is_setting_up() => {
                slot.association.authenticate(&auth, covered)
            }
            _ => cookie.peer.auth.as_ref().is_some_and(|offer| {
                let ours = Ours { config, random: &cookie.identity.random };
                Auth::new(config, offer).verify(ours, &auth, covered).is_ok()
            }),
        }
    }

    fn report_stale_cookie(
        &mut self,
        route: Route,
        packet: &Packet<'_>,
        cookie: &StateCookie,
        late: Duration,
    ) {
        let measure_of_staleness_us = u32::try_from(late.as_micros()).unwrap_or(u32::MAX);
        let header = Header { verification_tag: cookie.peer.tag, ..answer_ports(packet) };
        let mut reply = Vec::new();
        let limit = self.config.association.max_packet_bytes;
        let mut writer = PacketWriter::new(&mut reply, limit, header);
        writer.error(|causes| {
            causes.push(&Cause::StaleCookie { measure_of_staleness_us });
        });
        writer.finish();
        self.reply(route, reply);
    }

    /// Creates an association from a valid cookie.
    fn accept(
        &mut self,
        now: Instant,
        route: Route,
        packet: &Packet<'_>,
        cookie: &StateCookie,
    ) -> Option<u32> {
        let is_full = self.table.len() >= self.config.max_associations;
        // The tag was free when the cookie was made; by now another association may have drawn it.
        let is_taken = self.lookup.by_tag(cookie.identity.local_tag).is_some();
        if is_full || is_taken || !self.config.accept {
            self.around.statistics.refused_for_limit += 1;
            self.send_abort(route, packet, cookie.peer.tag, |causes| {
                causes.push(&Cause::OutOfResource);
            });
            return None;
        }
        let identity = with_tie_tags(&mut self.around.rng, cookie.identity);
        let config = Arc::clone(&self.config.association);
        let id = AssociationId(self.table.next_key());
        let mut cx = Context::new(now, id, &mut self.around);
        let association = Association::accept(&mut cx, config, identity, route, &cookie.peer);
        Some(self.insert(now, association).index())
    }

    /// Handles a valid cookie for an existing association: Table 12 of RFC 9260 §5.2.4. Returns the
    /// association if the chunks after the cookie are for it.
    fn compare_tags(
        &mut self,
        now: Instant,
        route: Route,
        index: u32,
        cookie: &StateCookie,
    ) -> Option<u32> {
        let slot = self.table.get(index)?;
        let own = *slot.association.identity();
        let local_matches = own.local_tag == cookie.identity.local_tag;
        let peer_matches = slot.association.peer().tag() == cookie.peer.tag;
        let has_ties = cookie.identity.tie_tags == own.tie_tags;
        let is_shutdown_ack_sent = slot.association.state().is_shutdown_ack_sent();
        let has_restarted = match (local_matches, peer_matches) {
            // A: the peer has restarted.
            (false, false) => has_ties,
            // As B, but the peer has restarted during the handshake.
            (true, false) => {
                !slot.association.state().is_setting_up()
                    && slot.association.peer().has_restarted_as(&cookie.peer)
            }
            _ => false,
        };
        match (local_matches, peer_matches) {
            // The peer has restarted since it got this cookie: as C.
            (true, false) if slot.association.peer().is_newer_than(cookie.created) => None,
            _ if has_restarted && is_shutdown_ack_sent => {
                self.call(now, index, |association, _| association.refuse_restart());
                None
            }
            _ if has_restarted => {
                let identity = with_tie_tags(&mut self.around.rng, cookie.identity);
                if let Some((_, slot)) = self.table.get_mut(index) {
                    self.lookup.forget_addresses(index, slot);
                }
                self.call(now, index, |association, cx| {
                    association.restart(cx, identity, route, &cookie.peer);
                });
                Some(index)
            }
            // B: both sides have begun.
            (true, false) => {
                self.call(now, index, |association, cx| {
                    association.on_collision(cx, &cookie.peer);
                });
                Some(index)
            }
            // D: a repeated cookie.
            (true, true) => {
                self.call(now, index, |association, cx| {
                    association.on_cookie_echo_again(cx);
                });
                Some(index)
            }
            // C, and everything that the table does not list.
            _ => None,
        }
    }
}

/// The ports of an answer to `packet`: its ports exchanged.
pub(super) const fn answer_ports(packet: &Packet<'_>) -> Header {
    Header {
        source_port: packet.header.destination_port,
        destination_port: packet.header.source_port,
        verification_tag: 0,
    }
}

/// The association that a cookie of ours concerns: that with our tag in the cookie if its peer sent the INIT, otherwise
/// one whose peer has the port and an address of the INIT.
fn find_of_cookie(endpoint: &Endpoint, cookie: &StateCookie) -> Option<u32> {
    let port = cookie.identity.remote_port;
    let has_begun = |&index: &u32| {
        endpoint.table.get(index).is_some_and(|slot| {
            slot.association.identity().remote_port == port
                && slot.association.peer_addresses().any(|ip| cookie.may_come_from(ip))
        })
    };
    let by_tag = endpoint.lookup.by_tag(cookie.identity.local_tag).filter(has_begun);
    by_tag.or_else(|| endpoint.find_existing(cookie.address, port, &cookie.peer.addresses))
}

/// Gives an association new Tie-Tags, which no cookie contained before.
fn with_tie_tags(rng: &mut Rng, identity: Identity) -> Identity {
    Identity { tie_tags: (rng.u32() | 1, rng.u32() | 1), ..identity }
}
