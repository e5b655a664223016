//! Conversations of full length from inputs of any length.

use bolero::TypeGenerator;
use bolero::generator::bolero_generator::driver::{ByteSliceDriver, Driver, Options};

/// The bytes that a value is made from: more than nearly all values need.
const BYTES: usize = 16_384;

/// A value made from the bytes of an input and, after its end, from pseudorandom ones.
///
/// libFuzzer begins with short inputs and replaces each by the shortest one that reaches the same code. After the end
/// of an input, generators read zeros: most of a conversation would be packets that arrive as they were sent.
#[derive(Clone, Debug)]
pub struct Filled<T>(pub T);

impl<T: TypeGenerator> TypeGenerator for Filled<T> {
    fn generate<D: Driver>(driver: &mut D) -> Option<Self> {
        let seed: u32 = driver.produce()?;
        let all = |bytes: &[u8]| Some((bytes.len(), bytes.to_vec()));
        let mut bytes = driver.gen_from_bytes(|| (0, Some(BYTES)), all)?;
        fill(&mut bytes, seed.into());
        let options = Options::default().with_max_len(BYTES);
        T::generate(&mut ByteSliceDriver::new(&bytes, &options)).map(Self)
    }
}

/// Appends the numbers of a SplitMix64 generator until there are [`BYTES`].
fn fill(bytes: &mut Vec<u8>, mut state: u64) {
    bytes.reserve(BYTES + 8);
    while bytes.len() < BYTES {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut number = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bytes.extend((number ^ (number >> 31)).to_le_bytes());
    }
}
