//! When processes campaigned and led, as they saw it, by which `leaderless.rs` judges.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::campaign::Campaign;
use crate::machine::elapsed;

/// The notes of one world; clones are the same notes.
#[derive(Clone, Debug, Default)]
pub(crate) struct TermLog(Rc<RefCell<Notes>>);

/// All notes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    /// The calls of `lead`.
    pub(crate) campaigns: Vec<Span>,
    /// The bodies of terms.
    pub(crate) terms: Vec<Span>,
}

/// A campaign of a process, or a term.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) process: usize,
    pub(crate) campaign: Campaign,
    pub(crate) began: Duration,
    /// When it ended; `Duration::MAX` while it has not.
    pub(crate) ended: Duration,
    /// When the leader last reported progress.
    pub(crate) progress: Duration,
}

/// A note whose end is recorded when this is dropped.
#[derive(Debug)]
pub(crate) struct Open {
    log: TermLog,
    nth: usize,
    is_term: bool,
}

impl TermLog {
    pub(crate) fn begin_campaign(&self, process: usize, campaign: &Campaign) -> Open {
        self.begin(process, campaign, false)
    }

    pub(crate) fn begin_term(&self, process: usize, campaign: &Campaign) -> Open {
        self.begin(process, campaign, true)
    }

    fn begin(&self, process: usize, campaign: &Campaign, is_term: bool) -> Open {
        let (campaign, began) = (campaign.clone(), elapsed());
        let (ended, progress) = (Duration::MAX, began);
        let mut notes = self.0.borrow_mut();
        let spans = notes.spans(is_term);
        spans.push(Span { process, campaign, began, ended, progress });
        Open { log: self.clone(), nth: spans.len() - 1, is_term }
    }

    /// Returns all notes.
    pub(crate) fn notes(&self) -> Notes {
        self.0.borrow().clone()
    }
}

impl Notes {
    fn spans(&mut self, is_term: bool) -> &mut Vec<Span> {
        if is_term { &mut self.terms } else { &mut self.campaigns }
    }
}

impl Open {
    /// Notes that the leader reports progress.
    pub(crate) fn progress(&self) {
        self.change(|span| span.progress = elapsed());
    }

    fn change(&self, change: impl FnOnce(&mut Span)) {
        change(&mut self.log.0.borrow_mut().spans(self.is_term)[self.nth]);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.change(|span| span.ended = elapsed());
    }
}

impl Span {
    pub(crate) fn spans(&self, at: Duration) -> bool {
        (self.began..self.ended).contains(&at)
    }
}
