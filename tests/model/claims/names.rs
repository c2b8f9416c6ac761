//! Decides which states differ in names only: claims that want the same could exchange their names.

use std::cmp::Ordering;

use super::CLAIMS;

/// The name of a claim where 0 means none. There are few claims.
pub(crate) fn name(claim: usize) -> u8 {
    u8::try_from(claim + 1).unwrap_or(u8::MAX)
}

/// The number that each claim gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Names([usize; CLAIMS]);

impl Names {
    /// Returns the names that sort claims which want the same, by all that a state knows of them
    /// without a name in it. `None` if they have those names already.
    pub(crate) fn in_order<W: PartialEq>(
        wants: &[W],
        compare: impl Fn(usize, usize) -> Ordering,
    ) -> Option<Self> {
        // The claim in each place.
        let mut order: [usize; CLAIMS] = std::array::from_fn(|claim| claim);
        let mut moved = false;
        for (first, second) in [(0, 1), (0, 2), (1, 2), (0, 1)] {
            let alike = wants.get(first) == wants.get(second);
            if alike && compare(order[first], order[second]).is_gt() {
                order.swap(first, second);
                moved = true;
            }
        }
        moved.then(|| {
            let mut names = order;
            order.iter().enumerate().for_each(|(place, &claim)| names[claim] = place);
            Self(names)
        })
    }

    /// Moves what is stored for each claim to its new name.
    pub(crate) fn arrange<T: Copy>(self, of_claims: &mut [T; CLAIMS]) {
        let was = *of_claims;
        for (of_claim, name) in was.into_iter().zip(self.0) {
            of_claims[name] = of_claim;
        }
    }

    /// Renames the claim in `entry`, if it names one.
    pub(crate) fn rename(self, entry: &mut u8) {
        if *entry > 0 {
            *entry = name(self.0[usize::from(*entry) - 1]);
        }
    }
}
