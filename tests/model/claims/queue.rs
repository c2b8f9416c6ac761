//! The wait queue of one key, as the store keeps it.

use super::names::{Names, name};
use super::{CLAIMS, pass};

/// The entries of claims, from the head, then zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    entries: [u8; CLAIMS],
    /// For how many ticks each claim's entry can still be passed over, if the claim is for several
    /// keys.
    fresh: [u8; CLAIMS],
}

impl Queue {
    /// The claims in the queue, from its head.
    pub(crate) fn claims(&self) -> impl Iterator<Item = usize> + use<> {
        self.entries.into_iter().filter(|&entry| entry > 0).map(|entry| usize::from(entry) - 1)
    }

    /// The claims before `claim`: all, if it is not in the queue.
    pub(crate) fn before(&self, claim: usize) -> impl Iterator<Item = usize> + use<> {
        self.claims().take_while(move |&other| other != claim)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries[0] == 0
    }

    pub(crate) fn place(&self, claim: usize) -> Option<usize> {
        self.entries.iter().position(|&entry| entry == name(claim))
    }

    pub(crate) fn fresh(&self, claim: usize) -> u8 {
        self.fresh[claim]
    }

    pub(crate) fn is_fresh(&self, claim: usize) -> bool {
        self.fresh[claim] > 0
    }

    /// Appends the claim. Its entry can be passed over for `fresh` ticks.
    pub(crate) fn append(&mut self, claim: usize, fresh: u8) {
        let end = self.claims().count();
        self.entries[end] = name(claim);
        self.fresh[claim] = fresh;
    }

    pub(crate) fn remove(&mut self, claim: usize) {
        if let Some(place) = self.place(claim) {
            self.entries[place..].rotate_left(1);
            self.entries[CLAIMS - 1] = 0;
        }
        self.fresh[claim] = 0;
    }

    pub(crate) fn tick(&mut self) {
        self.fresh.iter_mut().for_each(pass);
    }

    pub(crate) fn rename(&mut self, names: Names) {
        self.entries.iter_mut().for_each(|entry| names.rename(entry));
        names.arrange(&mut self.fresh);
    }

    /// Everything to hash: the entries, and how fresh they are.
    pub(crate) fn words(&self) -> ([u8; CLAIMS], [u8; CLAIMS]) {
        (self.entries, self.fresh)
    }
}
