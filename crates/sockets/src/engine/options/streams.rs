//! Stream reset (RFC 6525) by the options of RFC 6458's extension: outgoing streams alone.

use libc::{EAGAIN, EINPROGRESS, EINVAL, ENOPROTOOPT, EOPNOTSUPP};
use rexmit_sctp::ResetError;

use super::super::option_names as name;
use super::super::settings::Settings;
use super::super::{Engine, Failure, Outcome};
use super::{sized, u16_at, u32_at};

/// `SCTP_ENABLE_RESET_STREAM_REQ`.
const MAY_RESET_STREAMS: u32 = 1;
/// The bit of `SCTP_ENABLE_RESET_STREAM_REQ`, and those of associations and of more streams.
const ALL_REQUESTS: u32 = 7;
const INCOMING: u16 = 1;
const OUTGOING: u16 = 2;

/// `SCTP_RECONFIG_SUPPORTED`, or `SCTP_ENABLE_STREAM_RESET`: `sctp_assoc_value`.
pub(super) fn allow_resets(
    settings: &mut Settings,
    option: i32,
    value: &[u8],
) -> Result<(), Failure> {
    let value = u32_at(value, 4);
    if option == name::RECONFIG_SUPPORTED {
        settings.kept.insert(option, u32::from(value != 0));
    } else if value & !ALL_REQUESTS == 0 {
        settings.kept.insert(option, value);
    } else {
        return Err(Failure(EINVAL));
    }
    Ok(())
}

/// `sctp_reset_streams`: fails with `ENOPROTOOPT` unless `SCTP_RECONFIG_SUPPORTED` and `SCTP_ENABLE_STREAM_RESET` were
/// set, as with Linux's default settings.
pub(super) fn reset(engine: &mut Engine, socket: u64, value: &[u8]) -> Outcome {
    sized(value, 8)?;
    let (flags, count) = (u16_at(value, 4), usize::from(u16_at(value, 6)));
    let streams = sized(value, 8 + 2 * count)?[8..].chunks_exact(2);
    let streams: Vec<u16> = streams.map(|stream| u16_at(stream, 0)).collect();
    let this = engine.sockets.get(&socket).ok_or(Failure(EINVAL))?;
    let (_, known) = engine.association_of(this, u32_at(value, 0))?;
    let kept = |option| this.settings.kept.get(&option).copied().unwrap_or(0);
    if kept(name::RECONFIG_SUPPORTED) == 0 || kept(name::ENABLE_RESET) & MAY_RESET_STREAMS == 0 {
        return Err(Failure(ENOPROTOOPT));
    }
    match flags {
        OUTGOING => {}
        // The peer alone resets its streams.
        INCOMING | 3 => return Err(Failure(EOPNOTSUPP)),
        _ => return Err(Failure(EINVAL)),
    }
    let (port, id, now) = (known.port, known.id, engine.now);
    let port = engine.ports.touch(port).ok_or(Failure(EINVAL))?;
    let reset = port.endpoint.reset_streams(now, id, &streams);
    reset.map(|()| Vec::new()).map_err(|error| {
        Failure(match error {
            ResetError::NotSupported => ENOPROTOOPT,
            ResetError::InProgress => EINPROGRESS,
            ResetError::NotEstablished => EAGAIN,
            _ => EINVAL,
        })
    })
}
