//! The seed of the tests that choose at random what they do.

const VARIABLE: &str = "LOCKATTR_SEED";

/// Returns 0, so that a test always does the same, or the number in `LOCKATTR_SEED`: `cargo xtask
/// deep` draws one. Prints it, to repeat a failure.
///
/// # Panics
///
/// If the variable is not a number.
#[must_use]
#[expect(clippy::print_stdout, reason = "repeats a failure")]
pub fn seed() -> u64 {
    let number = |text: String| {
        text.parse().unwrap_or_else(|_| panic!("`{VARIABLE}` is `{text}`, which is not a number"))
    };
    let seed = std::env::var(VARIABLE).map_or(0, number);
    println!("{VARIABLE}={seed}");
    seed
}
