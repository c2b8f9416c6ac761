//! A figure that was measured several times.

/// The median of several values, and their range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` without values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let median = *values.get(values.len() / 2)?;
        Some(Self { median, min: values[0], max: values[values.len() - 1] })
    }
}

/// A figure that was counted once, or exactly.
impl From<f64> for Spread {
    fn from(value: f64) -> Self {
        Self { median: value, min: value, max: value }
    }
}
