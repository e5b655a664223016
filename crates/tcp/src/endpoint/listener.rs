//! Listening ports, and segments for them that belong to no connection (RFC 9293 §3.10.7.2).

use std::sync::Arc;

use rexmit_core::Instant;
use rexmit_core::serial::Serial;

use super::cookie::{self, Opened, Refused};
use super::four_tuple::FourTuple;
use super::lookup::Slot;
use super::{ConnectionId, Endpoint, Reply};
use crate::config::ConnectionConfig;
use crate::connection::{Connection, Context, Negotiated, syn_header, timestamp_clock};
use crate::error::ListenError;
use crate::wire::{Flags, Header, Segment};

/// A listening port.
#[derive(Debug)]
pub(super) struct Listener {
    config: Arc<ConnectionConfig>,
    /// Connections in SYN-RECEIVED on this port.
    pub(super) half_open: usize,
}

impl Listener {
    /// Whether its connections use timestamps, if the peer offers them.
    pub(super) fn takes_timestamps(&self) -> bool {
        self.config.timestamps
    }
}

impl Endpoint {
    /// Accepts connections to `port` on every local address, with the configuration `config` or, if `None`,
    /// that of the endpoint. [`Event::Connected`](crate::Event::Connected) reports each that is established.
    ///
    /// # Errors
    /// See [`ListenError`].
    pub fn listen(
        &mut self,
        port: u16,
        config: Option<Arc<ConnectionConfig>>,
    ) -> Result<(), ListenError> {
        let config = config.unwrap_or_else(|| Arc::clone(&self.config.connection));
        config.validate()?;
        if port == 0 {
            return Err(ListenError::PortZero);
        } else if self.listeners.contains_key(&port) {
            return Err(ListenError::AddressInUse);
        }
        let half_open = self.table.iter().filter(|slot| slot.half_open_at == Some(port)).count();
        self.listeners.insert(port, Listener { config, half_open });
        Ok(())
    }

    /// Stops accepting connections to `port`. Established connections are unchanged, and handshakes in
    /// progress are completed.
    pub fn stop_listening(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// Called when a segment arrived for a listening port and no connection.
    pub(super) fn on_listen(&mut self, now: Instant, tuple: &FourTuple, segment: &Segment<'_>) {
        let flags = segment.header.flags;
        if flags.has(Flags::RST) {
            // There is nothing that it could reset.
        } else if flags.has(Flags::ACK) {
            self.on_ack_in_listen(now, tuple, segment);
        } else if flags.has(Flags::SYN) && !flags.has(Flags::FIN) {
            self.accept(now, tuple, segment, None);
        }
    }

    /// Begins a connection with a peer that sent a SYN, or answers with a SYN cookie if the backlog is full. `floor` is
    /// given if the SYN reopens a connection in TIME-WAIT: the least initial sequence number that we may use.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        tuple: &FourTuple,
        syn: &Segment<'_>,
        floor: Option<u32>,
    ) {
        let Some(listener) = self.listeners.get(&tuple.local.1) else { return };
        let config = Arc::clone(&listener.config);
        // A reopened connection does not need room in the backlog: it replaces one whose peer has proved its address.
        let is_full = listener.half_open >= self.config.syn_backlog && floor.is_none();
        if !self.has_room() {
            self.around.statistics.refused_for_limit += 1;
        } else if is_full {
            self.send_cookie(now, tuple, &syn.header, &config);
        } else {
            if let Some(listener) = self.listeners.get_mut(&tuple.local.1) {
                listener.half_open += 1;
            }
            let mut identity = self.identity(now, tuple);
            identity.iss = match floor {
                Some(floor) if Serial(identity.iss).is_before(Serial(floor)) => floor,
                _ => identity.iss,
            };
            let id = ConnectionId(self.table.next_key());
            let mut cx = Context { now, id, around: &mut self.around };
            let connection = Connection::accept(&mut cx, config, identity, syn);
            let half_open_at = Some(tuple.local.1);
            self.insert(Slot { half_open_at, ..Slot::new(connection, *tuple) });
            self.settle(now, id.index());
        }
    }

    /// Answers a SYN with a SYN cookie, without keeping state.
    fn send_cookie(
        &mut self,
        now: Instant,
        tuple: &FourTuple,
        syn: &Header,
        config: &ConnectionConfig,
    ) {
        let kept = cookie::kept(syn, tuple.is_v6(), config.timestamps);
        let mut identity = self.identity(now, tuple);
        identity.iss = self.cookies.make(now, tuple, &kept);
        let agreed = Negotiated::from_syns(config, &kept, tuple.is_v6());
        let clock = timestamp_clock(now, identity.timestamp_offset);
        let stamp = cookie::timestamp(clock, &kept.options);
        let header = syn_header(config, &identity, Some(&agreed), stamp);
        if self.reply(Reply { tuple: *tuple, header }) {
            self.around.statistics.cookies.sent += 1;
        }
    }

    /// Handles an ACK for a listening port without a connection: it returns a SYN cookie and creates the connection, or
    /// is out of the blue.
    fn on_ack_in_listen(&mut self, now: Instant, tuple: &FourTuple, segment: &Segment<'_>) {
        let Some(listener) = self.listeners.get(&tuple.local.1) else { return };
        if segment.header.flags.has(Flags::SYN) {
            return self.on_unknown(now, tuple, segment);
        }
        let config = Arc::clone(&listener.config);
        let offset = self.beginnings.timestamp_offset(tuple);
        let clock = config.timestamps.then(|| timestamp_clock(now, offset));
        match self.cookies.open(now, tuple, &segment.header, clock) {
            Ok(_) if !self.has_room() => self.around.statistics.refused_for_limit += 1,
            Ok(opened) => {
                self.cookies.accept(now, &opened);
                self.establish(now, tuple, segment, &opened, config);
            }
            Err(refused) => {
                self.around.statistics.cookies.refused += 1;
                // The segment may have overtaken the ACK that returns the cookie, and a RST would end that connection.
                // A segment with data will be retransmitted after that ACK.
                if refused != Refused::Unknown || segment.sequence_len() == 0 {
                    self.on_unknown(now, tuple, segment);
                }
            }
        }
    }

    fn establish(
        &mut self,
        now: Instant,
        tuple: &FourTuple,
        segment: &Segment<'_>,
        opened: &Opened,
        config: Arc<ConnectionConfig>,
    ) {
        let mut identity = self.identity(now, tuple);
        identity.iss = segment.header.acknowledgment.wrapping_sub(1);
        let agreed = Negotiated::from_syns(&config, &opened.syn, tuple.is_v6());
        let id = ConnectionId(self.table.next_key());
        let mut cx = Context { now, id, around: &mut self.around };
        let connection = Connection::from_cookie(&mut cx, config, identity, agreed);
        self.insert(Slot::new(connection, *tuple));
        self.around.statistics.cookies.accepted += 1;
        self.call(now, id.index(), |connection, cx| connection.on_segment(cx, segment));
    }
}
