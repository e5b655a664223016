//! Serial number arithmetic (RFC 1982), and conversion to unwrapped numbers.
//!
//! Serial numbers have no total order, so [`Serial`] does not implement `Ord`. Protocol state keeps
//! 64-bit *unwrapped* numbers, which are ordered and never wrap; [`unwrap_u32`] and [`unwrap_u16`]
//! convert a number on the wire to the unwrapped number nearest to a known one.

/// A number modulo 2³² (TSN, TCP sequence number) or 2¹⁶ (SSN).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Serial<T>(pub T);

macro_rules! serial {
    ($int:ty, $signed:ty) => {
        impl Serial<$int> {
            /// Whether `self` comes before `other` (RFC 1982 §3.2).
            #[must_use]
            pub const fn is_before(self, other: Self) -> bool {
                (self.0.wrapping_sub(other.0) as $signed) < 0
            }

            /// Whether `self` comes after `other` (RFC 1982 §3.2).
            #[must_use]
            pub const fn is_after(self, other: Self) -> bool {
                (self.0.wrapping_sub(other.0) as $signed) > 0
            }

            /// The number after this one.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.wrapping_add(1))
            }
        }
    };
}
serial!(u32, i32);
serial!(u16, i16);

/// The number congruent to `wire` modulo 2³² that is nearest to `reference`.
///
/// Callers start their numbering at or above 2³², so that the result cannot fall below zero; a result below zero wraps
/// around instead of panicking.
#[must_use]
pub const fn unwrap_u32(reference: u64, wire: u32) -> u64 {
    let delta = wire.wrapping_sub(reference as u32) as i32;
    reference.wrapping_add_signed(delta as i64)
}

/// The number congruent to `wire` modulo 2¹⁶ that is nearest to `reference`.
#[must_use]
pub const fn unwrap_u16(reference: u64, wire: u16) -> u64 {
    let delta = wire.wrapping_sub(reference as u16) as i16;
    reference.wrapping_add_signed(delta as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_holds_across_the_wrap() {
        assert!(Serial(u32::MAX).is_before(Serial(0u32)));
        assert!(Serial(5u32).is_after(Serial(u32::MAX - 5)));
        assert!(!Serial(7u32).is_before(Serial(7)));
        assert!(Serial(u16::MAX).is_before(Serial(0u16)));
        assert_eq!(Serial(u16::MAX).next(), Serial(0));
    }

    #[test]
    fn unwrapping_finds_the_nearest_number() {
        let base = 1u64 << 32;
        for reference in [base, base + 5, (base << 1) - 1, base << 1, (base << 1) + 77] {
            for delta in [-70_000i64, -1, 0, 1, 2, 70_000] {
                let want = reference.wrapping_add_signed(delta);
                assert_eq!(unwrap_u32(reference, want as u32), want);
            }
            for delta in [-30_000i64, -1, 0, 1, 30_000] {
                let want = reference.wrapping_add_signed(delta);
                assert_eq!(unwrap_u16(reference, want as u16), want);
            }
        }
    }
}
