//! What a resource holds in the end that a lock guarded: a counter and a set, each element added by
//! reading all and writing all back.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// What lies in the resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// How often something was added.
    pub count: u64,
    /// All that was added.
    pub elements: BTreeSet<u64>,
}

/// One addition that the resource has acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// Who added.
    pub process: u32,
    /// What: no process adds the same.
    pub element: u64,
    /// When it began to read all that was there.
    pub read: u64,
    /// When it had written all that and its element.
    pub written: u64,
}

/// An acknowledged addition, or several, that the resource holds no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// An element is gone.
    Gone {
        /// It.
        lost: Written,
        /// Who was between reading and writing at the same time.
        by: Vec<Written>,
    },
    /// The counter does not say how much was added.
    Count {
        /// What it says.
        count: u64,
        /// How much was acknowledged.
        acknowledged: u64,
    },
}

/// Whether all that was acknowledged is there, once. More may be: a process that died could not write
/// down what it had added.
///
/// # Errors
///
/// What is missing, and who wrote over it.
pub fn audit(written: &[Written], held: &Held) -> Result<(), Vec<Wrong>> {
    let gone = written.iter().filter(|one| !held.elements.contains(&one.element));
    let mut wrong: Vec<Wrong> = gone
        .map(|lost| {
            let over = |other: &&Written| {
                *other != lost && other.read < lost.written && other.written > lost.read
            };
            let by = written.iter().filter(over).cloned().collect();
            Wrong::Gone { lost: lost.clone(), by }
        })
        .collect();
    let (count, acknowledged) = (held.count, written.len() as u64);
    if count < acknowledged || count != held.elements.len() as u64 {
        wrong.push(Wrong::Count { count, acknowledged });
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

impl Written {
    /// Writes it down, where other processes may do so as well.
    ///
    /// # Errors
    ///
    /// Where the file cannot be written.
    pub fn append(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        OpenOptions::new().create(true).append(true).open(path)?.write_all(&line)
    }

    /// All that was written down.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read.
    pub fn all(path: impl AsRef<Path>) -> io::Result<Vec<Self>> {
        let lines = BufReader::new(File::open(path)?).lines();
        lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone { lost, by } => {
                let Written { process, element, written, .. } = lost;
                write!(f, "element {element} of process {process}, written at {written}, is gone")?;
                by.iter().try_for_each(|Written { process, read, written, .. }| {
                    write!(f, "; process {process} had read at {read} and wrote at {written}")
                })
            }
            Self::Count { count, acknowledged } => {
                write!(f, "the counter says {count}, and {acknowledged} were acknowledged")
            }
        }
    }
}
