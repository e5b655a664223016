//! The channels of a connection: their streams, opening and closing, and the messages of each (RFC 8831, RFC 8832).

#[cfg(test)]
mod fuzz;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use rexmit_core::Instant;
use rexmit_sctp::{DEFAULT_PRIORITY, InboundMessage, MessageId, OutboundMessage, ResetError};

use crate::association::Association;
use crate::channel::{Channel, Reset};
use crate::dcep;
use crate::message::PPID_DCEP;
use crate::{
    AgentConfig, ChannelConfig, ChannelId, Event, Message, OpenError, SendError, TrySendError,
};

/// The most streams in one request to reset them.
const MAX_RESETS: usize = 64;
/// The most messages of DCEP that wait for room in the send buffer; beyond that, channels opened by the peer are
/// closed.
const MAX_CONTROL: usize = 1024;

/// The limits of the state that a peer can make this side keep (see [`AgentConfig`]).
struct Limits {
    max_channels: usize,
    max_label_bytes: usize,
}

/// The streams that either side is resetting.
#[derive(Default)]
struct Resets {
    /// Our streams on which the peer has opened a channel that is not allowed.
    refused: BTreeSet<u16>,
    /// Whether a reset of ours was requested, and the peer has not answered.
    is_under_way: bool,
    /// Streams that the peer has reset, until the messages received before are read.
    of_peer: BTreeSet<u16>,
}

pub(crate) struct Channels {
    limits: Limits,
    /// Outgoing streams.
    streams: u16,
    next_id: u64,
    /// Whether this side is the DTLS client, whose streams are even (RFC 8832 §6).
    is_client: Option<bool>,
    by_stream: BTreeMap<u16, Channel>,
    stream_of: BTreeMap<ChannelId, u16>,
    /// Channels opened before it was known which side is the client.
    unassigned: VecDeque<Channel>,
    /// Priorities of streams that the association does not know yet.
    priorities: VecDeque<(u16, u16)>,
    /// OPEN and ACK messages to be sent.
    control: VecDeque<(u16, Vec<u8>)>,
    /// Messages accepted and not sent: their channel and size.
    unsent: BTreeMap<MessageId, (u16, ChannelId, usize)>,
    resets: Resets,
    is_writable_wanted: bool,
    pub(crate) events: VecDeque<Event>,
    /// Messages for no channel, and invalid DCEP messages.
    pub(crate) dropped: u64,
}

impl Channels {
    pub(crate) fn new(config: &AgentConfig) -> Self {
        Self {
            limits: Limits {
                max_channels: config.max_channels,
                max_label_bytes: config.max_label_bytes,
            },
            streams: config.association.streams.outbound,
            next_id: 0,
            is_client: None,
            by_stream: BTreeMap::new(),
            stream_of: BTreeMap::new(),
            unassigned: VecDeque::new(),
            priorities: VecDeque::new(),
            control: VecDeque::new(),
            unsent: BTreeMap::new(),
            resets: Resets::default(),
            is_writable_wanted: false,
            events: VecDeque::new(),
            dropped: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_stream.len() + self.unassigned.len()
    }

    fn new_id(&mut self) -> ChannelId {
        self.next_id += 1;
        ChannelId(self.next_id)
    }

    fn find(&self, id: ChannelId) -> Option<&Channel> {
        self.by_stream.get(self.stream_of.get(&id)?)
    }

    fn insert(&mut self, stream: u16, channel: Channel) {
        self.stream_of.insert(channel.id, stream);
        // The default one, too: an earlier channel may have had the stream.
        let priority = match channel.config.priority {
            0 => DEFAULT_PRIORITY,
            priority => priority,
        };
        self.priorities.push_back((stream, priority));
        self.by_stream.insert(stream, channel);
    }

    /// Opens a channel; DATA_CHANNEL_OPEN is sent once there is a connection.
    pub(crate) fn open(&mut self, config: ChannelConfig) -> Result<ChannelId, OpenError> {
        let limit = self.limits.max_label_bytes.min(usize::from(u16::MAX));
        if self.len() >= self.limits.max_channels {
            return Err(OpenError::TooMany { limit: self.limits.max_channels });
        } else if config.label.len() + config.protocol.len() > limit {
            return Err(OpenError::LabelTooLong { limit });
        }
        let id = self.new_id();
        if let Some(stream) = config.negotiated {
            if stream >= self.streams || self.by_stream.contains_key(&stream) {
                return Err(OpenError::InUse(stream));
            }
            self.insert(stream, Channel::new(id, config, false));
            return Ok(id);
        }
        self.unassigned.push_back(Channel::new(id, config, false));
        self.assign();
        Ok(id)
    }

    /// Called when the DTLS roles are known.
    pub(crate) fn set_role(&mut self, is_client: bool) {
        self.is_client = Some(is_client);
        self.assign();
    }

    /// Assigns to channels the first free streams of this side.
    fn assign(&mut self) {
        let Some(is_client) = self.is_client else { return };
        while let Some(channel) = self.unassigned.pop_front() {
            let mut ours = (u16::from(!is_client)..self.streams).step_by(2);
            let stream = ours.find(|stream| {
                !self.by_stream.contains_key(stream) && !self.resets.refused.contains(stream)
            });
            let Some(stream) = stream else {
                self.events.push_back(Event::ChannelClosed(channel.id));
                continue;
            };
            let open = dcep::Message::Open(channel.config.to_open());
            self.insert(stream, channel);
            self.push_control(stream, &open);
        }
    }

    fn push_control(&mut self, stream: u16, message: &dcep::Message) {
        self.control.push_back((stream, message.to_bytes()));
        if let Some(channel) = self.by_stream.get_mut(&stream) {
            channel.unsent += 1;
        }
    }

    /// Called when the association is established, with this many outgoing streams.
    pub(crate) fn on_connected(&mut self, streams: u16) {
        self.streams = streams;
        self.events.push_back(Event::Connected);
        let beyond: Vec<u16> = self.by_stream.range(streams..).map(|(&stream, _)| stream).collect();
        for stream in beyond {
            self.remove(stream);
        }
        let negotiated: Vec<u16> = self.by_stream.keys().copied().collect();
        for stream in negotiated {
            if self.by_stream.get(&stream).is_some_and(|it| it.config.negotiated.is_some()) {
                self.announce(stream);
            }
        }
    }

    /// Called when the peer knows the channel: reports it as open, once.
    fn announce(&mut self, stream: u16) {
        if let Some(channel) = self.by_stream.get_mut(&stream)
            && !channel.is_open
        {
            channel.is_open = true;
            self.events.push_back(Event::ChannelOpened {
                channel: channel.id,
                config: channel.config.clone(),
                is_incoming: channel.is_incoming,
            });
        }
    }

    fn remove(&mut self, stream: u16) {
        if let Some(channel) = self.by_stream.remove(&stream) {
            self.stream_of.remove(&channel.id);
            self.control.retain(|&(of, _)| of != stream);
            self.events.push_back(Event::ChannelClosed(channel.id));
        }
    }

    /// Accepts a message of at most `limit` bytes.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        association: &mut Association,
        id: ChannelId,
        message: &Message,
        limit: usize,
    ) -> Result<(), TrySendError> {
        if !association.has_begun() {
            return Err(SendError::NotConnected.into());
        }
        let bytes = message.payload().len();
        if bytes > limit {
            return Err(SendError::TooLarge { limit }.into());
        }
        self.flush(now, association);
        let Some(&stream) = self.stream_of.get(&id) else {
            return Err(SendError::NoSuchChannel.into());
        };
        let channel = self.by_stream.get(&stream).filter(|channel| channel.is_usable());
        let channel = channel.ok_or(SendError::NoSuchChannel)?;
        // Not ahead of the channel's OPEN.
        if self.control.iter().any(|&(of, _)| of == stream) {
            self.is_writable_wanted = true;
            return Err(TrySendError::Full);
        }
        let (ppid, payload) = message.to_sctp();
        let message = OutboundMessage::new(stream, payload)
            .ppid(ppid)
            .unordered(channel.may_be_unordered())
            .reliability(channel.config.reliability)
            .deadline(channel.config.deadline);
        self.submit(now, association, message, bytes)
    }

    fn submit(
        &mut self,
        now: Instant,
        association: &mut Association,
        message: OutboundMessage,
        bytes: usize,
    ) -> Result<(), TrySendError> {
        let stream = message.stream;
        let accepted = association.send(now, message).map_err(|error| match error {
            rexmit_sctp::SendError::BufferFull => {
                self.is_writable_wanted = true;
                TrySendError::Full
            }
            rexmit_sctp::SendError::TooLarge { limit } => SendError::TooLarge { limit }.into(),
            _ => SendError::NoSuchChannel.into(),
        })?;
        if let Some(channel) = self.by_stream.get_mut(&stream) {
            channel.unsent += 1;
            channel.buffered += bytes;
            self.unsent.insert(accepted, (stream, channel.id, bytes));
        }
        Ok(())
    }

    /// Closes a channel for the application, after sending its accepted messages.
    pub(crate) fn close(&mut self, id: ChannelId) {
        if let Some(at) = self.unassigned.iter().position(|channel| channel.id == id) {
            self.unassigned.remove(at);
            self.events.push_back(Event::ChannelClosed(id));
        } else if let Some(stream) = self.stream_of.get(&id)
            && let Some(channel) = self.by_stream.get_mut(stream)
            && channel.outgoing == Reset::No
        {
            channel.outgoing = Reset::Wanted;
        }
    }

    /// Sends waiting messages of DCEP, sets priorities, and requests to reset streams.
    pub(crate) fn flush(&mut self, now: Instant, association: &mut Association) {
        if association.has_begun() {
            for (stream, priority) in self.priorities.drain(..) {
                association.set_priority(now, stream, priority);
            }
        }
        while let Some((stream, bytes)) = self.control.front().filter(|_| association.has_begun()) {
            let (stream, message) = (*stream, OutboundMessage::new(*stream, bytes.clone()));
            match self.submit(now, association, message.ppid(PPID_DCEP), 0) {
                Err(TrySendError::Full) => return,
                _ => drop(self.control.pop_front()),
            }
            // Counted when it was queued, too.
            if let Some(channel) = self.by_stream.get_mut(&stream) {
                channel.unsent -= 1;
            }
        }
        self.reset(now, association);
    }

    fn reset(&mut self, now: Instant, association: &mut Association) {
        if self.resets.is_under_way {
            return;
        }
        let is_ready = |channel: &Channel| channel.outgoing == Reset::Wanted && channel.unsent == 0;
        let ready = self.by_stream.iter().filter(|(_, it)| is_ready(it)).map(|(&stream, _)| stream);
        let mut streams: Vec<u16> =
            ready.chain(self.resets.refused.iter().copied()).take(MAX_RESETS).collect();
        if streams.is_empty() {
            return;
        }
        streams.sort_unstable();
        streams.dedup();
        match association.reset_streams(now, &streams) {
            Ok(()) => {
                self.resets.is_under_way = true;
                for stream in &streams {
                    self.resets.refused.remove(stream);
                    if let Some(channel) = self.by_stream.get_mut(stream) {
                        channel.outgoing = Reset::UnderWay;
                    }
                }
            }
            // Of a peer that cannot reset streams nothing more is to be expected.
            Err(ResetError::NotSupported | ResetError::InvalidStream) => {
                for stream in streams {
                    self.resets.refused.remove(&stream);
                    self.remove(stream);
                }
            }
            Err(_) => {}
        }
    }

    /// Called when a message was sent for the first time, or has failed before that.
    pub(crate) fn on_sent(&mut self, id: MessageId) {
        let Some((stream, of, bytes)) = self.unsent.remove(&id) else { return };
        let channel = self.by_stream.get_mut(&stream).filter(|channel| channel.id == of);
        let Some(channel) = channel else { return };
        channel.unsent -= 1;
        let before = channel.buffered;
        channel.buffered -= bytes;
        if before > channel.low_threshold && channel.buffered <= channel.low_threshold {
            self.events.push_back(Event::BufferedAmountLow(of));
        }
    }

    /// Deadlines cannot be met. An application that reads no events finds one.
    pub(crate) fn on_infeasible(&mut self, achievable_ppm: u32) {
        if !self.events.iter().any(|event| matches!(event, Event::Infeasible { .. })) {
            self.events.push_back(Event::Infeasible { achievable_ppm });
        }
    }

    pub(crate) fn on_writable(&mut self) {
        if std::mem::take(&mut self.is_writable_wanted) {
            self.events.push_back(Event::Writable);
        }
    }

    /// Called when our streams are reset; an empty list means all. If the peer refuses, the channel is closed here all
    /// the same.
    pub(crate) fn on_reset(&mut self, streams: &[u16]) {
        self.resets.is_under_way = false;
        let is_meant = |stream: &u16| streams.is_empty() || streams.contains(stream);
        let mut over = Vec::new();
        for (&stream, channel) in &mut self.by_stream {
            if is_meant(&stream) && channel.outgoing == Reset::UnderWay {
                channel.outgoing = Reset::Done;
                over.extend(channel.is_drained().then_some(stream));
            }
        }
        over.into_iter().for_each(|stream| self.remove(stream));
    }

    /// Called when the peer's streams are reset; an empty list means all. The announcement of a channel on one of them may not
    /// have been read yet.
    pub(crate) fn on_peer_reset(&mut self, streams: &[u16]) {
        if streams.is_empty() {
            self.resets.of_peer.extend(0..self.streams);
        }
        self.resets.of_peer.extend(streams);
    }

    /// Applies the peer's resets, after all messages received before them were read. Returns whether there
    /// were any.
    pub(crate) fn on_drained(&mut self) -> bool {
        let has_resets = !self.resets.of_peer.is_empty();
        for stream in std::mem::take(&mut self.resets.of_peer) {
            let Some(channel) = self.by_stream.get_mut(&stream) else { continue };
            channel.is_incoming_reset = true;
            if channel.outgoing == Reset::No {
                channel.outgoing = Reset::Wanted;
            }
            if channel.is_drained() {
                self.remove(stream);
            }
        }
        has_resets
    }

    pub(crate) fn on_message(&mut self, message: InboundMessage) {
        let InboundMessage { stream, ppid, payload, .. } = message;
        if ppid == PPID_DCEP {
            return self.on_control(stream, &payload);
        }
        self.on_content(stream, ppid, payload);
    }

    fn on_content(&mut self, stream: u16, ppid: u32, payload: Bytes) {
        let id = self.by_stream.get(&stream).map(|channel| channel.id);
        match (id, Message::from_sctp(ppid, payload)) {
            (Some(channel), Some(message)) => {
                self.announce(stream);
                self.events.push_back(Event::Message { channel, message });
            }
            (Some(_), None) => self.dropped += 1,
            // RFC 8832 §6: a message on a stream that is not used is an error.
            (None, _) => self.refuse(stream),
        }
    }

    fn on_control(&mut self, stream: u16, bytes: &[u8]) {
        let channel = self.by_stream.get_mut(&stream);
        match (dcep::Message::parse(bytes, self.limits.max_label_bytes), channel) {
            (Ok(dcep::Message::Ack), Some(channel)) if !channel.is_incoming => {
                self.announce(stream);
            }
            (Ok(dcep::Message::Open(open)), None) => self.on_open(stream, open),
            (_, Some(channel)) => {
                self.dropped += 1;
                if channel.outgoing == Reset::No {
                    channel.outgoing = Reset::Wanted;
                }
            }
            (_, None) => self.refuse(stream),
        }
    }

    fn refuse(&mut self, stream: u16) {
        self.dropped += 1;
        if stream < self.streams {
            self.resets.refused.insert(stream);
        }
    }

    /// Called when the peer opens a channel. RFC 8832 §6 requires closing one on a stream of the wrong parity. It is
    /// accepted here, because werift (0.24) uses such streams when it answers, and browsers accept them.
    fn on_open(&mut self, stream: u16, open: dcep::Open) {
        let has_room = self.len() < self.limits.max_channels && self.control.len() < MAX_CONTROL;
        if !has_room || stream >= self.streams || self.resets.refused.contains(&stream) {
            return self.refuse(stream);
        }
        let id = self.new_id();
        self.insert(stream, Channel::new(id, open.into(), true));
        self.push_control(stream, &dcep::Message::Ack);
        self.announce(stream);
    }

    /// Bytes that a channel has accepted and not sent.
    pub(crate) fn buffered(&self, id: ChannelId) -> usize {
        self.find(id).map_or(0, |channel| channel.buffered)
    }

    pub(crate) fn set_low_threshold(&mut self, id: ChannelId, bytes: usize) {
        if let Some(channel) =
            self.stream_of.get(&id).and_then(|stream| self.by_stream.get_mut(stream))
        {
            channel.low_threshold = bytes;
        }
    }
}
