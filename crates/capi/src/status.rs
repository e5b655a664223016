//! Results of calls, and the boundary that catches panics.

use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rexmit_sctp::{
    AddressError, ConfigError, ConnectError, KeyError, PrimaryError, PriorityError, ResetError,
    SendError, ThinError,
};

/// The result of a call: 0, or the reason why nothing was done.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum rexmit_status {
    /// Success.
    REXMIT_OK = 0,
    /// A pointer is NULL, or a value is out of its range.
    REXMIT_INVALID_ARGUMENT = -1,
    /// The number names no association (any more).
    REXMIT_NO_ASSOCIATION = -2,
    /// The association is closing, or not established (yet, or any more).
    REXMIT_NOT_ESTABLISHED = -3,
    /// There is no such stream, path, key or address.
    REXMIT_NOT_FOUND = -4,
    /// The message is empty: SCTP carries no empty messages.
    REXMIT_EMPTY = -5,
    /// The message is larger than the limit of the configuration.
    REXMIT_TOO_LARGE = -6,
    /// The send buffer is full: wait for REXMIT_EVENT_WRITABLE.
    REXMIT_BUFFER_FULL = -7,
    /// The configuration is refused.
    REXMIT_CONFIG = -8,
    /// The peer, the configuration or the system does not support it.
    REXMIT_NOT_SUPPORTED = -9,
    /// A limit is reached.
    REXMIT_LIMIT = -10,
    /// The same operation is in progress, or was done already.
    REXMIT_ALREADY = -11,
    /// The system refused a call.
    REXMIT_SYSTEM = -12,
    /// Nothing is available (yet): no event, message or packet.
    REXMIT_NOTHING = -13,
    /// A defect of this library: the endpoint can only be freed.
    REXMIT_INTERNAL = -100,
}

use rexmit_status::*;

/// Why a call failed, with the text for `rexmit_endpoint_error` and `rexmit_config_error`.
#[derive(Debug)]
pub struct Failure {
    pub(crate) status: rexmit_status,
    pub(crate) text: String,
}

pub(crate) type Outcome = Result<(), Failure>;

impl Failure {
    pub(crate) fn new(status: rexmit_status, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    pub(crate) fn null(what: &str) -> Self {
        Self::new(REXMIT_INVALID_ARGUMENT, format!("{what} is NULL"))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(REXMIT_SYSTEM, error.to_string())
    }
}

/// A status for each variant of an error, and its text.
macro_rules! failures {
    ($($error:ident { $($pattern:pat => $status:ident),* $(,)? })*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                use $error::*;
                let status = match &error {
                    $($pattern => $status,)*
                    #[allow(unreachable_patterns, reason = "the enums may grow")]
                    _ => REXMIT_INVALID_ARGUMENT,
                };
                Self::new(status, error.to_string())
            }
        }
    )*};
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::new(REXMIT_CONFIG, error.to_string())
    }
}

failures! {
    SendError {
        UnknownAssociation => REXMIT_NO_ASSOCIATION,
        Closing => REXMIT_NOT_ESTABLISHED,
        InvalidStream { .. } => REXMIT_NOT_FOUND,
        Empty => REXMIT_EMPTY,
        TooLarge { .. } => REXMIT_TOO_LARGE,
        BufferFull => REXMIT_BUFFER_FULL,
    }
    ConnectError {
        TooManyAssociations => REXMIT_LIMIT,
        AlreadyConnected => REXMIT_ALREADY,
        Config(_) => REXMIT_CONFIG,
    }
    PrimaryError {
        UnknownAssociation => REXMIT_NO_ASSOCIATION,
        NoSuchPath => REXMIT_NOT_FOUND,
        Unconfirmed => REXMIT_NOT_ESTABLISHED,
    }
    AddressError {
        UnknownAssociation => REXMIT_NO_ASSOCIATION,
        NotEstablished => REXMIT_NOT_ESTABLISHED,
        NotSupported => REXMIT_NOT_SUPPORTED,
        AlreadyThere => REXMIT_ALREADY,
        NoSuchAddress => REXMIT_NOT_FOUND,
        TooManyAddresses { .. } => REXMIT_LIMIT,
        TooManyChanges { .. } => REXMIT_LIMIT,
    }
    KeyError {
        UnknownAssociation => REXMIT_NO_ASSOCIATION,
        NotSupported => REXMIT_NOT_SUPPORTED,
        NoSuchKey => REXMIT_NOT_FOUND,
        InUse => REXMIT_ALREADY,
        TooMany { .. } => REXMIT_LIMIT,
    }
    PriorityError {
        UnknownAssociation => REXMIT_NO_ASSOCIATION,
        InvalidStream { .. } => REXMIT_NOT_FOUND,
    }
    ThinError {
        UnknownAssociation => REXMIT_NO_ASSOCIATION,
        InvalidStream { .. } => REXMIT_NOT_FOUND,
        TooManyStreams { .. } => REXMIT_LIMIT,
    }
    ResetError {
        UnknownAssociation => REXMIT_NO_ASSOCIATION,
        NotEstablished => REXMIT_NOT_ESTABLISHED,
        NotSupported => REXMIT_NOT_SUPPORTED,
        InvalidStream => REXMIT_NOT_FOUND,
        TooManyStreams { .. } => REXMIT_LIMIT,
        InProgress => REXMIT_ALREADY,
    }
}

/// The error message of the last failed call on an object, as a C string.
#[derive(Debug, Default)]
pub(crate) struct LastError(CString);

impl LastError {
    /// Stores why a call failed, and returns its status.
    pub(crate) fn note(&mut self, outcome: Outcome) -> rexmit_status {
        match outcome {
            Ok(()) => REXMIT_OK,
            Err(failure) => {
                self.0 = text(&failure.text);
                failure.status
            }
        }
    }

    pub(crate) fn as_ptr(&self) -> *const c_char {
        self.0.as_ptr()
    }
}

/// `words` as a C string; question marks replace zero bytes, which would end it.
pub(crate) fn text(words: &str) -> CString {
    CString::new(words.replace('\0', "?")).unwrap_or_default()
}

/// Runs `call`, and returns `otherwise` if it panics: unwinding into C is undefined.
pub(crate) fn guard<T>(otherwise: T, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(otherwise)
}

/// The value behind a pointer of the caller.
///
/// # Safety
/// `pointer` is NULL or points to a `T` that is not changed elsewhere while the reference lives.
pub(crate) unsafe fn deref<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: The caller vouches for it.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::null(what))
}

/// As `deref`, mutable.
///
/// # Safety
/// `pointer` is NULL or points to a `T` that is not used elsewhere while the reference lives.
pub(crate) unsafe fn deref_mut<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: The caller vouches for it.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::null(what))
}

/// Stores a result in memory of the caller.
pub(crate) unsafe fn store<T>(pointer: *mut T, value: T, what: &str) -> Outcome {
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: The caller vouches for it.
    unsafe { pointer.write(value) };
    Ok(())
}

/// The elements behind a pointer; none if `length` is 0, even if the pointer is NULL.
///
/// # Safety
/// `pointer` is NULL or points to `length` elements that are not changed while the slice lives.
pub(crate) unsafe fn slice<'a, T>(
    pointer: *const T,
    length: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    if length > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::new(REXMIT_INVALID_ARGUMENT, format!("{what} is too long")));
    }
    // SAFETY: The caller vouches for it, and the length is possible.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// A string passed by the caller.
///
/// # Safety
/// `pointer` is NULL or points to a text that ends with a zero byte.
pub(crate) unsafe fn words<'a>(pointer: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: The caller vouches for it.
    let text = unsafe { std::ffi::CStr::from_ptr(pointer) };
    let invalid = || Failure::new(REXMIT_INVALID_ARGUMENT, format!("{what} is not UTF-8"));
    text.to_str().map_err(|_| invalid())
}

/// The meaning of a status, in English. Never NULL; not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn rexmit_status_text(status: i32) -> *const c_char {
    let text = match status {
        0 => c"done",
        -1 => c"an argument is NULL or out of range",
        -2 => c"there is no such association",
        -3 => c"the association is closing or not established",
        -4 => c"there is no such stream, path, key or address",
        -5 => c"the message is empty",
        -6 => c"the message is larger than the configured limit",
        -7 => c"the send buffer is full: wait for REXMIT_EVENT_WRITABLE",
        -8 => c"the configuration is refused",
        -9 => c"not supported by the peer, the configuration or the system",
        -10 => c"a limit is reached",
        -11 => c"the same is under way or there already",
        -12 => c"the system refused a call",
        -13 => c"there is nothing (yet)",
        -100 => c"a defect of librexmit: free the endpoint",
        _ => c"unknown status",
    };
    text.as_ptr()
}
