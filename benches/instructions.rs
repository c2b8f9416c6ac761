//! Counts the instructions of a piece of work with valgrind. The count is the same in every run,
//! unlike a time.
//!
//! This program runs itself under callgrind, once with some repetitions and once with three times
//! as many. The difference is the work alone, without the start and the first connection. No
//! function has to be found by name in the compiled program.

use std::process::{Command, Stdio};

use lockattr::LockManager;
use tokio::runtime::Builder;

use crate::pairs::Pair;
use crate::repeated::Work;

#[derive(Clone, Debug)]
pub(crate) enum Counted {
    /// In memory.
    Work(Work),
    /// With a server at this URL, whose own instructions are not counted.
    Pair(Pair, String),
}

impl Counted {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Work(work) => work.name(),
            Self::Pair(pair, _) => pair.name(),
        }
    }

    /// Parses its name and, if it uses a server, `url=…`.
    pub(crate) fn read(name: &str, url: Option<String>) -> Result<Self, String> {
        match (Pair::named(name), url) {
            (Some(pair), Some(url)) => Ok(Self::Pair(pair, url)),
            (Some(_), None) => Err(format!("`{name}` takes a url")),
            (None, _) => Work::named(name).map(Self::Work),
        }
    }

    /// The instructions for one repetition; or why they cannot be counted.
    pub(crate) fn count(&self) -> Result<f64, String> {
        // Fewer repetitions of longer work: some ten million instructions each.
        let few = if matches!(self, Self::Work(_)) { 2_000 } else { 500 };
        let more = self.under_callgrind(3 * few)?;
        let few_took = self.under_callgrind(few)?;
        Ok(more.saturating_sub(few_took) as f64 / (2 * few) as f64)
    }

    /// Runs under valgrind, on one thread.
    pub(crate) fn execute(self, count: u64) -> Result<(), String> {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            match self {
                Self::Work(work) => in_memory(work, count).await.map_err(|error| error.to_string()),
                Self::Pair(pair, url) => pair.repeat(&url, count).await,
            }
        })
    }

    fn under_callgrind(&self, count: u64) -> Result<u64, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        valgrind.arg(program).args(["instructions", self.name(), &count.to_string()]);
        if let Self::Pair(_, url) = self {
            valgrind.arg(format!("url={url}"));
        }
        valgrind.stdin(Stdio::null());
        let ran = valgrind.output().map_err(|error| format!("valgrind is not present: {error}"))?;
        let said = String::from_utf8_lossy(&ran.stderr);
        let collected =
            said.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok());
        match collected {
            Some(instructions) if ran.status.success() => Ok(instructions),
            _ => Err(format!("valgrind: {}\n{said}", ran.status)),
        }
    }
}

async fn in_memory(work: Work, count: u64) -> Result<(), lockattr::Error> {
    let manager = LockManager::connect("memory://").await?;
    manager.install()?;
    work.repeat(&manager, count).await
}
