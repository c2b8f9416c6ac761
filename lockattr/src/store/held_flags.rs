//! The answers of servers about many claims at once: one character for each.

/// Whether each claim still has its locks. Only `0` means a lost lock; any other character is an
/// error.
pub(crate) fn held_each(flags: &[u8]) -> Option<Vec<bool>> {
    let held = |flag: &u8| match flag {
        b'1' => Some(true),
        b'0' => Some(false),
        _ => None,
    };
    flags.iter().map(held).collect()
}
