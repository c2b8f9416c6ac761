//! The view in a terminal: its keys, its clock, and the restored terminal afterwards.

use std::time::SystemTime;

use crossterm::event::{Event, EventStream};
use futures_util::StreamExt;
use lockattr::{Error, LockManager};
use ratatui::DefaultTerminal;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::Watch;
use super::view::{Next, View};
use crate::failure::Failure;
use crate::ls::matching;
use crate::pattern::Pattern;
use crate::row::Row;
use crate::run::Signals;

/// The held locks, and the time of the query.
type Update = (SystemTime, Result<Vec<Row>, Error>);

pub(super) async fn run(manager: &LockManager, watch: Watch, store: String) -> Result<(), Failure> {
    let mut view = View::new(store, watch.every, watch.sort);
    // Before the terminal is switched: an error is printed on the user's own screen.
    let first = matching(manager, watch.pattern.as_ref()).await?.rows;
    view.update(first, SystemTime::now());
    let signals = Signals::new()?;
    let (sender, updates) = mpsc::channel(1);
    let polling = tokio::spawn(poll(manager.clone(), watch.pattern, watch.every, sender));
    // This also makes every panic restore the terminal first.
    let terminal = ratatui::try_init()?;
    let done = refresh(terminal, &mut view, updates, signals).await;
    ratatui::try_restore()?;
    polling.abort();
    done
}

/// Queries at intervals. A slow store delays the numbers but not the keys.
async fn poll(
    manager: LockManager,
    pattern: Option<Pattern>,
    every: std::time::Duration,
    sender: mpsc::Sender<Update>,
) {
    let mut every = interval(every);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first query was sent already.
    every.tick().await;
    loop {
        every.tick().await;
        let rows = matching(&manager, pattern.as_ref()).await.map(|matching| matching.rows);
        if sender.send((SystemTime::now(), rows)).await.is_err() {
            return;
        }
    }
}

async fn refresh(
    mut terminal: DefaultTerminal,
    view: &mut View,
    mut updates: mpsc::Receiver<Update>,
    mut signals: Signals,
) -> Result<(), Failure> {
    let mut events = EventStream::new();
    loop {
        terminal.draw(|frame| view.draw(frame))?;
        tokio::select! {
            _ = signals.next() => return Ok(()),
            update = updates.recv() => match update {
                Some((at, Ok(rows))) => view.update(rows, at),
                Some((_, Err(error))) => view.failed(&error.to_string()),
                None => return Ok(()),
            },
            event = events.next() => match event {
                Some(Ok(Event::Key(key))) => {
                    if view.key(key) == Next::End {
                        return Ok(());
                    }
                }
                // A resize is drawn; all other events are ignored.
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Ok(()),
            },
        }
    }
}
