//! Parsing of records and the ClientHello, as far as needed before the library sees them (RFC 9147 §4, §5).

/// Content types of DTLS 1.2 (RFC 6347 §4.1).
const CHANGE_CIPHER_SPEC: u8 = 20;
const APPLICATION_DATA: u8 = 23;
/// Content types (RFC 9147 §4) that a peer may send in the clear: alert, handshake, ACK.
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const ACK: u8 = 26;
/// The most records in a datagram, because each costs a decryption; a datagram with more is dropped.
const MAX_RECORDS: usize = 16;
/// The longest record (RFC 8446 §5.2).
const MAX_RECORD_BYTES: usize = PLAINTEXT_HEADER_BYTES + (1 << 14) + 256;
/// Header of a record in the clear.
const PLAINTEXT_HEADER_BYTES: usize = 13;
/// Header of a handshake message (RFC 9147 §5.2).
const MESSAGE_HEADER_BYTES: usize = 12;
const CLIENT_HELLO: u8 = 1;
/// The extensions `cookie` (RFC 8446 §4.2.2) and `padding` (RFC 7685).
const COOKIE: [u8; 2] = [0, 44];
const PADDING: [u8; 2] = [0, 21];
/// Type and length of an extension.
const EXTENSION_HEADER_BYTES: usize = 4;

/// Whether a record with this first byte is protected (RFC 9147 §4: the bits 001).
const fn is_protected(first: u8) -> bool {
    first & 0xe0 == 0x20
}

/// Removes the first record from `datagram`, and returns it; `None` if it is truncated, too long, or not a
/// record.
fn split_record<'a>(datagram: &mut &'a [u8]) -> Option<&'a [u8]> {
    let first = *datagram.first()?;
    let len = if is_protected(first) {
        let sequence_bytes = if first & 0x08 == 0 { 1 } else { 2 };
        let has_connection_id = first & 0x10 != 0;
        let has_length = first & 0x04 != 0;
        let at = 1 + sequence_bytes;
        if has_connection_id {
            return None;
        } else if has_length {
            let len = datagram.get(at..at + 2)?;
            at + 2 + usize::from(u16::from_be_bytes([len[0], len[1]]))
        } else {
            datagram.len()
        }
    } else {
        let len = datagram.get(PLAINTEXT_HEADER_BYTES - 2..PLAINTEXT_HEADER_BYTES)?;
        PLAINTEXT_HEADER_BYTES + usize::from(u16::from_be_bytes([len[0], len[1]]))
    };
    let (record, rest) = datagram.split_at_checked(len).filter(|_| len <= MAX_RECORD_BYTES)?;
    *datagram = rest;
    Some(record)
}

/// The whole records at the beginning of `datagram`.
pub(crate) fn records(mut datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || split_record(&mut datagram))
}

/// The part of a datagram that the library may see.
///
/// During the handshake these are all records, if those in the clear belong to a handshake: the library would queue
/// application data in the clear until the handshake is complete. Afterwards these are the protected records, which
/// follow those in the clear.
pub(crate) fn admissible(datagram: &[u8], is_handshaking: bool) -> Option<&[u8]> {
    let mut rest = datagram;
    let mut protected = None;
    let mut count = 0;
    while !rest.is_empty() {
        count += 1;
        if count > MAX_RECORDS {
            return None;
        }
        let from = rest;
        let record = split_record(&mut rest)?;
        match (is_protected(record[0]), protected) {
            (true, None) => protected = Some(from),
            (true, Some(_)) => {}
            (false, None) if matches!(record[0], ALERT | HANDSHAKE | ACK) => {}
            // Of another type, or behind a protected record.
            (false, _) => return None,
        }
    }
    if is_handshaking { Some(datagram) } else { protected }
}

/// The records that a [session](crate::Session) admits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// All records but plaintext application data.
    Handshake,
    /// Protected records, and flights of a handshake that the peer retransmits.
    Flights,
    /// Protected records.
    Protected,
}

/// Whether the library may see the datagram, which is of DTLS 1.2 or 1.3: none of its records is truncated or of a type
/// that could do harm in this state.
pub(crate) fn admissible_in_session(datagram: &[u8], admission: Admission) -> bool {
    let mut rest = datagram;
    let mut count = 0;
    while !rest.is_empty() {
        count += 1;
        let Some(record) = split_record(&mut rest).filter(|_| count <= MAX_RECORDS) else {
            return false;
        };
        // RFC 6347 §4.1: records of DTLS 1.2 that are protected have an epoch that is not 0.
        let is_clear = !is_protected(record[0]) && record[3..5] == [0, 0];
        let is_admitted = match (record[0], admission) {
            (first, _) if is_protected(first) => true,
            (CHANGE_CIPHER_SPEC | HANDSHAKE, Admission::Handshake | Admission::Flights) => true,
            (ALERT | ACK, Admission::Handshake) => true,
            (CHANGE_CIPHER_SPEC | ALERT | HANDSHAKE | APPLICATION_DATA, _) => !is_clear,
            _ => false,
        };
        if !is_admitted {
            return false;
        }
    }
    count > 0
}

/// Numbers of a client's records in the clear.
///
/// The library retransmits its first ClientHello in a record of number 0 again. A pair of epoch and number must be
/// unique (RFC 6347 §4.1): a server with replay protection would drop the retransmission, so that a lost
/// HelloVerifyRequest would end the handshake. These numbers are not authenticated, so the records are renumbered.
#[derive(Default)]
pub(crate) struct ClearNumbers {
    /// First ClientHellos transmitted.
    hellos: u64,
}

impl ClearNumbers {
    /// Numbers the clear records of a datagram of the library: above those of all retransmitted ClientHellos.
    pub(crate) fn renumber(&mut self, datagram: &mut [u8]) {
        let mut at = 0;
        while let Some(record) = split_record(&mut &datagram[at..]) {
            let len = record.len();
            // Epoch 0: not protected by DTLS 1.2 either.
            if !is_protected(record[0]) && record[3..5] == [0, 0] {
                let field = at + 5..at + PLAINTEXT_HEADER_BYTES - 2;
                let number = datagram[field.clone()].iter().fold(0, |n, &b| n << 8 | u64::from(b));
                self.hellos += u64::from(number == 0);
                let number = number + self.hellos.saturating_sub(1);
                datagram[field].copy_from_slice(&number.to_be_bytes()[2..]);
            }
            at += len;
        }
    }
}

/// Whether the datagram may be the first of a peer.
pub(crate) fn is_client_hello(datagram: &[u8]) -> bool {
    datagram.first() == Some(&HANDSHAKE)
        && datagram.get(PLAINTEXT_HEADER_BYTES) == Some(&CLIENT_HELLO)
}

/// A ClientHello that is completely in one record.
pub(crate) struct ClientHello<'a> {
    body: &'a [u8],
    /// The offset of its extensions in the body, after their length.
    extensions_at: usize,
    cookie: Option<Cookie<'a>>,
    /// The place of the padding among the extensions.
    padding_at: Option<usize>,
}

/// The extension that echoes a cookie.
struct Cookie<'a> {
    /// Offset of the extension among the extensions.
    at: usize,
    /// The length of the whole extension.
    len: usize,
    value: &'a [u8],
}

/// Removes a vector from the start of `bytes`; its length has `N` bytes (RFC 8446 §3.4).
fn split_vector<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, rest) = bytes.split_first_chunk::<N>()?;
    let len = len.iter().fold(0, |len, &byte| len << 8 | usize::from(byte));
    let (vector, rest) = rest.split_at_checked(len)?;
    *bytes = rest;
    Some(vector)
}

impl<'a> ClientHello<'a> {
    /// The ClientHello, if `datagram` consists of one.
    pub(crate) fn parse(datagram: &'a [u8]) -> Option<Self> {
        let mut rest = datagram;
        let record = split_record(&mut rest).filter(|_| is_client_hello(datagram))?;
        let (header, body) =
            record[PLAINTEXT_HEADER_BYTES..].split_first_chunk::<MESSAGE_HEADER_BYTES>()?;
        // Length; message_seq; fragment_offset; fragment_length.
        let is_whole = rest.is_empty()
            && header[6..9] == [0; 3]
            && header[1..4] == header[9..]
            && header[1..4] == (body.len() as u32).to_be_bytes()[1..];
        if !is_whole {
            return None;
        }
        let mut rest = body.get(2 + 32..)?; // legacy_version and random
        split_vector::<1>(&mut rest)?; // legacy_session_id
        split_vector::<1>(&mut rest)?; // legacy_cookie
        split_vector::<2>(&mut rest)?; // cipher_suites
        split_vector::<1>(&mut rest)?; // legacy_compression_methods
        let extensions = split_vector::<2>(&mut rest).filter(|_| rest.is_empty())?;
        let extensions_at = body.len() - extensions.len();
        let (cookie, padding_at) = find_cookie(extensions)?;
        Some(Self { body, extensions_at, cookie, padding_at })
    }

    pub(crate) fn random(&self) -> &'a [u8] {
        &self.body[2..34]
    }

    pub(crate) fn cookie(&self) -> Option<&'a [u8]> {
        self.cookie.as_ref().map(|cookie| cookie.value)
    }

    /// The client's first ClientHello as a record, reconstructed from this second one: without the cookie, and with a
    /// padding extension, if any, that is longer by the cookie's length (RFC 8446 §4.1.2). A client that changed its
    /// padding in another way cannot complete the handshake.
    pub(crate) fn first(&self) -> Vec<u8> {
        let body = match &self.cookie {
            Some(cookie) => self.body_without(cookie),
            None => self.body.to_vec(),
        };
        let len = &(body.len() as u32).to_be_bytes()[1..];
        let record_len = ((MESSAGE_HEADER_BYTES + body.len()) as u16).to_be_bytes();
        let record = [HANDSHAKE, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0];
        [&record, &record_len[..], &[CLIENT_HELLO], len, &[0; 5], len, &body].concat()
    }

    fn body_without(&self, cookie: &Cookie<'_>) -> Vec<u8> {
        let (before, extensions) = self.body.split_at(self.extensions_at);
        let mut extensions = extensions.to_vec();
        let mut before = before.to_vec();
        if let Some(at) = self.padding_at {
            let len_at = at + EXTENSION_HEADER_BYTES - 2;
            let len = u16::from_be_bytes([extensions[len_at], extensions[len_at + 1]]);
            let longer = len.saturating_add(cookie.len as u16);
            extensions[len_at..len_at + 2].copy_from_slice(&longer.to_be_bytes());
            let end = len_at + 2 + usize::from(len);
            let more = std::iter::repeat_n(0, usize::from(longer - len));
            extensions.splice(end..end, more);
        }
        let is_shifted = self.padding_at.is_some_and(|at| at < cookie.at);
        let at = cookie.at + if is_shifted { cookie.len } else { 0 };
        extensions.drain(at..at + cookie.len);
        let len = (extensions.len() as u16).to_be_bytes();
        let len_at = before.len() - 2;
        before[len_at..].copy_from_slice(&len);
        before.append(&mut extensions);
        before
    }
}

/// The cookie among `extensions`, and the offset of the padding, if there are any; `None` if the extensions are
/// truncated.
fn find_cookie(extensions: &[u8]) -> Option<(Option<Cookie<'_>>, Option<usize>)> {
    let mut rest = extensions;
    let (mut cookie, mut padding_at) = (None, None);
    while !rest.is_empty() {
        let at = extensions.len() - rest.len();
        let (kind, after) = rest.split_first_chunk::<2>()?;
        rest = after;
        let mut data = split_vector::<2>(&mut rest)?;
        let len = extensions.len() - rest.len() - at;
        match *kind {
            COOKIE => cookie = Some(Cookie { at, len, value: split_vector::<2>(&mut data)? }),
            PADDING => padding_at = Some(at),
            _ => {}
        }
    }
    Some((cookie, padding_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(content: u8, body: &[u8]) -> Vec<u8> {
        let len = (body.len() as u16).to_be_bytes();
        [&[content, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0], &len[..], body].concat()
    }

    fn protected(body: &[u8]) -> Vec<u8> {
        let len = (body.len() as u16).to_be_bytes();
        [&[0x2f, 0, 0], &len[..], body].concat()
    }

    #[test]
    fn data_in_the_clear_are_never_admitted() {
        let data = plain(23, b"data");
        assert_eq!(admissible(&data, true), None);
        assert_eq!(admissible(&data, false), None);
        for handshaking in [false, true] {
            assert_eq!(admissible(&[plain(22, b"x"), data.clone()].concat(), handshaking), None);
            assert_eq!(admissible(&[protected(b"x"), data.clone()].concat(), handshaking), None);
        }
    }

    #[test]
    fn a_session_admits_each_kind_of_record_only_at_its_time() {
        use Admission::{Flights, Handshake, Protected};
        let in_epoch_1 = |content: u8| {
            let mut record = plain(content, b"x");
            record[4] = 1;
            record
        };
        let cases = [
            (plain(HANDSHAKE, b"x"), [true, true, false]),
            (plain(CHANGE_CIPHER_SPEC, b"x"), [true, true, false]),
            (plain(ALERT, b"x"), [true, false, false]),
            (plain(ACK, b"x"), [true, false, false]),
            (plain(APPLICATION_DATA, b"x"), [false; 3]),
            (plain(24, b"x"), [false; 3]),
            (in_epoch_1(APPLICATION_DATA), [true; 3]),
            (in_epoch_1(HANDSHAKE), [true; 3]),
            (in_epoch_1(ALERT), [true; 3]),
            (protected(b"x"), [true; 3]),
            (Vec::new(), [false; 3]),
        ];
        for (datagram, expected) in cases {
            for (admission, is_admitted) in
                [Handshake, Flights, Protected].into_iter().zip(expected)
            {
                let context = format!("{datagram:?} {admission:?}");
                assert_eq!(admissible_in_session(&datagram, admission), is_admitted, "{context}");
                let with_data = [&datagram[..], &plain(APPLICATION_DATA, b"x")].concat();
                assert!(!admissible_in_session(&with_data, admission), "{context}");
            }
        }
        let many = protected(b"x").repeat(MAX_RECORDS);
        assert!(admissible_in_session(&many, Protected));
        assert!(!admissible_in_session(&[&many[..], &protected(b"x")].concat(), Protected));
    }

    #[test]
    fn a_datagram_of_more_records_than_the_limit_is_dropped() {
        let datagram = protected(b"record").repeat(MAX_RECORDS);
        assert_eq!(records(&datagram).count(), MAX_RECORDS);
        let more = [&datagram[..], &protected(b"")].concat();
        for handshaking in [false, true] {
            assert_eq!(admissible(&datagram, handshaking), Some(&datagram[..]));
            assert_eq!(admissible(&more, handshaking), None);
        }
    }

    /// In an endless loop, the library would return a record that is longer than its content buffer.
    #[test]
    fn records_of_more_than_16_kilobytes_are_dropped() {
        let longest = MAX_RECORD_BYTES - PLAINTEXT_HEADER_BYTES;
        for len in [longest, longest + 9] {
            let is_admitted = len == longest;
            assert_eq!(admissible(&protected(&vec![7; len]), false).is_some(), is_admitted);
            assert_eq!(admissible(&plain(22, &vec![7; len]), true).is_some(), is_admitted);
        }
    }

    #[test]
    fn after_the_handshake_only_protected_records_are_admitted() {
        let (hello, record) = (plain(22, b"hello"), protected(b"record"));
        let both = [hello.clone(), record.clone()].concat();
        assert_eq!(admissible(&both, true), Some(&both[..]));
        assert_eq!(admissible(&both, false), Some(&record[..]));
        assert_eq!(admissible(&hello, false), None);
        let twice = [record.clone(), record.clone()].concat();
        assert_eq!(admissible(&twice, false), Some(&twice[..]));
        // Cut short.
        assert_eq!(admissible(&record[..record.len() - 1], false), None);
        assert_eq!(admissible(&[], false), None);
    }

    /// A ClientHello with these extensions.
    fn hello(message_seq: u8, extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![0xfe, 0xfd];
        body.extend([7; 32]);
        body.extend([0, 0, 0, 2, 0x13, 1, 1, 0]);
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let len = [0, 0, body.len() as u8];
        let message =
            [&[CLIENT_HELLO][..], &len, &[0, message_seq], &[0, 0, 0], &len, &body].concat();
        plain(HANDSHAKE, &message)
    }

    #[test]
    fn the_first_client_hello_is_the_second_without_its_cookie() {
        let (before, after) = ([0, 43, 0, 1, 9], [0, 10, 0, 0]);
        let cookie = [0, 44, 0, 5, 0, 3, 1, 2, 3];
        let second = hello(1, &[&before[..], &cookie, &after].concat());
        let parsed = ClientHello::parse(&second).expect("a ClientHello");
        assert_eq!(parsed.cookie(), Some(&[1, 2, 3][..]));
        assert_eq!(parsed.random(), [7; 32]);
        let first = hello(0, &[&before[..], &after].concat());
        assert_eq!(parsed.first(), first);
        let parsed = ClientHello::parse(&first).expect("a ClientHello");
        assert_eq!((parsed.cookie(), &parsed.first()), (None, &first));
    }

    #[test]
    fn the_padding_has_room_for_the_cookie() {
        let cookie = [0, 44, 0, 5, 0, 3, 1, 2, 3];
        let (long, short) = ([&[0, 21, 0, 12][..], &[0; 12]].concat(), [0, 21, 0, 3, 0, 0, 0]);
        let first = hello(0, &[&long[..], &[0, 43, 0, 0]].concat());
        let second = hello(1, &[&short[..], &[0, 43, 0, 0], &cookie].concat());
        assert_eq!(ClientHello::parse(&second).expect("a ClientHello").first(), first);
        let second = hello(1, &[&cookie[..], &short[..], &[0, 43, 0, 0]].concat());
        assert_eq!(ClientHello::parse(&second).expect("a ClientHello").first(), first);
    }

    #[test]
    fn a_truncated_client_hello_is_refused() {
        let whole = hello(0, &[0, 43, 0, 1, 9]);
        for len in 0..whole.len() {
            assert!(ClientHello::parse(&whole[..len]).is_none(), "{len}");
        }
        assert!(ClientHello::parse(&[&whole[..], &whole].concat()).is_none());
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x80;
            let _ = ClientHello::parse(&changed).map(|hello| hello.first());
        }
    }
}
