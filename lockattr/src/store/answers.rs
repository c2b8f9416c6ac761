//! What servers answer about many claims at once: a character each.

/// Whether each claim had its locks. A "no" is a lost lock, so nothing else may be taken for one.
pub(crate) fn held_each(answers: &[u8]) -> Option<Vec<bool>> {
    let held = |answer: &u8| match answer {
        b'1' => Some(true),
        b'0' => Some(false),
        _ => None,
    };
    answers.iter().map(held).collect()
}
