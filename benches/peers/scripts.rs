//! Peers of other languages: programs in this directory with the protocol of `worker.rs`.
//!
//! Peers that are not installed are listed as not present. To install them:
//!
//! ```text
//! python3 -m venv benches/peers/venv
//! benches/peers/venv/bin/pip install -r benches/peers/requirements.txt
//! npm install --prefix benches/peers
//! ```

use std::path::Path;

use tokio::process::Command;

pub(super) struct Script {
    /// Tried first, relative to this directory.
    own: Option<&'static str>,
    program: &'static str,
    file: &'static str,
}

impl Script {
    pub(super) const PYTHON: Self =
        Self { own: Some("venv/bin/python"), program: "python3", file: "redis_py.py" };
    pub(super) const NODE: Self = Self { own: None, program: "node", file: "redis_semaphore.js" };

    pub(super) fn command(&self) -> Command {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let own = self.own.map(|own| here.join(own)).filter(|own| own.exists());
        let mut command = Command::new(own.unwrap_or_else(|| self.program.into()));
        command.arg(here.join(self.file));
        command
    }
}
