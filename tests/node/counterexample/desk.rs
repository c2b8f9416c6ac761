//! How a process uses the ledger that its lock protects: it reads all elements, and writes them
//! back with one more.

use std::error::Error;

use lockattr_history::{Held, Written, monotonic};
use lockattr_tests::Ledger;

use crate::arguments::Arguments;

pub(super) struct Desk {
    ledger: Ledger,
    log: String,
    process: u32,
    added: u64,
    /// The fencing token of the read, its time, and its result.
    read: Option<(u64, u64, Held)>,
}

impl Desk {
    pub(super) fn by(arguments: &Arguments, process: u32) -> Result<Self, String> {
        let path: String = arguments.get_or("ledger", String::new())?;
        let ledger = Ledger::at(&path, arguments.get_or("fenced", false)?);
        Ok(Self { ledger, log: format!("{path}.log"), process, added: 0, read: None })
    }

    /// Returns whether the resource allowed it.
    pub(super) fn reads(&mut self, fence: u64) -> bool {
        let began = monotonic();
        self.read = self.ledger.read(fence).map(|held| (fence, began, held));
        self.read.is_some()
    }

    /// Returns whether the resource allowed it. Records what was acknowledged.
    pub(super) fn writes(&mut self) -> Result<bool, Box<dyn Error>> {
        let (fence, read, mut held) = self.read.take().ok_or("nothing was read")?;
        self.added += 1;
        let element = u64::from(self.process) * 1_000_000 + self.added;
        held.count += 1;
        held.elements.insert(element);
        if !self.ledger.write(fence, held) {
            return Ok(false);
        }
        let written = monotonic();
        Written { process: self.process, element, read, written }.append(&self.log)?;
        Ok(true)
    }
}
