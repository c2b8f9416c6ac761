//! The other checker: stateright's, which tries all orders, with a sequential model of a lock.
//!
//! A call with unknown outcome is one that has not returned yet, in a thread of its own. All other
//! calls of a chain are one thread.

use std::collections::{BTreeMap, HashMap};

use lockattr_history::{Event, Mode, Op, Step};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

/// A thread of the model: a chain, or one of its calls of unknown outcome, by its number.
type Thread = (u32, u32, u64);

/// The possible states of a lock, which may be reentrant, fenced, shared, or have permits.
///
/// There are several, because a lease may expire at any time. The model expires it only when
/// another acquires the lock; if one of several permits must be free, it may be any of them.
#[derive(Clone, Debug)]
struct Lock(Vec<Inside>);

#[derive(Clone, Debug, Default)]
struct Inside {
    holds: Vec<Hold>,
    entered: BTreeMap<u32, u32>,
    fence: Option<u64>,
}

#[derive(Clone, Debug)]
struct Hold {
    who: u32,
    mode: Mode,
    fence: Option<u64>,
}

#[derive(Clone, Debug)]
enum Does {
    Acquire(u32, Mode),
    Reenter(u32),
    Leave(u32),
    /// A check or a renewal.
    Prove(u32),
    Release(u32),
    /// End the chain's hold.
    Forget(u32),
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    Yes(Option<u64>),
    /// Impossible. No history has it.
    Never,
}

impl Inside {
    fn acquired(mut self, who: u32, mode: Mode, told: Option<u64>) -> Vec<Self> {
        if told.is_some() && told <= self.fence {
            return Vec::new();
        }
        self.fence = told.or(self.fence);
        self.entered.remove(&who);
        // A chain has one hold: a new acquire ends the last one.
        self.holds.retain(|hold| hold.who != who);
        match mode {
            Mode::Exclusive => self.holds.clear(),
            _ => self.holds.retain(|hold| hold.mode != Mode::Exclusive),
        }
        let permits = |hold: &Hold| matches!(hold.mode, Mode::Permits(_));
        let taken = self.holds.iter().filter(|hold| permits(hold)).count();
        let mut all = match mode {
            Mode::Permits(count) if taken >= count as usize => {
                let places = (0..self.holds.len()).filter(|place| permits(&self.holds[*place]));
                places
                    .map(|place| {
                        let mut one = self.clone();
                        one.holds.remove(place);
                        one
                    })
                    .collect()
            }
            _ => vec![self],
        };
        for inside in &mut all {
            inside.holds.push(Hold { who, mode, fence: told });
        }
        all
    }

    fn after(&self, does: &Does, told: Option<u64>) -> Vec<Self> {
        let mut next = self.clone();
        let place = |who: u32| self.holds.iter().position(|hold| hold.who == who);
        let possible = match *does {
            Does::Acquire(who, mode) => return next.acquired(who, mode, told),
            Does::Reenter(who) => {
                *next.entered.entry(who).or_default() += 1;
                place(who).is_some_and(|place| {
                    let fence = self.holds[place].fence;
                    told.is_none() || fence.is_none() || told == fence
                })
            }
            Does::Leave(who) => match next.entered.get_mut(&who) {
                Some(entered @ 1..) => {
                    *entered -= 1;
                    true
                }
                _ => false,
            },
            Does::Prove(who) => place(who).is_some(),
            Does::Release(who) => place(who).map(|place| next.holds.remove(place)).is_some(),
            Does::Forget(who) => {
                next.holds.retain(|hold| hold.who != who);
                true
            }
        };
        if possible { vec![next] } else { Vec::new() }
    }
}

impl SequentialSpec for Lock {
    type Op = Does;
    type Ret = Answer;

    /// Runs a call that has not returned. If it is impossible now, it has no effect.
    fn invoke(&mut self, does: &Does) -> Answer {
        let before = self.clone();
        if !self.is_valid_step(does, &Answer::Yes(None)) {
            *self = before;
        }
        Answer::Never
    }

    fn is_valid_step(&mut self, does: &Does, answer: &Answer) -> bool {
        let Answer::Yes(told) = *answer else { return false };
        self.0 = self.0.iter().flat_map(|inside| inside.after(does, told)).collect();
        !self.0.is_empty()
    }
}

/// Returns whether some order of the calls explains a history of one lock.
pub(crate) fn explains(events: &[Event]) -> bool {
    let mut ends: HashMap<(u32, u64), Step> = HashMap::new();
    for event in events {
        if !matches!(event.step, Step::Invoke(_) | Step::Lost) {
            ends.insert((event.process, event.call), event.step);
        }
    }
    let mut tester = LinearizabilityTester::new(Lock(vec![Inside::default()]));
    let mut asked: HashMap<(u32, u64), Op> = HashMap::new();
    for (number, event) in (0_u64..).zip(events) {
        let who = event.process;
        let (chain, aside) = ((who, event.chain, 0), (who, event.chain, number + 1));
        let call = (event.process, event.call);
        let mut begin = |thread: Thread, does: Does| {
            tester.on_invoke(thread, does).expect("one call at a time in each chain");
        };
        match event.step {
            Step::Invoke(op) => {
                asked.insert(call, op);
                let end = ends.get(&call).copied().unwrap_or(Step::Unknown);
                let does = done(op, who);
                match (end, op) {
                    (Step::Ok(_), _) => begin(chain, does),
                    (Step::Fail, Op::Check | Op::Release) => begin(chain, Does::Forget(who)),
                    (Step::Unknown, _) => begin(aside, does),
                    _ => {}
                }
            }
            Step::Lost => {
                begin(aside, Does::Forget(who));
                tester.on_return(aside, Answer::Yes(None)).expect("it has begun");
            }
            Step::Ok(told) => {
                tester.on_return(chain, Answer::Yes(told)).expect("it has begun");
            }
            Step::Fail if matches!(asked[&call], Op::Check | Op::Release) => {
                tester.on_return(chain, Answer::Yes(None)).expect("it has begun");
            }
            Step::Fail | Step::Unknown => {}
        }
    }
    tester.is_consistent()
}

fn done(op: Op, who: u32) -> Does {
    match op {
        Op::Acquire(mode) => Does::Acquire(who, mode),
        Op::Reenter => Does::Reenter(who),
        Op::Leave => Does::Leave(who),
        Op::Check | Op::Renew => Does::Prove(who),
        Op::Release => Does::Release(who),
    }
}
