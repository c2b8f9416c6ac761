//! One process of a fleet: connects, waits for its orders on stdin, answers on stdout.
//!
//! ```text
//! PROGRAM worker PEER URL KEY TASKS one|each BODY-IN-MICROSECONDS ordered|any-order
//!    → ready                         or `absent WHY`
//! go MICROSECONDS
//!    → the lines of an `Outcome`     or `failed WHY`
//! ```
//!
//! It may be told to go any number of times, and ends with its stdin.

use std::io::{BufRead, Write, stdin, stdout};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::load::Load;
use crate::peers::{Client, Peer};

/// The first connection, the scripts, the allocator: none of that is measured.
const WARM_UP: Duration = Duration::from_millis(50);

/// Follows its instructions until no more come.
pub(crate) fn main(words: &[String]) {
    // As `#[tokio::main]` makes it: what a program has that asks for nothing special.
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
    // Who does not listen any more has ended, and then so do we.
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

/// What the words ask for.
struct Asked {
    peer: Peer,
    url: String,
    key: String,
    load: Load,
}

fn read(words: &[String]) -> Result<Asked, String> {
    let [peer, url, key, load @ ..] = words else {
        return Err("it got too few words".to_owned());
    };
    let (peer, load) = (Peer::named(peer)?, Load::from_words(load)?);
    Ok(Asked { peer, url: url.clone(), key: key.clone(), load })
}

impl Asked {
    /// Connects, and acquires for a while on a key that no other process wants.
    async fn prepare(&self) -> Result<Arc<Client>, String> {
        let client = Arc::new(Client::connect(self.peer, &self.url).await?);
        let own = format!("{}:warm:{}", self.key, std::process::id());
        Load::hot(1).run(&client, &own, WARM_UP).await?;
        Ok(client)
    }
}

/// Whether it could be said.
fn say(text: &str) -> bool {
    let mut stdout = stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}
