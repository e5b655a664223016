//! The transport of SCTP to each destination: over IP or over UDP, from the file `/etc/rexmit.conf` or the variable
//! `REXMIT_TRANSPORT`.
//!
//! A line has a destination (an address, a network, or `*`) and its transports in order of preference: `ip`, or `udp`
//! with or without a port (`udp:9899`). The most specific line counts. Other destinations are reached over IP if the
//! engine has the permission, otherwise over UDP.

use std::net::IpAddr;
use std::str::FromStr;

/// A transport of SCTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Directly over IP (protocol 132).
    Ip,
    /// Over UDP (RFC 6951), to this port or, with `None`, to the one configured for the program's sockets.
    Udp(Option<u16>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    network: IpAddr,
    bits: u32,
    /// Whether it applies to addresses of both families.
    is_any: bool,
    transports: Vec<Transport>,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transports(Vec<Rule>);

/// An error in a text: its line, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The line, from 1.
    pub line: usize,
    /// The reason, for the user.
    pub reason: String,
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for Invalid {}

impl Transports {
    /// Whether any destination may be reached over IP.
    #[must_use]
    pub fn may_use_ip(&self) -> bool {
        let uses_ip = |rule: &Rule| rule.transports.contains(&Transport::Ip);
        !self.0.iter().any(|rule| rule.is_any) || self.0.iter().any(uses_ip)
    }

    /// Whether these differ from the transports of `text`, if it is valid.
    pub(crate) fn differ_from(&self, text: &[u8]) -> bool {
        let theirs = std::str::from_utf8(text).ok().and_then(|text| text.parse::<Self>().ok());
        theirs.is_some_and(|theirs| theirs != *self)
    }

    /// The transport to this address, given whether IP can be used.
    #[must_use]
    pub fn to(&self, ip: IpAddr, has_ip: bool) -> Transport {
        const DEFAULT: &[Transport] = &[Transport::Ip, Transport::Udp(None)];
        let rules = self.0.iter().filter(|rule| rule.covers(ip));
        let rule = rules.max_by_key(|rule| (!rule.is_any, rule.bits));
        let choices = rule.map_or(DEFAULT, |rule| &rule.transports);
        let usable = choices.iter().find(|choice| has_ip || **choice != Transport::Ip);
        // Only IP is allowed, which cannot be used: sending will fail, rather than go where it must not.
        usable.or(choices.first()).copied().unwrap_or(Transport::Udp(None))
    }
}

impl Rule {
    fn covers(&self, ip: IpAddr) -> bool {
        match (self.network, ip) {
            _ if self.is_any => true,
            (IpAddr::V4(network), IpAddr::V4(ip)) => {
                (u32::from(network) ^ u32::from(ip)).leading_zeros() >= self.bits
            }
            (IpAddr::V6(network), IpAddr::V6(ip)) => {
                (u128::from(network) ^ u128::from(ip)).leading_zeros() >= self.bits
            }
            _ => false,
        }
    }

    fn parse(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let destination = words.next().unwrap_or_default();
        let (address, bits) = destination.split_once('/').unwrap_or((destination, ""));
        let is_any = destination == "*";
        let address = if is_any { "0.0.0.0" } else { address };
        let network: IpAddr =
            address.parse().map_err(|_| format!("{destination} is no address or network"))?;
        let most = if network.is_ipv4() { 32 } else { 128 };
        let bits = if bits.is_empty() { Ok(most) } else { bits.parse() };
        let bits = bits.ok().filter(|bits| *bits <= most);
        let bits = bits.ok_or_else(|| format!("{destination} is not a network"))?;
        let transports = words.map(transport).collect::<Result<Vec<_>, _>>()?;
        if transports.is_empty() {
            return Err(format!("{destination} has no transport: ip, udp or udp:PORT"));
        }
        Ok(Self { network, bits, is_any, transports })
    }
}

fn transport(word: &str) -> Result<Transport, String> {
    let port = |text: &str| text.parse().ok().filter(|port| *port != 0);
    match word.split_once(':') {
        None if word == "ip" => Ok(Transport::Ip),
        None if word == "udp" => Ok(Transport::Udp(None)),
        Some(("udp", text)) if port(text).is_some() => Ok(Transport::Udp(port(text))),
        _ => Err(format!("{word} is not a transport: use ip, udp or udp:PORT")),
    }
}

impl FromStr for Transports {
    type Err = Invalid;

    /// Lines, which may also be separated by semicolons; `#` begins a comment.
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let mut all = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let rules = line.split('#').next().unwrap_or_default().split(';');
            for rule in rules.map(str::trim).filter(|rule| !rule.is_empty()) {
                let failed = |reason| Invalid { line: number, reason };
                all.push(Rule::parse(rule).map_err(failed)?);
            }
        }
        Ok(Self(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(text: &str, ip: &str, has_ip: bool) -> Transport {
        let transports: Transports = text.parse().expect("valid");
        transports.to(ip.parse().expect("an address"), has_ip)
    }

    #[test]
    fn the_most_specific_line_counts() {
        let text =
            "* ip udp # as without a file\n10.0.0.0/8 udp:9900; 10.1.0.0/16 ip\n2001:db8::1 udp";
        assert_eq!(to(text, "192.0.2.1", true), Transport::Ip);
        assert_eq!(to(text, "192.0.2.1", false), Transport::Udp(None));
        assert_eq!(to(text, "10.2.0.1", true), Transport::Udp(Some(9900)));
        assert_eq!(to(text, "10.1.0.1", true), Transport::Ip);
        // What must go over IP goes nowhere else.
        assert_eq!(to(text, "10.1.0.1", false), Transport::Ip);
        assert_eq!(to(text, "2001:db8::1", true), Transport::Udp(None));
        assert_eq!(to(text, "2001:db8::2", true), Transport::Ip);
        assert_eq!(to("", "2001:db8::2", true), Transport::Ip);
    }

    #[test]
    fn ip_is_opened_only_if_it_may_be_used() {
        let parse = |text: &str| text.parse::<Transports>().expect("valid").may_use_ip();
        assert!(parse("") && parse("* udp\n10.0.0.1 ip") && parse("10.0.0.0/8 udp"));
        assert!(!parse("* udp"));
    }

    #[test]
    fn a_line_that_is_wrong_is_named() {
        for text in
            ["\nhere ip", "\n10.0.0.0/33 ip", "\n10.0.0.1", "\n* tcp", "\n* udp:0", "\n* ip:9"]
        {
            let error = text.parse::<Transports>().expect_err(text);
            assert_eq!(error.line, 2, "{error}");
        }
    }
}
