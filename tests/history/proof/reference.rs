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
struct Lock(Vec<State>);

#[derive(Clone, Debug, Default)]
struct State {
    holds: Vec<Hold>,
    entered: BTreeMap<u32, u32>,
    fence: Option<u64>,
}

#[derive(Clone, Debug)]
struct Hold {
    chain: u32,
    mode: Mode,
    fence: Option<u64>,
}

#[derive(Clone, Debug)]
enum Operation {
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
enum Response {
    Done(Option<u64>),
    /// Impossible. No history has it.
    Never,
}

impl State {
    fn acquired(mut self, chain: u32, mode: Mode, token: Option<u64>) -> Vec<Self> {
        if token.is_some() && token <= self.fence {
            return Vec::new();
        }
        self.fence = token.or(self.fence);
        self.entered.remove(&chain);
        // A chain has one hold: a new acquire ends the last one.
        self.holds.retain(|hold| hold.chain != chain);
        match mode {
            Mode::Exclusive => self.holds.clear(),
            _ => self.holds.retain(|hold| hold.mode != Mode::Exclusive),
        }
        let permits = |hold: &Hold| matches!(hold.mode, Mode::Permits(_));
        let permits_used = self.holds.iter().filter(|hold| permits(hold)).count();
        let mut all = match mode {
            Mode::Permits(count) if permits_used >= count as usize => {
                let indexes = (0..self.holds.len()).filter(|index| permits(&self.holds[*index]));
                indexes
                    .map(|index| {
                        let mut one = self.clone();
                        one.holds.remove(index);
                        one
                    })
                    .collect()
            }
            _ => vec![self],
        };
        for state in &mut all {
            state.holds.push(Hold { chain, mode, fence: token });
        }
        all
    }

    fn after(&self, operation: &Operation, token: Option<u64>) -> Vec<Self> {
        let mut next = self.clone();
        let index_of = |chain: u32| self.holds.iter().position(|hold| hold.chain == chain);
        let possible = match *operation {
            Operation::Acquire(chain, mode) => return next.acquired(chain, mode, token),
            Operation::Reenter(chain) => {
                *next.entered.entry(chain).or_default() += 1;
                index_of(chain).is_some_and(|index| {
                    let fence = self.holds[index].fence;
                    token.is_none() || fence.is_none() || token == fence
                })
            }
            Operation::Leave(chain) => match next.entered.get_mut(&chain) {
                Some(entered @ 1..) => {
                    *entered -= 1;
                    true
                }
                _ => false,
            },
            Operation::Prove(chain) => index_of(chain).is_some(),
            Operation::Release(chain) => {
                index_of(chain).map(|index| next.holds.remove(index)).is_some()
            }
            Operation::Forget(chain) => {
                next.holds.retain(|hold| hold.chain != chain);
                true
            }
        };
        if possible { vec![next] } else { Vec::new() }
    }
}

impl SequentialSpec for Lock {
    type Op = Operation;
    type Ret = Response;

    /// Runs a call that has not returned. If it is impossible now, it has no effect.
    fn invoke(&mut self, operation: &Operation) -> Response {
        let before = self.clone();
        if !self.is_valid_step(operation, &Response::Done(None)) {
            *self = before;
        }
        Response::Never
    }

    fn is_valid_step(&mut self, operation: &Operation, response: &Response) -> bool {
        let Response::Done(token) = *response else { return false };
        self.0 = self.0.iter().flat_map(|state| state.after(operation, token)).collect();
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
    let mut tester = LinearizabilityTester::new(Lock(vec![State::default()]));
    let mut invoked: HashMap<(u32, u64), Op> = HashMap::new();
    for (number, event) in (0_u64..).zip(events) {
        let process = event.process;
        let (thread, own_thread) = ((process, event.chain, 0), (process, event.chain, number + 1));
        let call = (event.process, event.call);
        let mut begin = |thread: Thread, operation: Operation| {
            tester.on_invoke(thread, operation).expect("one call at a time in each chain");
        };
        match event.step {
            Step::Invoke(op) => {
                invoked.insert(call, op);
                let end = ends.get(&call).copied().unwrap_or(Step::Unknown);
                let operation = operation_of(op, process);
                match (end, op) {
                    (Step::Ok(_), _) => begin(thread, operation),
                    (Step::Fail, Op::Check | Op::Release) => {
                        begin(thread, Operation::Forget(process));
                    }
                    (Step::Unknown, _) => begin(own_thread, operation),
                    _ => {}
                }
            }
            Step::Lost => {
                begin(own_thread, Operation::Forget(process));
                tester.on_return(own_thread, Response::Done(None)).expect("the call has begun");
            }
            Step::Ok(token) => {
                tester.on_return(thread, Response::Done(token)).expect("the call has begun");
            }
            Step::Fail if matches!(invoked[&call], Op::Check | Op::Release) => {
                tester.on_return(thread, Response::Done(None)).expect("the call has begun");
            }
            Step::Fail | Step::Unknown => {}
        }
    }
    tester.is_consistent()
}

fn operation_of(op: Op, chain: u32) -> Operation {
    match op {
        Op::Acquire(mode) => Operation::Acquire(chain, mode),
        Op::Reenter => Operation::Reenter(chain),
        Op::Leave => Operation::Leave(chain),
        Op::Check | Op::Renew => Operation::Prove(chain),
        Op::Release => Operation::Release(chain),
    }
}
