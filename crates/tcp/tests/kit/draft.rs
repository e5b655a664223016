//! Segments: those that a script describes, and those that were sent.

use std::net::SocketAddr;

use rexmit_core::{Instant, Route};

use super::{Flags, Header, Options, PEER_WINDOW, Segment};

/// A segment as a script writes it, with numbers counted from the SYNs.
#[derive(Clone, Debug)]
pub struct Draft {
    pub flags: Flags,
    pub seq: u32,
    pub ack: u32,
    pub window: u16,
    pub payload: Vec<u8>,
    /// Options that replace the peer's usual ones.
    pub options: Option<Options>,
}

fn draft(flags: Flags, seq: u32, ack: u32) -> Draft {
    Draft { flags, seq, ack, window: PEER_WINDOW, payload: Vec::new(), options: None }
}

/// <SEQ=0><CTL=SYN>
pub fn syn() -> Draft {
    draft(Flags::SYN, 0, 0)
}

/// <SEQ=0><ACK=1><CTL=SYN,ACK>
pub fn syn_ack() -> Draft {
    draft(Flags::SYN.and(Flags::ACK), 0, 1)
}

/// <SEQ=seq><ACK=ack><CTL=ACK>
pub fn ack(seq: u32, ack: u32) -> Draft {
    draft(Flags::ACK, seq, ack)
}

/// The same, with data.
pub fn data(seq: u32, ack: u32, payload: &[u8]) -> Draft {
    Draft { payload: payload.to_vec(), ..self::ack(seq, ack) }
}

/// <SEQ=seq><ACK=ack><CTL=FIN,ACK>
pub fn fin(seq: u32, ack: u32) -> Draft {
    draft(Flags::FIN.and(Flags::ACK), seq, ack)
}

/// <SEQ=seq><CTL=RST>
pub fn rst(seq: u32) -> Draft {
    draft(Flags::RST, seq, 0)
}

/// <SEQ=seq><ACK=ack><CTL=RST,ACK>
pub fn rst_ack(seq: u32, ack: u32) -> Draft {
    draft(Flags::RST.and(Flags::ACK), seq, ack)
}

impl Draft {
    /// With this window field.
    pub fn window(self, window: u16) -> Self {
        Self { window, ..self }
    }

    /// With this payload.
    pub fn payload(self, payload: &[u8]) -> Self {
        Self { payload: payload.to_vec(), ..self }
    }

    /// With these options.
    pub fn options(self, options: Options) -> Self {
        Self { options: Some(options), ..self }
    }

    /// With these flags, too.
    pub fn and(self, flags: Flags) -> Self {
        Self { flags: self.flags.and(flags), ..self }
    }

    /// The header without ports; `own` is the initial sequence number of the sender, `other` that of the receiver.
    pub fn header(&self, own: u32, other: u32) -> Header {
        let has_ack = self.flags.has(Flags::ACK);
        Header {
            sequence: own.wrapping_add(self.seq),
            acknowledgment: if has_ack { other.wrapping_add(self.ack) } else { 0 },
            flags: self.flags,
            window: self.window,
            options: self.options.unwrap_or_default(),
            ..Header::default()
        }
    }
}

/// A segment that was sent. These rules were checked: the checksum is right and the options can be read; MSS, window
/// scale and SACK permitted are in SYNs only; there is no acknowledgment number without ACK, no payload in a RST or
/// SYN, and no FIN in either.
#[derive(Debug)]
pub struct Sent {
    pub at: Instant,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub header: Header,
    pub payload: Vec<u8>,
    pub bytes: Vec<u8>,
}

impl Sent {
    #[track_caller]
    pub fn new(at: Instant, route: Route, bytes: Vec<u8>) -> Self {
        let segment = Segment::parse(route.local.ip(), route.remote.ip(), &bytes)
            .expect("a segment that can be read");
        let Segment { header, payload } = segment;
        let flags = header.flags;
        let (is_syn, is_rst) = (flags.has(Flags::SYN), flags.has(Flags::RST));
        let options = &header.options;
        let has_offers =
            options.mss.is_some() || options.window_scale.is_some() || options.sack_permitted;
        assert!(is_syn || !has_offers, "offers without SYN: {header:?}");
        assert!(!is_syn || options.sack.is_empty(), "SACK in a SYN: {header:?}");
        assert!(!(is_syn && is_rst), "SYN and RST: {header:?}");
        assert!(!(is_syn || is_rst) || payload.is_empty(), "SYN or RST with data: {header:?}");
        assert!(!(is_syn || is_rst) || !flags.has(Flags::FIN), "SYN or RST with FIN: {header:?}");
        assert!(flags.has(Flags::ACK) || is_syn || is_rst, "nothing without ACK: {header:?}");
        assert!(flags.has(Flags::ACK) || header.acknowledgment == 0, "no ACK: {header:?}");
        assert_eq!((route.local.port(), route.remote.port()), (0, 0), "directly over IP");
        assert_ne!(header.source_port, 0);
        assert_ne!(header.destination_port, 0);
        let local = (route.local.ip(), header.source_port).into();
        let remote = (route.remote.ip(), header.destination_port).into();
        let payload = payload.to_vec();
        Self { at, local, remote, header, payload, bytes }
    }

    /// When it was sent, in milliseconds, rounded down.
    pub fn at_ms(&self) -> u64 {
        self.at.as_nanos() / 1_000_000
    }

    /// The segment as a script would write it, with numbers counted from the SYNs.
    pub fn relative(&self, own: u32, other: u32) -> Draft {
        let has_ack = self.header.flags.has(Flags::ACK);
        Draft {
            flags: self.header.flags,
            seq: self.header.sequence.wrapping_sub(own),
            ack: if has_ack { self.header.acknowledgment.wrapping_sub(other) } else { 0 },
            window: self.header.window,
            payload: self.payload.clone(),
            options: Some(self.header.options),
        }
    }
}
