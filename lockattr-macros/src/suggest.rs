//! Finds the name that was probably meant.

/// The candidate closest to `word`, at most two typing errors away; of two, the one of similar
/// length.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let length = word.chars().count();
    let allowed = (length / 3).min(2);
    candidates
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, candidate)| (*distance, length.abs_diff(candidate.chars().count())))
        .map(|(_, candidate)| candidate)
}

/// The number of letters that are missing, surplus, wrong, or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            rows[i][j] = match (i, j) {
                (0, length) | (length, 0) => length,
                _ => {
                    let wrong = usize::from(left[i - 1] != right[j - 1]);
                    let one_less = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    let swapped = i > 1
                        && j > 1
                        && left[i - 1] == right[j - 2]
                        && left[i - 2] == right[j - 1];
                    let after_swap = if swapped { rows[i - 2][j - 2] + 1 } else { usize::MAX };
                    one_less.min(rows[i - 1][j - 1] + wrong).min(after_swap)
                }
            };
        }
    }
    rows[left.len()][right.len()]
}
