//! TCP options (RFC 9293 §3.2, RFC 7323, RFC 2018).

/// The most SACK blocks that fit the option space (RFC 2018 §3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// The most bytes of options in a header.
pub const MAX_OPTIONS_LEN: usize = 40;

mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const MSS: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
}

/// The timestamps option (RFC 7323 §3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the echo of the other side's TSval; meaningful only with ACK.
    pub echo_reply: u32,
}

/// Up to [`MAX_SACK_BLOCKS`] blocks: the first sequence number of each and the one after its last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); MAX_SACK_BLOCKS],
    len: u8,
}

impl SackBlocks {
    /// Adds a block; a block beyond [`MAX_SACK_BLOCKS`] is ignored.
    pub fn push(&mut self, left: u32, right: u32) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.len)) {
            *place = (left, right);
            self.len += 1;
        }
    }

    /// The blocks in their order on the wire.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Whether there are no blocks.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes all but the first `len` blocks.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(u8::try_from(len).unwrap_or(u8::MAX));
    }
}

/// The options of a segment; unknown ones are skipped (RFC 9293 §3.2, MUST-6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Maximum segment size; only in a SYN.
    pub mss: Option<u16>,
    /// Window scale as sent, before it is limited to 14; only in a SYN.
    pub window_scale: Option<u8>,
    /// Whether SACK is permitted; only in a SYN.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgements; a DSACK is the first (RFC 2883).
    pub sack: SackBlocks,
}

impl Options {
    /// Reads the option bytes; `None` if an option has an impossible length (RFC 9293 §3.2, MUST-7).
    #[must_use]
    #[inline]
    pub fn parse(mut bytes: &[u8]) -> Option<Self> {
        let mut options = Self::default();
        while let [kind, rest @ ..] = bytes {
            match *kind {
                kind::END => break,
                kind::NOP => {
                    bytes = rest;
                    continue;
                }
                _ => {}
            }
            let len = usize::from(*rest.first()?);
            let body = bytes.get(2..len)?;
            options.take(*kind, body);
            bytes = &bytes[len..];
        }
        Some(options)
    }

    /// Reads an option. One of the wrong length is skipped like an unknown one.
    fn take(&mut self, kind: u8, body: &[u8]) {
        match (kind, body) {
            (kind::MSS, &[high, low]) => self.mss = Some(u16::from_be_bytes([high, low])),
            (kind::WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift),
            (kind::SACK_PERMITTED, []) => self.sack_permitted = true,
            (kind::TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                self.timestamps = Some(Timestamps {
                    value: u32::from_be_bytes([a, b, c, d]),
                    echo_reply: u32::from_be_bytes([e, f, g, h]),
                });
            }
            (kind::SACK, blocks) if blocks.len() % 8 == 0 => {
                for block in blocks.chunks_exact(8) {
                    let edge = |at: usize| {
                        u32::from_be_bytes(block[at..at + 4].try_into().expect("four bytes"))
                    };
                    self.sack.push(edge(0), edge(4));
                }
            }
            _ => {}
        }
    }

    /// The length on the wire with padding, at most [`MAX_OPTIONS_LEN`]; SACK blocks that do not fit are left
    /// out.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        match self.sack_blocks_that_fit() {
            [] => self.len_without_sack(),
            blocks => self.len_without_sack() + 4 + 8 * blocks.len(),
        }
    }

    fn len_without_sack(&self) -> usize {
        let len = |is_there, len| if is_there { len } else { 0 };
        len(self.mss.is_some(), 4)
            + len(self.window_scale.is_some(), 4)
            + len(self.sack_permitted, 4)
            + len(self.timestamps.is_some(), 12)
    }

    fn sack_blocks_that_fit(&self) -> &[(u32, u32)] {
        let room = (MAX_OPTIONS_LEN - self.len_without_sack()).saturating_sub(4) / 8;
        let blocks = self.sack.as_slice();
        &blocks[..room.min(blocks.len())]
    }

    /// Appends the options, each padded to a multiple of four bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            out.extend_from_slice(&[kind::MSS, 4, high, low]);
        }
        if let Some(shift) = self.window_scale {
            out.extend_from_slice(&[kind::NOP, kind::WINDOW_SCALE, 3, shift]);
        }
        if self.sack_permitted {
            out.extend_from_slice(&[kind::NOP, kind::NOP, kind::SACK_PERMITTED, 2]);
        }
        if let Some(Timestamps { value, echo_reply }) = self.timestamps {
            out.extend_from_slice(&[kind::NOP, kind::NOP, kind::TIMESTAMPS, 10]);
            out.extend_from_slice(&value.to_be_bytes());
            out.extend_from_slice(&echo_reply.to_be_bytes());
        }
        let blocks = self.sack_blocks_that_fit();
        if !blocks.is_empty() {
            out.extend_from_slice(&[kind::NOP, kind::NOP, kind::SACK, 2 + 8 * blocks.len() as u8]);
            for (left, right) in blocks {
                out.extend_from_slice(&left.to_be_bytes());
                out.extend_from_slice(&right.to_be_bytes());
            }
        }
    }
}
