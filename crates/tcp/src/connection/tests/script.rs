//! One connection, a peer that is driven by hand, and the clock. A script reads like a trace:
//!
//! ```ignore
//! let mut s = Script::established();
//! s.peer("P. 1:101(100) ack 1");           // arrives, now
//! s.at(40).expect(". 1:1(0) ack 101");     // leaves at 40 ms, and nothing before
//! ```
//!
//! - A segment is its flags (`S`, `F`, `R`, `P`, and `.` for ACK), its sequence numbers with the
//!   length, and if they matter `ack`, `win` (the field), and `<options>`. Numbers count from the
//!   SYN of their side; both sides' wrap on the wire within the first 1500 bytes.
//! - Each payload byte is a function of its place in the stream ([`byte_at`]), against which sent bytes are checked.
//! - A sent segment that the script did not `expect` fails the test: before time moves on, and at its end.
//! - By default, only SACK is negotiated, and the MSS is 1000 bytes.

use super::*;
use crate::wire::{Options, Timestamps};

/// Both initial sequence numbers.
const ISS: u32 = u32::MAX - 1500;
/// The peer's window unless a script sets another.
const PEER_WINDOW: u16 = 60_000;
/// The peer's SYN.
pub(super) const SYN: &str = "S 0:0(0) <mss 1000,sackOK>";

pub(super) fn byte_at(place: u64) -> u8 {
    (place * 31 % 251) as u8
}

pub(super) fn bytes(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(byte_at).collect()
}

pub(super) struct Script {
    pub(super) end: End,
    now: Instant,
    /// Bytes sent so far.
    sent: u64,
    /// The window field of sent segments is shown, too.
    pub(super) shows_window: bool,
}

pub(super) fn plain() -> ConnectionConfig {
    ConnectionConfig { mss: 1000, window_scaling: false, timestamps: false, ..config() }
}

fn scripted_identity() -> Identity {
    Identity { iss: ISS, timestamp_offset: 0, ..identity(1, 2) }
}

impl Script {
    fn new(around: Surroundings, connection: Connection) -> Self {
        let end = End::new(connection, around, ConnectionId::new(0, 0));
        Self { end, now: Instant::ZERO, sent: 0, shows_window: false }
    }

    /// A connection in SYN-SENT whose SYN was not sent yet.
    pub(super) fn client(config: ConnectionConfig) -> Self {
        let mut around = surroundings(1);
        let id = ConnectionId::new(0, 0);
        let mut cx = Context { now: Instant::ZERO, id, around: &mut around };
        let connection = Connection::connect(&mut cx, Arc::new(config), scripted_identity());
        Self::new(around, connection)
    }

    /// A connection in SYN-RECEIVED after the peer's `syn`, whose SYN-ACK was not sent yet.
    pub(super) fn server(config: ConnectionConfig, syn: &str) -> Self {
        let mut around = surroundings(1);
        let id = ConnectionId::new(0, 0);
        let mut cx = Context { now: Instant::ZERO, id, around: &mut around };
        let (header, payload) = parse(syn);
        let segment = Segment { header, payload: &payload };
        let connection =
            Connection::accept(&mut cx, Arc::new(config), scripted_identity(), &segment);
        Self::new(around, connection)
    }

    /// A connection established at 0 ms, with an RTO of 1 s.
    pub(super) fn established() -> Self {
        Self::established_with(plain(), SYN)
    }

    pub(super) fn established_with(config: ConnectionConfig, syn: &str) -> Self {
        let mut s = Self::server(config, syn);
        s.next_segment().expect("a SYN-ACK");
        let options = if syn.contains("ts ") { " <ts 1:0>" } else { "" };
        s.peer(&format!(". 1:1(0) ack 1{options}"));
        assert_eq!(s.state(), State::Established);
        s.end.events.clear();
        s
    }

    pub(super) const fn now(&self) -> Instant {
        self.now
    }

    pub(super) fn state(&self) -> State {
        self.end.connection.state()
    }

    /// Moves the clock to `ms`, at which timers expire; nothing may be sent before.
    #[track_caller]
    pub(super) fn at(&mut self, ms: u64) -> &mut Self {
        let end = Instant::from_millis(ms);
        assert!(end >= self.now, "{ms} ms is past at {:?}", self.now);
        self.expect_silence();
        while let Some(due) = self.end.connection.next_timeout().filter(|&due| due < end) {
            self.fire(due);
            self.expect_silence();
        }
        self.fire(end);
        self
    }

    fn fire(&mut self, at: Instant) {
        self.now = at.max(self.now);
        self.end.call(self.now, Connection::on_timeout);
        let next = self.end.connection.next_timeout();
        assert!(next.is_none_or(|next| next > self.now), "a timer that was due did not fire");
    }

    /// A segment of the peer arrives.
    pub(super) fn peer(&mut self, text: &str) -> &mut Self {
        let (header, payload) = parse(text);
        let segment = Segment { header, payload: &payload };
        self.end.call(self.now, |c, cx| c.on_segment(cx, &segment));
        self
    }

    /// Requires that the next segment is sent now, and is this one.
    #[track_caller]
    pub(super) fn expect(&mut self, text: &str) -> &mut Self {
        let sent = self.next_segment();
        assert_eq!(sent.as_deref(), Some(text), "at {:?}", self.now);
        self
    }

    #[track_caller]
    pub(super) fn expect_silence(&mut self) {
        let sent = self.next_segment();
        assert_eq!(sent, None, "at {:?} nothing was expected", self.now);
    }

    /// The next event.
    #[track_caller]
    pub(super) fn expect_event(&mut self, event: &Event) -> &mut Self {
        assert!(!self.end.events.is_empty(), "no event, but {event:?} was expected");
        assert_eq!(self.end.events.remove(0), *event);
        self
    }

    /// The application sends `len` more bytes, all of which must be accepted.
    #[track_caller]
    pub(super) fn send(&mut self, len: u64) -> &mut Self {
        let bytes = bytes(1 + self.sent, 1 + self.sent + len);
        assert_eq!(self.end.send(self.now, &bytes) as u64, len);
        self.sent += len;
        self
    }

    /// The application reads up to `len` bytes. Returns their number.
    pub(super) fn read(&mut self, len: usize) -> usize {
        let (mut into, from) = (vec![0; len], 1 + self.end.received.len() as u64);
        let count = self.end.call(self.now, |c, cx| c.receive(cx, &mut into)).unwrap_or(0);
        assert_eq!(into[..count], bytes(from, from + count as u64));
        self.end.received.extend(&into[..count]);
        count
    }

    pub(super) fn finish(&mut self) -> &mut Self {
        self.end.call(self.now, Connection::finish);
        self
    }

    pub(super) fn close(&mut self) -> &mut Self {
        self.end.call(self.now, Connection::close);
        self
    }

    /// Drops all segments sent now.
    pub(super) fn drain(&mut self) -> &mut Self {
        while self.next_segment().is_some() {}
        self
    }

    /// The next segment, which must be sent now.
    pub(super) fn end_next(&mut self) -> String {
        self.next_segment().expect("a segment")
    }

    /// Discards the segments that are due, for a script that ends before they are sent.
    pub(super) fn silent(mut self) -> Self {
        self.drain();
        self
    }

    /// The next segment, if one is sent now.
    pub(super) fn poll(&mut self) -> Option<String> {
        self.next_segment()
    }

    fn next_segment(&mut self) -> Option<String> {
        let mut packet = Vec::new();
        if !self.end.call(self.now, |c, cx| c.poll_transmit(cx, &mut packet)) {
            return None;
        }
        let identity = *self.end.connection.identity();
        let segment = Segment::parse(identity.local.ip(), identity.remote.ip(), &packet);
        Some(self.text(&segment.expect("it is well-formed")))
    }

    fn text(&self, segment: &Segment<'_>) -> String {
        let Header { sequence, acknowledgment, flags, options, .. } = &segment.header;
        let letters = [
            (Flags::SYN, 'S'),
            (Flags::FIN, 'F'),
            (Flags::RST, 'R'),
            (Flags::PSH, 'P'),
            (Flags::ACK, '.'),
        ];
        let letters: String =
            letters.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, l)| *l).collect();
        let start = sequence.wrapping_sub(ISS);
        let len = segment.payload.len();
        let end = u64::from(start) + len as u64;
        assert_eq!(segment.payload, bytes(start.into(), end), "the payload of {start}");
        let mut text = format!("{letters} {start}:{end}({len})");
        if flags.has(Flags::ACK) {
            text += &format!(" ack {}", acknowledgment.wrapping_sub(ISS));
        }
        if self.shows_window {
            text += &format!(" win {}", segment.header.window);
        }
        if !options.sack.is_empty() {
            let blocks = options.sack.as_slice().iter();
            let blocks: Vec<String> = blocks
                .map(|(l, r)| format!("{}:{}", l.wrapping_sub(ISS), r.wrapping_sub(ISS)))
                .collect();
            text += &format!(" <sack {}>", blocks.join(" "));
        }
        if let Some(ts) = options.timestamps {
            text += &format!(" <ts {}:{}>", ts.value, ts.echo_reply);
        }
        text
    }
}

/// An unexpected segment is a failure.
impl Drop for Script {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.expect_silence();
        }
    }
}

fn pair(text: &str) -> (u32, u32) {
    let (a, b) = text.split_once(':').expect("two numbers");
    (a.parse().expect("a number"), b.parse().expect("a number"))
}

/// See the module.
fn parse(text: &str) -> (Header, Vec<u8>) {
    let (text, options) = match text.split_once(" <") {
        Some((text, options)) => (text, options.trim_end_matches('>')),
        None => (text, ""),
    };
    let mut words = text.split(' ');
    let flags = words.next().expect("flags").chars().fold(Flags::default(), |flags, letter| {
        flags.and(match letter {
            'S' => Flags::SYN,
            'F' => Flags::FIN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            'U' => Flags::URG,
            '.' => Flags::ACK,
            _ => Flags::default(),
        })
    });
    let (numbers, _) = words.next().and_then(|w| w.split_once('(')).expect("start:end(len)");
    let (start, end) = pair(numbers);
    let id = scripted_identity();
    let mut header = Header {
        source_port: id.remote.port(),
        destination_port: id.local.port(),
        sequence: ISS.wrapping_add(start),
        flags,
        window: PEER_WINDOW,
        options: parse_options(options),
        ..Header::default()
    };
    while let Some(word) = words.next() {
        let number: u32 = words.next().and_then(|w| w.parse().ok()).expect("a number");
        match word {
            "ack" => header.acknowledgment = ISS.wrapping_add(number),
            "win" => header.window = number as u16,
            _ => panic!("{word}?"),
        }
    }
    // Data in a SYN segment begins one sequence number after the SYN.
    let first = u64::from(flags.has(Flags::SYN));
    (header, bytes(first + u64::from(start), first + u64::from(end)))
}

fn parse_options(text: &str) -> Options {
    let mut options = Options::default();
    for option in text.split(',').filter(|option| !option.is_empty()) {
        let (name, rest) = option.split_once(' ').unwrap_or((option, ""));
        match name {
            "mss" => options.mss = rest.parse().ok(),
            "wscale" => options.window_scale = rest.parse().ok(),
            "sackOK" => options.sack_permitted = true,
            "ts" => {
                let (value, echo_reply) = pair(rest);
                options.timestamps = Some(Timestamps { value, echo_reply });
            }
            "sack" => {
                for (left, right) in rest.split(' ').map(pair) {
                    options.sack.push(ISS.wrapping_add(left), ISS.wrapping_add(right));
                }
            }
            _ => panic!("{name}?"),
        }
    }
    options
}
