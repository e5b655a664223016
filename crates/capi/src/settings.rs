//! Settings of recovery, of SACKs, of the way back to the primary path, and of messages that are too large.

use std::ffi::c_char;
use std::time::Duration;

use rexmit_core::settings::{MAX_BYTES, SettingsError};
use rexmit_sctp::OversizedMessages;

use crate::config::{assign, rexmit_config, set};
use crate::message::REXMIT_UNLIMITED;
use crate::status::rexmit_status::{self, *};
use crate::status::{Failure, words};

/// The most bytes of a text for `rexmit_config_set_recovery`, without the zero byte at its end.
pub const REXMIT_MAX_SETTINGS_BYTES: usize = 16_384;
const _: () = assert!(REXMIT_MAX_SETTINGS_BYTES == MAX_BYTES);

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::new(REXMIT_INVALID_ARGUMENT, error.to_string())
    }
}

/// Changes single settings of loss recovery and congestion control, as a text in TOML with the names and values that the
/// table `recovery` has in study files: tables are merged with what is set already, and other values are replaced, so
/// `rto.min = '200ms'` changes RTO.Min alone. Times have a unit (us, ms, s), switches are true or false, and anything else
/// that is off is 'off'. The command `rexmit profiles NAME` has the settings of a profile, and what each means.
///
/// `rexmit_config_set_profile` replaces all of them, so it comes first. Calls of this function add up, also with
/// `rexmit_config_set_deadline` and `rexmit_config_set_copy_budget`, which set `thin.deadline` and `thin.copy_budget`.
/// A text with an unknown name, a wrong value or values that do not fit together is REXMIT_INVALID_ARGUMENT, and so is
/// one of more than REXMIT_MAX_SETTINGS_BYTES; `rexmit_config_error` names the line and the setting, and nothing changes.
///
/// # Safety
/// `config` came from `rexmit_config_new`; `settings` ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_recovery(
    config: *mut rexmit_config,
    settings: *const c_char,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            let text = words(settings, "the text of the settings")?;
            Ok(config.association.change_recovery(text)?)
        })
    }
}

/// SACK.Delay (RFC 9260 §6.2): the milliseconds for which a SACK waits at most, 500 at most; with 0 none waits. The
/// default is 200. Profiles leave it as it is.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_sack_delay(
    config: *mut rexmit_config,
    milliseconds: u32,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        assign(config, |config| {
            config.association.sack.delay = Duration::from_millis(milliseconds.into());
        })
    }
}

/// The packets with data, 1 to 255, after which a SACK is sent at the latest (RFC 9260 §6.2). Default 2. Profiles leave
/// it as it is.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_sack_every(
    config: *mut rexmit_config,
    packets: u8,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe { assign(config, |config| config.association.sack.every = packets) }
}

/// What happens to a message of the peer that is larger than the limit (`rexmit_config_set_max_message_bytes`).
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rexmit_oversized_messages {
    /// Drop the message: REXMIT_EVENT_MESSAGE_DROPPED reports it, and the messages after it are delivered. The default.
    REXMIT_OVERSIZED_DROP = 0,
    /// As REXMIT_OVERSIZED_DROP, and the peer is asked to reset the stream (RFC 6525 §4.2), so that its application learns
    /// of it. A peer without stream resets, or one that refuses, is not told.
    REXMIT_OVERSIZED_RESET_STREAM = 1,
    /// Abort the association.
    REXMIT_OVERSIZED_ABORT = 2,
}

/// Each choice of the C API, with the one of the Rust API.
const OVERSIZED: [(rexmit_oversized_messages, OversizedMessages); 3] = [
    (rexmit_oversized_messages::REXMIT_OVERSIZED_DROP, OversizedMessages::Drop),
    (rexmit_oversized_messages::REXMIT_OVERSIZED_RESET_STREAM, OversizedMessages::ResetStream),
    (rexmit_oversized_messages::REXMIT_OVERSIZED_ABORT, OversizedMessages::Abort),
];

/// The choice of this number, if there is one.
fn oversized(number: u32) -> Result<OversizedMessages, Failure> {
    let found = OVERSIZED.iter().find(|(choice, _)| *choice as u32 == number);
    let text = || format!("there is no choice {number}: see enum rexmit_oversized_messages");
    found.map(|found| found.1).ok_or_else(|| Failure::new(REXMIT_INVALID_ARGUMENT, text()))
}

/// What happens to messages of the peer that are too large, one of `enum rexmit_oversized_messages`. Default
/// REXMIT_OVERSIZED_DROP.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_oversized_messages(
    config: *mut rexmit_config,
    number: u32,
) -> rexmit_status {
    // SAFETY: As this function demands.
    unsafe {
        set(config, |config| {
            config.association.messages.oversized = oversized(number)?;
            Ok(())
        })
    }
}

/// Primary.Switchover.Max.Retrans (RFC 7829 §5): after more consecutive errors of the primary path, the path in use
/// becomes the primary one, so that data does not return to the old one when that works again. At least the errors after
/// which data takes another path: Path.Max.Retrans, 5, or less with the setting `sctp.potentially_failed_max_retrans` of
/// `rexmit_config_set_recovery`. With REXMIT_UNLIMITED, the default, data returns.
///
/// # Safety
/// `config` came from `rexmit_config_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rexmit_config_set_primary_switchover_max_retrans(
    config: *mut rexmit_config,
    count: u32,
) -> rexmit_status {
    let most = (count != REXMIT_UNLIMITED).then_some(count);
    // SAFETY: As this function demands.
    unsafe {
        assign(config, |config| {
            config.association.multihoming.primary_switchover_max_retrans = most;
        })
    }
}
