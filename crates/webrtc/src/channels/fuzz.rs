//! Channels under a peer that sends any messages of DCEP and resets any streams: no panic, nothing beyond the limits,
//! and both tables agree. The peer's association is a genuine one, so the resets are, too.

use std::collections::BTreeSet;
use std::time::Duration;

use bolero::{TypeGenerator, check, produce};
use rexmit_core::{Ecn, Instant, Seed};
use rexmit_dtls::Identity;
use rexmit_sctp::{AssociationConfig, Event as Sctp, OutboundMessage};

use super::{Channels, MAX_CONTROL};
use crate::association::Association;
use crate::dcep;
use crate::{AgentConfig, ChannelConfig, ChannelId, Event, Message, Settings};

/// The number of random inputs in `cargo test`.
const ITERATIONS: usize = 2_000;
const TEST_TIME: Duration = Duration::from_secs(4);
const STREAMS: u16 = 16;
const MAX_CHANNELS: usize = 6;
const MAX_LABEL_BYTES: usize = 24;
/// The most packets that one step may cause; more would indicate an endless loop.
const MOST_PACKETS: usize = 10_000;

/// A message of DCEP that is valid, or nearly so.
#[derive(Debug, TypeGenerator)]
struct Draft {
    is_open: bool,
    /// The channel type: usually a known one.
    channel_type: u8,
    parameters: [u8; 6],
    #[generator(produce::<Vec<u8>>().with().len(0usize..20))]
    label: Vec<u8>,
    #[generator(produce::<Vec<u8>>().with().len(0usize..12))]
    protocol: Vec<u8>,
    /// A byte to be replaced: its offset, and the new value.
    damage: Option<(u8, u8)>,
    /// The number of bytes to which the message is truncated.
    cut: Option<u8>,
}

#[derive(Debug, TypeGenerator)]
enum Act {
    /// The peer sends a message of DCEP on a stream.
    Control(u8, Draft),
    /// The peer sends arbitrary bytes, with an identifier near the known ones.
    Any(u8, u8, Vec<u8>),
    /// The peer resets a stream, or all.
    PeerResets(u8),
    /// The application opens a channel, perhaps with a stream of its choice.
    Open(u8, Option<u8>),
    /// The application sends on one of its channels, or closes it.
    Send(u8),
    Close(u8),
    /// Packets pass in both directions.
    Pass,
    /// Time passes until a timer is due.
    Wait,
}

impl Draft {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![2];
        if self.is_open {
            let kinds = [0x00, 0x80, 0x01, 0x81, 0x02, 0x82, 0x00];
            let kind = kinds.get(usize::from(self.channel_type % 8)).copied();
            bytes = vec![3, kind.unwrap_or(self.channel_type)];
            bytes.extend(self.parameters);
            bytes.extend((self.label.len() as u16).to_be_bytes());
            bytes.extend((self.protocol.len() as u16).to_be_bytes());
            // Mostly UTF-8.
            bytes.extend(self.label.iter().map(|byte| if *byte == 255 { 255 } else { byte & 127 }));
            bytes.extend(&self.protocol);
        }
        let len = bytes.len();
        if let Some((at, byte)) = self.damage {
            bytes[usize::from(at) % len] = byte;
        }
        bytes.truncate(self.cut.map_or(len, |cut| usize::from(cut) % (len + 1)));
        bytes
    }
}

/// One side with channels, and a peer that has an association but follows no rules of DCEP.
struct Connection {
    now: Instant,
    channels: Channels,
    ours: Association,
    peers: Association,
    opened: BTreeSet<ChannelId>,
    live: Vec<ChannelId>,
}

impl Connection {
    fn new(settings: &Settings) -> Self {
        let association = |seed| Association::new(&settings.endpoint, &Seed::from_u64(seed));
        let mut connection = Self {
            now: Instant::from_millis(1_000_000),
            channels: Channels::new(&settings.config),
            ours: association(1),
            peers: association(2),
            opened: BTreeSet::new(),
            live: Vec::new(),
        };
        connection.channels.set_role(true);
        connection.peers.connect(connection.now, &settings.endpoint, 5000, None);
        for _ in 0..4 {
            connection.pass();
        }
        connection
    }

    fn act(&mut self, act: &Act) {
        let now = self.now;
        match act {
            Act::Control(stream, draft) => self.inject(*stream, super::PPID_DCEP, draft.bytes()),
            Act::Any(stream, ppid, bytes) => {
                self.inject(*stream, 48 + u32::from(ppid % 12), bytes.clone());
            }
            Act::PeerResets(stream) => {
                let one = [u16::from(*stream) % STREAMS];
                let streams = if *stream > 240 { &[][..] } else { &one };
                let _ = self.peers.reset_streams(now, streams);
            }
            Act::Open(len, stream) => {
                let label = "x".repeat(usize::from(*len) % (MAX_LABEL_BYTES + 4));
                let config = ChannelConfig::new(label).negotiated(stream.map(u16::from));
                self.live.extend(self.channels.open(config));
            }
            Act::Send(which) => {
                if let Some(id) = self.pick(*which) {
                    let message = Message::text("hello");
                    let _ = self.channels.send(now, &mut self.ours, id, &message, 1000);
                }
            }
            Act::Close(which) => {
                if let Some(id) = self.pick(*which) {
                    self.channels.close(id);
                }
            }
            Act::Pass => {}
            Act::Wait => self.wait(),
        }
        self.pass();
        self.check();
    }

    fn pick(&self, which: u8) -> Option<ChannelId> {
        self.live.get(usize::from(which) % self.live.len().max(1)).copied()
    }

    fn inject(&mut self, stream: u8, ppid: u32, bytes: Vec<u8>) {
        if let Ok(message) = dcep::Message::parse(&bytes, MAX_LABEL_BYTES)
            && ppid == super::PPID_DCEP
        {
            let again = dcep::Message::parse(&message.to_bytes(), MAX_LABEL_BYTES);
            assert_eq!(again, Ok(message));
        }
        let message = OutboundMessage::new(u16::from(stream) % STREAMS, bytes).ppid(ppid);
        let _ = self.peers.send(self.now, message);
    }

    fn wait(&mut self) {
        let all = [self.ours.poll_timeout(), self.peers.poll_timeout()];
        let Some(at) = all.into_iter().flatten().min() else { return };
        self.now = self.now.max(at);
        self.ours.handle_timeout(self.now);
        self.peers.handle_timeout(self.now);
    }

    /// Exchanges packets until the queues are empty, and handles events as an agent does.
    fn pass(&mut self) {
        let (now, mut packet) = (self.now, Vec::new());
        for _ in 0..MOST_PACKETS {
            self.drain();
            self.channels.flush(now, &mut self.ours);
            while self.peers.poll_event().is_some() || self.peers.receive(now).is_some() {}
            if self.ours.poll_transmit(now, &mut packet) {
                self.peers.handle_input(now, Ecn::NotEct, &packet);
            } else if self.peers.poll_transmit(now, &mut packet) {
                self.ours.handle_input(now, Ecn::NotEct, &packet);
            } else {
                return;
            }
        }
        panic!("a connection does not become idle");
    }

    fn drain(&mut self) {
        while let Some(event) = self.ours.poll_event() {
            match event {
                Sctp::Connected { outbound_streams, .. } => {
                    self.channels.on_connected(outbound_streams);
                }
                Sctp::Writable => self.channels.on_writable(),
                Sctp::MessageSent(id) | Sctp::MessageFailed { id, .. } => self.channels.on_sent(id),
                Sctp::StreamsReset { streams, .. } => self.channels.on_reset(&streams),
                Sctp::PeerResetStreams(streams) => self.channels.on_peer_reset(&streams),
                _ => {}
            }
        }
        while let Some(message) = self.ours.receive(self.now) {
            self.channels.on_message(message);
        }
        self.channels.on_drained();
        while let Some(event) = self.channels.events.pop_front() {
            match event {
                Event::ChannelOpened { channel, .. } => {
                    assert!(self.opened.insert(channel), "opened twice");
                    if !self.live.contains(&channel) {
                        self.live.push(channel);
                    }
                }
                Event::Message { channel, .. } => {
                    assert!(self.opened.contains(&channel), "a message ahead of its channel");
                }
                Event::ChannelClosed(channel) => self.live.retain(|&id| id != channel),
                _ => {}
            }
        }
    }

    fn check(&self) {
        let channels = &self.channels;
        assert!(channels.len() <= MAX_CHANNELS, "{} channels", channels.len());
        assert!(channels.control.len() <= MAX_CONTROL + MAX_CHANNELS);
        assert!(channels.resets.refused.len() <= usize::from(STREAMS));
        assert!(channels.resets.of_peer.len() <= usize::from(STREAMS));
        assert_eq!(channels.by_stream.len(), channels.stream_of.len());
        for (stream, channel) in &channels.by_stream {
            assert!(*stream < STREAMS);
            assert_eq!(channels.stream_of.get(&channel.id), Some(stream));
            let text = channel.config.label.len() + channel.config.protocol.len();
            assert!(text <= MAX_LABEL_BYTES, "{text} bytes of label and protocol");
        }
    }
}

#[test]
fn messages_of_a_peer_without_rules() {
    let association =
        AssociationConfig::interactive().outbound_streams(STREAMS).max_inbound_streams(STREAMS);
    let config = AgentConfig::new(Identity::from_seed(&Seed::from_u64(1)))
        .association(association)
        .max_channels(MAX_CHANNELS)
        .max_label_bytes(MAX_LABEL_BYTES);
    let settings = Settings::new(config).expect("the configuration is valid");
    assert!(Connection::new(&settings).ours.has_begun());
    let acts = produce::<Vec<Act>>().with().len(0usize..60);
    check!().with_generator(acts).with_iterations(ITERATIONS).with_test_time(TEST_TIME).for_each(
        |acts| {
            let mut connection = Connection::new(&settings);
            acts.iter().for_each(|act| connection.act(act));
        },
    );
}
