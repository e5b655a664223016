//! Reading a description, line by line.

use std::str::FromStr;

use rexmit_dtls::Fingerprint;

use super::candidate::is_ice_char;
use super::{
    Candidate, DEFAULT_MAX_MESSAGE_BYTES, Description, MAX_CANDIDATES, MAX_DESCRIPTION_BYTES,
    MAX_FINGERPRINTS, SdpError, SdpFault, Setup,
};

/// The types of lines (RFC 8866 §5) other than `v`, `o`, `s`, `m` and `a`; their content is ignored.
const OTHER_TYPES: &[u8] = b"iuepcbtrzk";
/// The most bytes of a `mid`.
const MAX_MID_BYTES: usize = 64;
/// The most bytes of the peer's user name fragment. RFC 8839 §5.4 allows 256, but a check has both fragments
/// in a USERNAME, of which the ICE library writes at most 128 bytes. Usual ones have 4 to 32.
const MAX_UFRAG_BYTES: usize = 96;

/// Attributes that both a session and a section may have; the section's take precedence (RFC 8839 §5.4, RFC
/// 8842 §5).
#[derive(Default)]
struct Attributes {
    ufrag: Option<String>,
    password: Option<String>,
    fingerprints: Vec<Fingerprint>,
    setup: Option<Setup>,
}

#[derive(Default)]
struct Parser {
    session_number: u64,
    version: u64,
    is_lite: bool,
    session: Attributes,
    section: Option<Attributes>,
    mid: Option<String>,
    sctp_port: Option<u16>,
    max_message_bytes: Option<usize>,
    candidates: Vec<Candidate>,
}

impl FromStr for Description {
    type Err = SdpError;

    fn from_str(text: &str) -> Result<Self, SdpError> {
        if text.len() > MAX_DESCRIPTION_BYTES {
            let fault = SdpFault::TooLong { limit: MAX_DESCRIPTION_BYTES };
            return Err(SdpError { line: 1, fault });
        }
        let mut parser = Parser::default();
        let mut count = 0;
        for line in text.lines() {
            count += 1;
            let at = |fault| SdpError { line: count, fault };
            parser.on_line(count, line).map_err(at)?;
        }
        parser.finish().map_err(|fault| SdpError { line: count.max(1), fault })
    }
}

/// Sets a value that must not occur twice.
fn set<T>(place: &mut Option<T>, attribute: &'static str, value: T) -> Result<(), SdpFault> {
    if place.replace(value).is_some() { Err(SdpFault::Repeated { attribute }) } else { Ok(()) }
}

fn read<T: FromStr>(attribute: &'static str, value: &str) -> Result<T, SdpFault> {
    value.parse().map_err(|_| SdpFault::Malformed { attribute })
}

/// A user name fragment or a password (RFC 8839 §5.4).
fn credential(attribute: &'static str, value: &str, least: usize) -> Result<String, SdpFault> {
    let most = if attribute == "ice-ufrag" { MAX_UFRAG_BYTES } else { 256 };
    if (least..=most).contains(&value.len()) && value.bytes().all(is_ice_char) {
        Ok(value.to_owned())
    } else {
        Err(SdpFault::Malformed { attribute })
    }
}

impl Parser {
    fn on_line(&mut self, number: usize, line: &str) -> Result<(), SdpFault> {
        let (&[kind, b'='], value) = line.as_bytes().split_first_chunk().ok_or(SdpFault::Syntax)?
        else {
            return Err(SdpFault::Syntax);
        };
        // Both bytes are ASCII, so that the rest is text again.
        let value = str::from_utf8(value).map_err(|_| SdpFault::Syntax)?;
        match (number, kind) {
            (1, b'v') if value == "0" => Ok(()),
            (1, _) => Err(SdpFault::Order { expected: "v=0" }),
            (2, b'o') => self.on_origin(value),
            (2, _) => Err(SdpFault::Order { expected: "o=" }),
            (3, b's') => Ok(()),
            (3, _) => Err(SdpFault::Order { expected: "s=" }),
            (_, b'm') => self.on_section(value),
            (_, b'a') => self.on_attribute(value),
            (_, kind) if OTHER_TYPES.contains(&kind) => Ok(()),
            _ => Err(SdpFault::Syntax),
        }
    }

    /// RFC 8866 §5.2: user name, session, version, network type, address type, address.
    fn on_origin(&mut self, value: &str) -> Result<(), SdpFault> {
        let malformed = SdpFault::Malformed { attribute: "o" };
        let words: Vec<&str> = value.split(' ').collect();
        let &[_, session, version, "IN", "IP4" | "IP6", _] = &words[..] else {
            return Err(malformed);
        };
        self.session_number = read("o", session)?;
        self.version = read("o", version)?;
        Ok(())
    }

    fn on_section(&mut self, value: &str) -> Result<(), SdpFault> {
        let words: Vec<&str> = value.split(' ').collect();
        let &["application", port, "UDP/DTLS/SCTP" | "TCP/DTLS/SCTP", "webrtc-datachannel"] =
            &words[..]
        else {
            return Err(SdpFault::Media);
        };
        let port: u16 = read("m", port)?;
        if port == 0 || self.section.is_some() {
            return Err(SdpFault::Media);
        }
        self.section = Some(Attributes::default());
        Ok(())
    }

    fn on_attribute(&mut self, line: &str) -> Result<(), SdpFault> {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let is_in_section = self.section.is_some();
        let here = self.section.as_mut().unwrap_or(&mut self.session);
        match name {
            "ice-lite" => {
                self.is_lite = true;
                Ok(())
            }
            "ice-ufrag" => set(&mut here.ufrag, "ice-ufrag", credential("ice-ufrag", value, 4)?),
            "ice-pwd" => set(&mut here.password, "ice-pwd", credential("ice-pwd", value, 22)?),
            "fingerprint" => here.on_fingerprint(value),
            "setup" => set(&mut here.setup, "setup", parse_setup(value)?),
            "mid" if is_in_section => {
                let is_token = |b: u8| b.is_ascii_graphic();
                if value.is_empty() || value.len() > MAX_MID_BYTES || !value.bytes().all(is_token) {
                    return Err(SdpFault::Malformed { attribute: "mid" });
                }
                set(&mut self.mid, "mid", value.to_owned())
            }
            "sctp-port" if is_in_section => {
                let port: u16 = read("sctp-port", value)?;
                if port == 0 {
                    return Err(SdpFault::Malformed { attribute: "sctp-port" });
                }
                set(&mut self.sctp_port, "sctp-port", port)
            }
            "max-message-size" if is_in_section => {
                let limit: u64 = read("max-message-size", value)?;
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                // RFC 8841 §6: 0 stands for no limit.
                let limit = if limit == 0 { usize::MAX } else { limit };
                set(&mut self.max_message_bytes, "max-message-size", limit)
            }
            "candidate" if is_in_section => self.on_candidate(value),
            _ => Ok(()),
        }
    }

    fn on_candidate(&mut self, value: &str) -> Result<(), SdpFault> {
        let candidate = Candidate::parse(value);
        let candidate = candidate.ok_or(SdpFault::Malformed { attribute: "candidate" })?;
        if self.candidates.len() < MAX_CANDIDATES {
            self.candidates.extend(candidate);
        }
        Ok(())
    }

    fn finish(self) -> Result<Description, SdpFault> {
        let missing = |attribute| SdpFault::Missing { attribute };
        let section = self.section.ok_or(missing("m=application"))?;
        let session = self.session;
        // Both or none of a section are its own (RFC 8839 §5.4).
        let (ufrag, password) = match (section.ufrag, section.password) {
            (None, None) => (session.ufrag, session.password),
            own => own,
        };
        let fingerprints = if section.fingerprints.is_empty() {
            session.fingerprints
        } else {
            section.fingerprints
        };
        if fingerprints.is_empty() {
            return Err(missing("fingerprint:sha-256"));
        }
        Ok(Description {
            session: self.session_number,
            version: self.version,
            mid: self.mid.ok_or(missing("mid"))?,
            ufrag: ufrag.ok_or(missing("ice-ufrag"))?,
            password: password.ok_or(missing("ice-pwd"))?,
            is_lite: self.is_lite,
            fingerprints,
            setup: section.setup.or(session.setup).ok_or(missing("setup"))?,
            sctp_port: self.sctp_port.ok_or(missing("sctp-port"))?,
            max_message_bytes: self.max_message_bytes.unwrap_or(DEFAULT_MAX_MESSAGE_BYTES),
            candidates: self.candidates,
        })
    }
}

impl Attributes {
    fn on_fingerprint(&mut self, value: &str) -> Result<(), SdpFault> {
        let malformed = SdpFault::Malformed { attribute: "fingerprint" };
        let (hash, fingerprint) = value.split_once(' ').ok_or(malformed.clone())?;
        if !hash.eq_ignore_ascii_case("sha-256") {
            return Ok(());
        }
        // RFC 8122 §5: upper-case bytes with colons in between.
        let fingerprint: Fingerprint = read("fingerprint", fingerprint)?;
        if !value.ends_with(&fingerprint.to_string()) && !value.ends_with(&lower(fingerprint)) {
            return Err(malformed);
        }
        if self.fingerprints.len() >= MAX_FINGERPRINTS {
            return Err(SdpFault::TooManyFingerprints { limit: MAX_FINGERPRINTS });
        }
        self.fingerprints.push(fingerprint);
        Ok(())
    }
}

fn lower(fingerprint: Fingerprint) -> String {
    fingerprint.to_string().to_ascii_lowercase()
}

fn parse_setup(value: &str) -> Result<Setup, SdpFault> {
    let all = [Setup::ActPass, Setup::Active, Setup::Passive];
    let setup = all.into_iter().find(|setup| setup.name() == value);
    setup.ok_or(SdpFault::Malformed { attribute: "setup" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINGERPRINT: &str = "12:34:56:78:9A:BC:DE:F0:12:34:56:78:9A:BC:DE:F0:12:34:56:78:9A:BC:DE:F0:12:34:\
                               56:78:9A:BC:DE:F0";

    /// An offer as Chromium writes it, with one line for each attribute that is read.
    fn offer() -> Vec<String> {
        let fingerprint = format!("a=fingerprint:sha-256 {FINGERPRINT}");
        [
            "v=0",
            "o=- 4611732000000000000 2 IN IP4 127.0.0.1",
            "s=-",
            "t=0 0",
            "a=group:BUNDLE 0",
            "a=extmap-allow-mixed",
            "a=msid-semantic: WMS",
            "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
            "c=IN IP4 0.0.0.0",
            "a=candidate:1 1 udp 2122260223 192.0.2.7 40000 typ host generation 0",
            "a=candidate:2 1 udp 2122260223 11111111-2222-3333-4444-555555555555.local 40001 typ host",
            "a=ice-ufrag:uFrg",
            "a=ice-pwd:passwordpasswordpasswor",
            "a=ice-options:trickle",
            &fingerprint,
            "a=setup:actpass",
            "a=mid:0",
            "a=sctp-port:5000",
            "a=max-message-size:262144",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    fn parse(lines: &[String]) -> Result<Description, SdpError> {
        lines.join("\r\n").parse()
    }

    /// The offer in which `line` replaces the line that begins with `start`.
    fn with(prefix: &str, line: &str) -> (usize, Result<Description, SdpError>) {
        let mut lines = offer();
        let at = lines.iter().position(|line| line.starts_with(prefix)).expect(prefix);
        line.clone_into(&mut lines[at]);
        (at + 1, parse(&lines))
    }

    #[test]
    fn an_offer_of_chromium_is_read() {
        let offer = parse(&offer()).unwrap();
        assert_eq!((offer.session, offer.version), (4_611_732_000_000_000_000, 2));
        assert_eq!((&offer.mid[..], &offer.ufrag[..]), ("0", "uFrg"));
        assert_eq!(offer.password, "passwordpasswordpasswor");
        assert_eq!(offer.fingerprints, [FINGERPRINT.parse().unwrap()]);
        assert_eq!((offer.setup, offer.is_lite), (Setup::ActPass, false));
        assert_eq!((offer.sctp_port, offer.max_message_bytes), (5000, 262_144));
        let addresses: Vec<_> = offer.candidates.iter().map(|it| it.address).collect();
        assert_eq!(addresses, ["192.0.2.7:40000".parse().unwrap()]);
    }

    #[test]
    fn a_description_is_read_as_it_was_written() {
        let mut description = parse(&offer()).unwrap();
        for (is_lite, setup) in [(false, Setup::Active), (true, Setup::Passive)] {
            description.is_lite = is_lite;
            description.setup = setup;
            let text = description.to_string();
            assert!(text.lines().all(|line| line.len() > 2) && text.ends_with("\r\n"));
            assert_eq!(text.parse(), Ok(description.clone()));
        }
        description.max_message_bytes = usize::MAX;
        assert!(description.to_string().contains("a=max-message-size:0\r\n"));
        assert_eq!(description.to_string().parse(), Ok(description));
    }

    #[test]
    fn missing_attributes_of_a_section_are_those_of_the_session() {
        let mut lines = offer();
        for prefix in ["a=ice-ufrag", "a=ice-pwd", "a=fingerprint", "a=setup"] {
            let at = lines.iter().position(|line| line.starts_with(prefix)).unwrap();
            let line = lines.remove(at);
            lines.insert(4, line);
        }
        assert_eq!(parse(&lines), parse(&offer()));
        // And the section's own counts.
        lines.push("a=setup:active".to_owned());
        assert_eq!(parse(&lines).unwrap().setup, Setup::Active);
    }

    #[test]
    fn a_malformed_line_is_named() {
        let malformed = |attribute| SdpFault::Malformed { attribute };
        let bad_fingerprint = format!("a=fingerprint:sha-256 {}", &FINGERPRINT[3..]);
        let joined = format!("a=fingerprint:sha-256 {}", FINGERPRINT.replace(':', ""));
        let long_mid = format!("a=mid:{}", "m".repeat(65));
        for (prefix, line, fault) in [
            ("v=", "v=1", SdpFault::Order { expected: "v=0" }),
            ("o=", "s=-", SdpFault::Order { expected: "o=" }),
            ("o=", "o=- x 2 IN IP4 127.0.0.1", malformed("o")),
            ("o=", "o=- 1 2 IN IP4", malformed("o")),
            ("s=", "t=0 0", SdpFault::Order { expected: "s=" }),
            ("t=", "", SdpFault::Syntax),
            ("t=", "t", SdpFault::Syntax),
            ("t=", "x=0", SdpFault::Syntax),
            ("t=", "é=0", SdpFault::Syntax),
            ("m=", "m=audio 9 UDP/TLS/RTP/SAVPF 111", SdpFault::Media),
            ("m=", "m=application 0 UDP/DTLS/SCTP webrtc-datachannel", SdpFault::Media),
            ("m=", "m=application 9 DTLS/SCTP 5000", SdpFault::Media),
            ("a=candidate", "a=candidate:1 1 udp", malformed("candidate")),
            ("a=ice-ufrag", "a=ice-ufrag:abc", malformed("ice-ufrag")),
            ("a=ice-ufrag", "a=ice-ufrag:a bcd", malformed("ice-ufrag")),
            ("a=ice-pwd", "a=ice-pwd:short", malformed("ice-pwd")),
            ("a=fingerprint", "a=fingerprint:sha-256", malformed("fingerprint")),
            ("a=fingerprint", &bad_fingerprint, malformed("fingerprint")),
            ("a=fingerprint", &joined, malformed("fingerprint")),
            ("a=setup", "a=setup:holdconn", malformed("setup")),
            ("a=mid", "a=mid:", malformed("mid")),
            ("a=mid", &long_mid, malformed("mid")),
            ("a=sctp-port", "a=sctp-port:0", malformed("sctp-port")),
            ("a=sctp-port", "a=sctp-port:65536", malformed("sctp-port")),
            ("a=max-message-size", "a=max-message-size:-1", malformed("max-message-size")),
        ] {
            let (number, result) = with(prefix, line);
            assert_eq!(result, Err(SdpError { line: number, fault }), "{line}");
        }
    }

    #[test]
    fn missing_and_repeated_lines_are_named() {
        for (prefix, attribute) in [
            ("a=ice-ufrag", "ice-ufrag"),
            ("a=ice-pwd", "ice-pwd"),
            ("a=fingerprint", "fingerprint:sha-256"),
            ("a=setup", "setup"),
            ("a=mid", "mid"),
            ("a=sctp-port", "sctp-port"),
        ] {
            let (_, result) = with(prefix, "a=x");
            assert_eq!(result.unwrap_err().fault, SdpFault::Missing { attribute });
            let mut lines = offer();
            let line = lines.iter().find(|line| line.starts_with(prefix)).unwrap().clone();
            lines.push(line);
            let result = parse(&lines);
            match attribute {
                "fingerprint:sha-256" => assert_eq!(result.unwrap().fingerprints.len(), 2),
                _ => assert_eq!(
                    result.unwrap_err(),
                    SdpError { line: lines.len(), fault: SdpFault::Repeated { attribute } }
                ),
            }
        }
        let (_, result) = with("a=max-message-size", "a=x");
        assert_eq!(result.unwrap().max_message_bytes, 65_536);
        let nothing = "".parse::<Description>().unwrap_err();
        assert_eq!(nothing.fault, SdpFault::Missing { attribute: "m=application" });
        let mut twice = offer();
        twice.push("m=application 9 UDP/DTLS/SCTP webrtc-datachannel".to_owned());
        assert_eq!(parse(&twice).unwrap_err().fault, SdpFault::Media);
    }

    #[test]
    fn limits_hold() {
        for (length, is_taken) in [(MAX_UFRAG_BYTES, true), (MAX_UFRAG_BYTES + 1, false)] {
            let (_, result) = with("a=ice-ufrag", &format!("a=ice-ufrag:{}", "u".repeat(length)));
            assert_eq!(result.is_ok(), is_taken, "{length}");
        }
        let mut lines = offer();
        let candidate = |n| format!("a=candidate:{n} 1 udp 1 192.0.2.1 {n} typ host");
        lines.extend((1..100).map(candidate));
        assert_eq!(parse(&lines).unwrap().candidates.len(), MAX_CANDIDATES);
        let mut lines = offer();
        lines.extend((1..MAX_FINGERPRINTS).map(|_| format!("a=fingerprint:sha-256 {FINGERPRINT}")));
        assert_eq!(parse(&lines).unwrap().fingerprints.len(), MAX_FINGERPRINTS);
        lines.push(format!("a=fingerprint:SHA-256 {FINGERPRINT}"));
        let fault = SdpFault::TooManyFingerprints { limit: MAX_FINGERPRINTS };
        assert_eq!(parse(&lines), Err(SdpError { line: lines.len(), fault }));
        let mut lines = offer();
        let room = MAX_DESCRIPTION_BYTES - lines.join("\r\n").len();
        lines.push(format!("a={}", "x".repeat(room - 4)));
        assert!(parse(&lines).is_ok());
        lines.last_mut().unwrap().push('x');
        let fault = SdpFault::TooLong { limit: MAX_DESCRIPTION_BYTES };
        assert_eq!(parse(&lines), Err(SdpError { line: 1, fault }));
    }
}
