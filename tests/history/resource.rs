//! Audits a resource that a lock guarded: a counter and a set, to which each process adds an
//! element by reading everything and writing it back.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The contents of the resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The number of additions.
    pub count: u64,
    /// The added elements.
    pub elements: BTreeSet<u64>,
}

/// An addition that the resource has acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The process that added the element.
    pub process: u32,
    /// The element. No two additions have the same.
    pub element: u64,
    /// When the process began to read the contents.
    pub read: u64,
    /// When it had written the contents with its element.
    pub written: u64,
}

/// An acknowledged addition, or several, that the resource no longer has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// An element is missing.
    Gone {
        /// The lost addition.
        lost: Written,
        /// The additions whose time between read and write overlaps with it.
        by: Vec<Written>,
    },
    /// The counter is wrong.
    Count {
        /// Its value.
        count: u64,
        /// The number of acknowledged additions.
        acknowledged: u64,
    },
}

/// Checks that the resource has every acknowledged addition. It may have more: a process that died
/// could not record its last addition.
///
/// # Errors
///
/// The missing additions, and those that may have overwritten them.
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
    /// Appends the addition to a file, which several processes may share.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn append(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        OpenOptions::new().create(true).append(true).open(path)?.write_all(&line)
    }

    /// Reads all additions from a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
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
