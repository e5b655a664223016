//! Values of options, in netem's vocabulary: `50ms`, `5%`, `10mbit`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use rexmit::emulator::netem;

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

/// `ADDRESS:PORT`, where the address may be a name.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    const EXPECTED: &str = "expected ADDRESS:PORT, such as 192.0.2.1:9899, [2001:db8::1]:9899 or \
                            localhost:9899";
    if !text.contains(':') {
        return Err(EXPECTED.into());
    }
    let mut found = text.to_socket_addrs().map_err(|error| format!("{error}; {EXPECTED}"))?;
    found.next().ok_or_else(|| format!("the name has no address; {EXPECTED}"))
}

/// The name of a recovery profile.
pub(crate) fn profile(text: &str) -> Result<rexmit::AssociationConfig, String> {
    rexmit::AssociationConfig::profile(text).ok_or_else(|| {
        let names: Vec<_> = rexmit::PROFILES.iter().map(|(name, _)| *name).collect();
        format!("there is no such profile; there are {} (see `rexmit profiles`)", names.join(", "))
    })
}
