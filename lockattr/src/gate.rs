//! The gate of an entry: its direct children pass by turns, those that share together, others alone.

use crate::store::Sharing;
use crate::sync::{Arc, Semaphore};

/// The turns of a gate: one who shares takes one of them, one who does not takes them all.
const TURNS: u32 = 1 << 16;

/// The gate of one entry.
#[derive(Debug)]
pub(crate) struct Gate(Semaphore);

impl Gate {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(TURNS as usize))
    }
}

/// Waits for this entry's turn to let a child in.
pub(crate) async fn turn<E: AsRef<Gate>>(entry: &Arc<E>, sharing: Sharing) -> Turn<E> {
    let turns = turns(sharing);
    let Gate(gate) = (**entry).as_ref();
    // The gate is never closed, so the permit always comes.
    if let Ok(permit) = gate.acquire_many(turns).await {
        permit.forget();
    }
    Turn { entry: entry.clone(), sharing, turns }
}

/// The turn, if nobody has it.
pub(crate) fn try_turn<E: AsRef<Gate>>(entry: &Arc<E>, sharing: Sharing) -> Option<Turn<E>> {
    let turns = turns(sharing);
    let Gate(gate) = (**entry).as_ref();
    gate.try_acquire_many(turns).ok()?.forget();
    Some(Turn { entry: entry.clone(), sharing, turns })
}

/// Children that share may be inside together.
fn turns(sharing: Sharing) -> u32 {
    if sharing == Sharing::Shared { 1 } else { TURNS }
}

/// The turn to be inside an entry; the next child has it when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn<E: AsRef<Gate>> {
    entry: Arc<E>,
    sharing: Sharing,
    turns: u32,
}

impl<E: AsRef<Gate>> Turn<E> {
    /// Whose turn it is to let a child in.
    pub(crate) fn around(&self) -> &E {
        &self.entry
    }

    /// What the child asked for.
    pub(crate) fn sharing(&self) -> Sharing {
        self.sharing
    }
}

impl<E: AsRef<Gate>> Drop for Turn<E> {
    fn drop(&mut self) {
        let Gate(gate) = (*self.entry).as_ref();
        gate.add_permits(self.turns as usize);
    }
}
