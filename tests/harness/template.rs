//! An empty server's data: created once in a test program, and copied for each of its servers.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use crate::process::Process;

/// The data of one server program.
#[derive(Debug, Default)]
pub(crate) struct Template {
    /// The directory, and a process whose `Leash` removes it: a `static` is never dropped.
    created: OnceCell<(TempDir, Process)>,
}

impl Template {
    pub(crate) const fn new() -> Self {
        Self { created: OnceCell::const_new() }
    }

    /// Copies the data, with its owner, to `directory/data`. The first call creates it: `create` gets a directory
    /// in which it makes `data`.
    pub(crate) async fn copy_to(
        &self,
        directory: &Path,
        create: impl FnOnce(&Path) + Send + 'static,
    ) {
        let create = async || {
            let directory = TempDir::with_prefix("lockattr-").expect("a temporary directory");
            let mut sleeper = Command::new("sleep");
            sleeper.arg("infinity").stdin(Stdio::null());
            let cleaner = Process::start(&mut sleeper, Some(directory.path())).expect("`sleep`");
            let created = spawn_blocking(move || {
                create(directory.path());
                (directory, cleaner)
            });
            created.await.expect("the server's data can be created")
        };
        let (template, _) = self.created.get_or_init(create).await;
        let mut copy = Command::new("cp");
        copy.args(["-a", "--reflink=auto"]).arg(template.path().join("data")).arg(directory);
        let copied = spawn_blocking(move || copy.stdin(Stdio::null()).status()).await;
        let copied = copied.expect("no panic").expect("`cp`");
        assert!(copied.success(), "the data could not be copied");
    }
}
