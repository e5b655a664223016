//! Values of options, in netem's vocabulary: `50ms`, `5%`, `10mbit`.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use rexmit::emulator::netem;
use rexmit::{AssociationConfig, ENCAPSULATION_PORT, PROFILES};

/// `50ms`, `1.5s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    netem::parse_duration(text).map_err(|error| error.to_string())
}

/// A duration that is not zero.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than 0".into()),
        interval => Ok(interval),
    }
}

/// `5%`, `0.1%`, as a number from 0 to 1.
pub(crate) fn probability(text: &str) -> Result<f64, String> {
    netem::parse_probability(text).map_err(|error| error.to_string())
}

/// A size that is not zero: plain bytes such as `100`, or `64kb`.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let bytes = match text.parse() {
        Ok(bytes) => bytes,
        Err(_) => netem::parse_size(text).map_err(|error| error.to_string())?,
    };
    if bytes == 0 { Err("it must be above 0".into()) } else { Ok(bytes) }
}

/// `ADDRESS:PORT` or `ADDRESS`, where the address may be a name.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    const EXPECTED: &str =
        "expected ADDRESS:PORT, such as 192.0.2.1:9899, [2001:db8::1]:9899 or localhost:9899";
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok((ip, ENCAPSULATION_PORT).into());
    }
    let found = if text.contains(':') {
        text.to_socket_addrs()
    } else {
        (text, ENCAPSULATION_PORT).to_socket_addrs()
    };
    let mut found = found.map_err(|error| format!("{error}; {EXPECTED}"))?;
    found.next().ok_or_else(|| format!("the name has no address; {EXPECTED}"))
}

/// The associations of a recovery profile.
pub(crate) fn profile(text: &str) -> Result<AssociationConfig, String> {
    AssociationConfig::profile(text).ok_or_else(|| {
        let names: Vec<_> = PROFILES.iter().map(|(name, _)| *name).collect();
        format!("there is no such profile, but {} (see `rexmit profiles`)", names.join(", "))
    })
}
