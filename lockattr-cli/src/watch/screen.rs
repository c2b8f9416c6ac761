//! The view in a terminal: its keys, its clock, and the terminal as it was afterwards.

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

/// What was held, and when it was asked.
type Answer = (SystemTime, Result<Vec<Row>, Error>);

pub(super) async fn run(manager: &LockManager, watch: Watch, store: String) -> Result<(), Failure> {
    let mut view = View::new(store, watch.every, watch.sort);
    // Before the terminal is ours: an error is reported on the user's own screen.
    let first = matching(manager, watch.pattern.as_ref()).await?;
    view.answered(first, SystemTime::now());
    let signals = Signals::new()?;
    let (tell, answers) = mpsc::channel(1);
    let asking = tokio::spawn(ask(manager.clone(), watch.pattern, watch.every, tell));
    // It also makes every panic give the terminal back first.
    let terminal = ratatui::try_init()?;
    let done = refresh(terminal, &mut view, answers, signals).await;
    ratatui::try_restore()?;
    asking.abort();
    done
}

/// Asks again and again. A store that is slow holds up the numbers and not the keys.
async fn ask(
    manager: LockManager,
    pattern: Option<Pattern>,
    every: std::time::Duration,
    tell: mpsc::Sender<Answer>,
) {
    let mut every = interval(every);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // That one was asked already.
    every.tick().await;
    loop {
        every.tick().await;
        let rows = matching(&manager, pattern.as_ref()).await;
        if tell.send((SystemTime::now(), rows)).await.is_err() {
            return;
        }
    }
}

async fn refresh(
    mut terminal: DefaultTerminal,
    view: &mut View,
    mut answers: mpsc::Receiver<Answer>,
    mut signals: Signals,
) -> Result<(), Failure> {
    let mut events = EventStream::new();
    loop {
        terminal.draw(|frame| view.draw(frame))?;
        tokio::select! {
            _ = signals.next() => return Ok(()),
            answer = answers.recv() => match answer {
                Some((at, Ok(rows))) => view.answered(rows, at),
                Some((_, Err(error))) => view.failed(error.to_string()),
                None => return Ok(()),
            },
            event = events.next() => match event {
                Some(Ok(Event::Key(key))) => {
                    if view.key(key) == Next::End {
                        return Ok(());
                    }
                }
                // A new size is drawn, the rest is not for us.
                Some(Ok(_)) => {}
                // The terminal is gone.
                Some(Err(_)) | None => return Ok(()),
            },
        }
    }
}
