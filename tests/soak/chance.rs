//! All randomness comes from one seed, with a separate stream for each user.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// A random stream that depends on the seed and on `who`, and on nothing else.
pub(crate) fn stream(seed: u64, who: &str) -> StdRng {
    // FNV-1a: the standard library's hashes may change with its version, and old seeds with them.
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in seed.to_le_bytes().into_iter().chain(who.bytes()) {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    StdRng::seed_from_u64(state)
}

pub(crate) fn one_of<T: Copy>(random: &mut StdRng, choices: &[T]) -> T {
    choices[random.random_range(0..choices.len())]
}

pub(crate) fn millis(random: &mut StdRng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(random.random_range(range))
}
