//! `node plain url=…`: acquires a lock on a thread outside any runtime, then drops the guard and
//! ends the process at once.

use std::error::Error;
use std::process::exit;
use std::thread;

use lockattr::{LockManager, LockOptions};

use crate::arguments::Arguments;

#[expect(clippy::disallowed_methods, reason = "the test checks what dropping the guard does")]
pub(crate) async fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let url: String = arguments.get_or("url", String::new())?;
    let program = move || -> Result<(), lockattr::Error> {
        let manager = LockManager::connect_blocking(&url)?;
        // The manager is never dropped: only the guard's drop is tested.
        let manager = std::mem::ManuallyDrop::new(manager);
        drop(manager.acquire_blocking("plain", LockOptions::new())?);
        exit(0)
    };
    let ended = thread::spawn(program).join();
    Ok(ended.map_err(|_| "the thread has panicked")??)
}
