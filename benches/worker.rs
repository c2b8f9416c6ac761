//! One process of a fleet: connects, waits for orders on stdin, and answers on stdout.
//!
//! ```text
//! PROGRAM worker PEER URL KEY TASKS one|each BODY-IN-MICROSECONDS ordered|any-order
//!    → ready                         or `absent WHY`
//! go MICROSECONDS
//!    → the lines of an `Outcome`     or `failed WHY`
//! ```
//!
//! It accepts any number of `go` orders, and ends with its stdin.

use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::load::Load;
use crate::peers::{Client, Peer};

/// Excludes the first connection, the scripts and the allocator from the measurement.
const WARM_UP: Duration = Duration::from_millis(50);

/// Executes orders until stdin ends.
pub(crate) fn main(words: &[String]) {
    // As `#[tokio::main]` creates it, like most programs.
    let runtime = Runtime::new().expect("a runtime");
    let prepared = read(words).and_then(|asked| {
        let client = runtime.block_on(asked.prepare())?;
        Ok((client, asked))
    });
    let (client, Asked { key, load, .. }) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => {
            say(&format!("absent {why}\n"));
            return;
        }
    };
    // If the reader is gone, its process has ended, and this one ends too.
    let mut heard = say("ready\n");
    for line in stdin().lock().lines() {
        let line = line.unwrap_or_default();
        if !heard {
            return;
        }
        let Some(micros) = line.strip_prefix("go ").and_then(|micros| micros.parse().ok()) else {
            return;
        };
        heard = match runtime.block_on(load.run(&client, &key, Duration::from_micros(micros))) {
            Ok(outcome) => say(&outcome.to_string()),
            Err(why) => say(&format!("failed {why}\n")),
        };
    }
}

struct Asked {
    peer: Peer,
    url: String,
    key: String,
    load: Load,
}

fn read(words: &[String]) -> Result<Asked, String> {
    let [peer, url, key, load @ ..] = words else {
        return Err("too few words".to_owned());
    };
    let (peer, load) = (Peer::named(peer)?, Load::from_words(load)?);
    Ok(Asked { peer, url: url.clone(), key: key.clone(), load })
}

impl Asked {
    /// Connects, and acquires for a while on a key of its own.
    async fn prepare(&self) -> Result<Arc<Client>, String> {
        let client = Arc::new(Client::connect(self.peer, &self.url).await?);
        let own = format!("{}:warm:{}", self.key, std::process::id());
        Load::hot(1).run(&client, &own, WARM_UP).await?;
        Ok(client)
    }
}

fn say(text: &str) -> bool {
    let mut stdout = stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}
