//! Random histories of a correct lock, and changes that may make them wrong.

use std::collections::BTreeMap;

use lockattr_history::{Event, Mode, Op, Step};

/// Random numbers that were drawn in advance, so that proptest can shrink a failure. After the
/// last, all are zero.
pub(crate) struct Choices<'a>(pub(crate) std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % count
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }
}

/// The kinds of locks that the chains of a history use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kinds {
    pub(crate) modes: &'static [Mode],
    pub(crate) fenced: bool,
}

/// A chain's hold in the model.
#[derive(Clone, Copy)]
struct Hold {
    mode: Mode,
    fence: u64,
    entered: u32,
}

/// One call: its operation, its outcome, when it took effect, and its begin and end.
struct Call {
    chain: u32,
    /// `None` for a loss.
    op: Option<Op>,
    end: Step,
    effect: u64,
    from: u64,
    until: u64,
}

/// The time between two effects, in which calls can begin and end in any order.
const STEP: u64 = 100;

/// Runs `steps` operations one by one on a correct lock, then spreads the calls so that they
/// overlap.
pub(crate) fn true_history(kinds: Kinds, steps: usize, choices: &mut Choices<'_>) -> Vec<Event> {
    let mut holders: BTreeMap<u32, Hold> = BTreeMap::new();
    let mut fence = 0;
    let mut calls: Vec<Call> = Vec::new();
    for step in 1..=steps as u64 {
        let (at, chain) = (step * STEP, choices.below(3) as u32);
        let hold_now = holders.get(&chain).copied();
        if hold_now.is_some() && choices.one_in(6) {
            holders.remove(&chain);
            if choices.one_in(2) {
                let (op, end) = (None, Step::Lost);
                calls.push(Call { chain, op, end, effect: at, from: at, until: at });
            }
            continue;
        }
        let op = match (hold_now, choices.below(6)) {
            (None, 5) => Op::Check,
            (None, _) => Op::Acquire(kinds.modes[choices.below(kinds.modes.len())]),
            (Some(_), 0) => Op::Check,
            (Some(_), 1) => Op::Renew,
            (Some(_), 2) => Op::Reenter,
            (Some(hold), 3) if hold.entered > 0 => Op::Leave,
            (Some(_), _) => Op::Release,
        };
        let possible = match op {
            Op::Acquire(mode) => allows(&holders, mode),
            _ => hold_now.is_some(),
        };
        let unknown = choices.one_in(8);
        // A call with unknown outcome may have had no effect.
        let has_effect = possible && !(unknown && choices.one_in(2));
        let mut token = None;
        if has_effect {
            match op {
                Op::Acquire(mode) => {
                    fence += 1 + choices.below(2) as u64;
                    token = Some(fence);
                    holders.insert(chain, Hold { mode, fence, entered: 0 });
                }
                Op::Reenter => {
                    let hold = holders.get_mut(&chain).expect("the chain has a hold");
                    hold.entered += 1;
                    token = Some(hold.fence);
                }
                Op::Leave => holders.get_mut(&chain).expect("the chain has a hold").entered -= 1,
                Op::Release => drop(holders.remove(&chain)),
                Op::Check | Op::Renew => {}
            }
        }
        let end = match (unknown, has_effect) {
            (true, _) => Step::Unknown,
            (false, true) => Step::Ok(token.filter(|_| kinds.fenced)),
            (false, false) => Step::Fail,
        };
        let spread = |choices: &mut Choices<'_>| choices.below(4) as u64 * STEP + 1 + step % 30;
        let (before, after) = (spread(choices), spread(choices));
        let (from, until) = (at.saturating_sub(before), at + after);
        calls.push(Call { chain, op: Some(op), end, effect: at, from, until });
    }
    separate(&mut calls);
    events(&calls)
}

fn allows(holders: &BTreeMap<u32, Hold>, mode: Mode) -> bool {
    let permits = holders.values().filter(|hold| matches!(hold.mode, Mode::Permits(_)));
    match mode {
        Mode::Exclusive => holders.is_empty(),
        _ if holders.values().any(|hold| hold.mode == Mode::Exclusive) => false,
        Mode::Shared => true,
        Mode::Permits(count) => permits.count() < count as usize,
    }
}

/// Separates the calls of one chain, which must not overlap: each ends or begins halfway between
/// two effects.
fn separate(calls: &mut [Call]) {
    let mut last: BTreeMap<u32, usize> = BTreeMap::new();
    for index in 0..calls.len() {
        let Some(before) = last.insert(calls[index].chain, index) else { continue };
        let middle = u64::midpoint(calls[before].effect, calls[index].effect);
        calls[before].until = calls[before].until.min(middle);
        calls[index].from = calls[index].from.max(middle + 1);
    }
}

fn events(calls: &[Call]) -> Vec<Event> {
    let mut events = Vec::new();
    for (call, Call { chain, op, end, from, until, .. }) in (0..).zip(calls) {
        let event = |at, step| {
            let (process, key) = (*chain, "k".to_owned());
            Event { at, process, chain: 0, call, key, step }
        };
        match op {
            Some(op) => events.extend([event(*from, Step::Invoke(*op)), event(*until, *end)]),
            None => events.push(event(*until, *end)),
        }
    }
    events.sort_by_key(|event| event.at);
    renumber(&mut events);
    events
}

fn renumber(events: &mut [Event]) {
    for (at, event) in (0..).zip(events) {
        event.at = at;
    }
}

/// Changes one thing, which may make the history wrong.
pub(crate) fn change(kinds: Kinds, events: &mut [Event], choices: &mut Choices<'_>) {
    if events.len() < 2 {
        return;
    }
    let index = choices.below(events.len());
    match choices.below(4) {
        // Move an event in time, relative to the other chains.
        0 => {
            for index in index..events.len() - 1 {
                if events[index].process == events[index + 1].process {
                    break;
                }
                events.swap(index, index + 1);
            }
        }
        1 => {
            for index in (1..=index).rev() {
                if events[index].process == events[index - 1].process {
                    break;
                }
                events.swap(index, index - 1);
            }
        }
        2 => {
            let Some(Step::Ok(Some(fence))) =
                events[index..].iter().map(|event| event.step).find(|step| fenced(*step))
            else {
                return;
            };
            let other = fence.saturating_sub(1 + choices.below(3) as u64).max(1);
            let mut after = events[index..].iter_mut();
            let granted = after.find(|event| event.step == Step::Ok(Some(fence)));
            granted.expect("the token was found above").step = Step::Ok(Some(other));
        }
        _ => {
            let is_unsuccessful = |event: &Event| matches!(event.step, Step::Fail | Step::Unknown);
            let Some(unsuccessful) =
                (index..events.len()).find(|index| is_unsuccessful(&events[*index]))
            else {
                return;
            };
            let (process, call) = (events[unsuccessful].process, events[unsuccessful].call);
            let invoked =
                events.iter().find(|event| (event.process, event.call) == (process, call));
            let invoked = invoked.map(|event| event.step);
            let has_fence = matches!(invoked, Some(Step::Invoke(Op::Acquire(_) | Op::Reenter)));
            let fence = 1 + choices.below(2 * events.len()) as u64 / 2;
            events[unsuccessful].step = Step::Ok((kinds.fenced && has_fence).then_some(fence));
        }
    }
    renumber(events);
}

fn fenced(step: Step) -> bool {
    matches!(step, Step::Ok(Some(_)))
}
