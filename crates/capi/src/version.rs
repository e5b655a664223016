//! The version of the library.
#![cfg_attr(not(test), expect(dead_code, reason = "for C"))]

use std::ffi::{CStr, c_char};

/// The version of this header.
pub const REXMIT_VERSION_MAJOR: u32 = 0;
/// See REXMIT_VERSION_MAJOR. Before version 1, programs built with another minor version have to be built again.
pub const REXMIT_VERSION_MINOR: u32 = 2;
/// See REXMIT_VERSION_MAJOR.
pub const REXMIT_VERSION_PATCH: u32 = 0;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no zero byte"),
    };

/// The version of the library that is linked, such as "0.2.0". Not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn rexmit_version() -> *const c_char {
    VERSION.as_ptr()
}

#[test]
fn the_header_has_the_version_of_the_library() {
    let of_header = format!("{REXMIT_VERSION_MAJOR}.{REXMIT_VERSION_MINOR}.{REXMIT_VERSION_PATCH}");
    assert_eq!(of_header, env!("CARGO_PKG_VERSION"));
}
