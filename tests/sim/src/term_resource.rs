//! What leaders write to: resources that compare the numbers of terms, and record what they see.
//!
//! A write takes time to arrive, also while its process is stopped or after it was killed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use lockattr_history::{TermEvent, TermStep};

use crate::life::Life;

/// The resources of one world, by the keys of their leaders; clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct TermResources(Rc<RefCell<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    by_key: BTreeMap<&'static str, Resource>,
    on_their_way: Vec<(Duration, Rc<Write>)>,
}

#[derive(Debug, Default)]
struct Resource {
    /// The latest term that wrote.
    newest: u64,
    events: Vec<TermEvent>,
}

/// The term of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leads {
    pub(crate) key: &'static str,
    /// The number of its process's life.
    pub(crate) process: u32,
    /// The number of the term.
    pub(crate) term: u64,
}

/// A write that takes time to arrive.
#[derive(Debug)]
pub(crate) struct Write {
    leads: Leads,
    life: Life,
    state: Cell<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sent,
    Accepted,
    Refused,
    Withdrawn,
}

impl TermResources {
    /// Records a step of a term that needs no comparison.
    pub(crate) fn record(&self, leads: Leads, step: TermStep) {
        self.0.borrow_mut().resource(leads.key).record(leads, step);
    }

    /// Writes at once. Returns whether the resource accepts it. If not, the leader records that it
    /// was refused.
    pub(crate) fn write(&self, leads: Leads) -> bool {
        self.0.borrow_mut().resource(leads.key).write(leads)
    }

    /// Sends a write that arrives at this time of the simulation.
    pub(crate) fn send(&self, leads: Leads, life: &Life, arrives: Duration) -> Rc<Write> {
        let write = Rc::new(Write { leads, life: life.clone(), state: Cell::new(State::Sent) });
        self.0.borrow_mut().on_their_way.push((arrives, write.clone()));
        write
    }

    /// Delivers the writes that have arrived.
    pub(crate) fn deliver(&self, now: Duration) {
        let mut inner = self.0.borrow_mut();
        if inner.on_their_way.is_empty() {
            return;
        }
        let (mut arrived, later): (Vec<_>, _) =
            std::mem::take(&mut inner.on_their_way).into_iter().partition(|(at, _)| *at <= now);
        inner.on_their_way = later;
        arrived.sort_by_key(|(at, _)| *at);
        for (_, write) in arrived {
            if write.state.get() == State::Sent {
                let resource = inner.resource(write.leads.key);
                let is_accepted = resource.write(write.leads);
                if !is_accepted && write.life.is_over() {
                    // No process is left that could read the answer.
                    resource.record(write.leads, TermStep::Refused { held: false });
                }
                write.state.set(if is_accepted { State::Accepted } else { State::Refused });
            }
        }
    }

    /// Returns what each resource has recorded.
    pub(crate) fn events(&self) -> BTreeMap<&'static str, Vec<TermEvent>> {
        let inner = self.0.borrow();
        inner.by_key.iter().map(|(key, resource)| (*key, resource.events.clone())).collect()
    }
}

impl Inner {
    fn resource(&mut self, key: &'static str) -> &mut Resource {
        self.by_key.entry(key).or_default()
    }
}

impl Resource {
    fn write(&mut self, leads: Leads) -> bool {
        if leads.term < self.newest {
            return false;
        }
        self.newest = leads.term;
        self.record(leads, TermStep::Wrote);
        true
    }

    fn record(&mut self, Leads { process, term, .. }: Leads, step: TermStep) {
        self.events.push(TermEvent { process, term, step });
    }
}

impl Write {
    /// Returns whether the resource accepted it; `None` while it is on its way.
    pub(crate) fn answer(&self) -> Option<bool> {
        match self.state.get() {
            State::Sent => None,
            answered => Some(answered == State::Accepted),
        }
    }

    /// Closes its connection: a write that has not arrived never does.
    pub(crate) fn withdraw(&self) {
        if self.state.get() == State::Sent {
            self.state.set(State::Withdrawn);
        }
    }
}
