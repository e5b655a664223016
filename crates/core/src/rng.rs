//! Seeded randomness. One seed per run, split by component, so that an additional random number in
//! one component does not change those of another.

use chacha20::ChaCha12Rng;
use rand_core::{Rng as _, SeedableRng};

/// The source of all randomness of one component.
///
/// A simulation uses [`Seed::from_u64`]. In production the driver gets it from the operating system, so that
/// others cannot predict the numbers.
#[derive(Clone)]
pub struct Seed([u8; 32]);

impl Seed {
    /// A seed of full entropy, from the operating system's random source.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A seed for reproducible runs. Must not be used on an open network: it is predictable.
    #[must_use]
    pub fn from_u64(value: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&value.to_le_bytes());
        Self(bytes)
    }

    /// The seed of the component `label` below this one. Different labels give independent seeds.
    #[must_use]
    pub fn split(&self, label: &str) -> Self {
        // The label selects a ChaCha stream keyed by this seed (FNV-1a, which is fixed for ever).
        let stream = label.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut rng = ChaCha12Rng::from_seed(self.0);
        rng.set_stream(stream);
        let mut bytes = [0; 32];
        rng.fill_bytes(&mut bytes);
        Self(bytes)
    }

    /// The generator of this seed.
    #[must_use]
    pub fn rng(&self) -> Rng {
        Rng(ChaCha12Rng::from_seed(self.0))
    }
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(…)") // It may key cookies and verification tags.
    }
}

/// A ChaCha12 generator: the same numbers from the same seed on every machine.
pub struct Rng(ChaCha12Rng);

impl Clone for Rng {
    fn clone(&self) -> Self {
        Self(ChaCha12Rng::deserialize_state(&self.0.serialize_state()))
    }
}

impl Rng {
    /// A uniform 32-bit number.
    pub fn u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// A uniform 64-bit number.
    pub fn u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in `0..bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire's multiply-shift; the bias is below 2⁻³² for every bound in use.
        ((u128::from(self.u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A uniform number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.unit() < p
    }

    /// Fills `bytes` with uniform bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

impl std::fmt::Debug for Rng {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rng(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_draws_the_same_numbers() {
        let mut rng = Seed::from_u64(7).rng();
        for _ in 0..100 {
            rng.u32();
            let (mut clone, mut original) = (rng.clone(), rng.clone());
            assert_eq!([0; 70].map(|_| clone.u32()), [0; 70].map(|_| original.u32()));
        }
        let mut clone = rng.clone();
        assert_eq!([0; 70].map(|_| clone.u64()), [0; 70].map(|_| rng.u64()));
    }

    #[test]
    fn same_seed_same_numbers_and_labels_are_independent() {
        let seed = Seed::from_u64(7);
        assert_eq!(seed.rng().u64(), seed.rng().u64());
        assert_ne!(seed.split("loss").rng().u64(), seed.split("jitter").rng().u64());
        assert_ne!(seed.rng().u64(), Seed::from_u64(8).rng().u64());
    }

    #[test]
    fn bounded_numbers_cover_their_range_evenly() {
        let mut rng = Seed::from_u64(1).rng();
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[rng.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
        assert!((0..1000).all(|_| (0.0..1.0).contains(&rng.unit())));
    }
}
