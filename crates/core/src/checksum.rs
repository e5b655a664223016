//! CRC32c (RFC 9260 Appendix A), with the processor's CRC instruction if there is one.

/// CRC32c of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    ::crc32c::crc32c(bytes)
}

/// The CRC32c of data whose CRC32c is `crc`, followed by `bytes`.
#[must_use]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    ::crc32c::crc32c_append(crc, bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn matches_the_published_check_value() {
        assert_eq!(super::crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(super::crc32c_append(super::crc32c(b"12345"), b"6789"), 0xE306_9283);
    }
}
