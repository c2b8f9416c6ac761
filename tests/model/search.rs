//! Visits every reachable state, breadth first, so that a shortest path leads to the first wrong
//! one.
//!
//! States are stored and compared whole, so no hash collision can hide one. (`stateright` stores 64
//! bits of each, and depends on forty crates and a web server.)

use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use indexmap::IndexMap;
use indexmap::map::Entry;

/// What is explored.
pub(crate) trait Model {
    type State: Copy + Eq + Hash + fmt::Display;
    type Step: fmt::Display;

    fn starts(&self) -> Vec<Self::State>;

    /// Returns each step that can happen in `state`, with the state after it.
    fn steps(&self, state: &Self::State) -> Vec<(Self::Step, Self::State)>;

    /// Returns the representative of all states that differ from this one in names only. Whatever
    /// can happen in one of them can happen in each, under other names.
    fn canonical(&self, state: Self::State) -> Self::State;

    /// What is wrong with `state`, if anything.
    fn wrong(&self, state: &Self::State) -> Option<&'static str>;
}

/// The explored states: all of them, or all up to the first wrong one.
pub(crate) struct Explored<'a, M: Model> {
    model: &'a M,
    /// Each state in the order of discovery, with the index of the state it was found from; a start
    /// has its own index.
    seen: IndexMap<M::State, usize, BuildHasherDefault<Mix>>,
    wrong: Option<(usize, &'static str)>,
}

/// Visits every state of `model`.
pub(crate) fn explore<M: Model>(model: &M) -> Explored<'_, M> {
    let mut explored = Explored { model, seen: IndexMap::default(), wrong: None };
    for start in model.starts() {
        let place = explored.seen.len();
        explored.seen.entry(model.canonical(start)).or_insert(place);
    }
    let mut at = 0;
    while let Some((&state, _)) = explored.seen.get_index(at) {
        if let Some(wrong) = model.wrong(&state) {
            explored.wrong = Some((at, wrong));
            break;
        }
        for (_, next) in model.steps(&state) {
            if let Entry::Vacant(new) = explored.seen.entry(model.canonical(next)) {
                new.insert(at);
            }
        }
        at += 1;
    }
    explored
}

/// Asserts that the search finds this wrong state after this number of steps.
#[track_caller]
pub(crate) fn is_wrong<M: Model>(model: &M, what: &str, steps: usize) {
    explore(model).is_wrong(what, steps);
}

impl<M: Model> Explored<'_, M> {
    /// Asserts that no state is wrong, however many there are.
    #[track_caller]
    pub(crate) fn has_nothing_wrong(&self) {
        assert!(self.wrong.is_none(), "a state is wrong:\n{self}");
        report(self);
    }

    /// Asserts that no state is wrong and that there are this many.
    #[track_caller]
    pub(crate) fn holds(&self, states: usize) {
        self.has_nothing_wrong();
        assert_eq!(self.seen.len(), states, "the model is not what it was");
    }

    /// Asserts that the first wrong state is this one, after this number of steps.
    #[track_caller]
    pub(crate) fn is_wrong(&self, what: &str, steps: usize) {
        report(self);
        let found = self.wrong.map(|(_, wrong)| (wrong, self.way().len() - 1));
        assert_eq!(found, Some((what, steps)), "\n{self}");
    }

    /// Returns whether any state satisfies `such`.
    pub(crate) fn some(&self, such: impl FnMut(&M::State) -> bool) -> bool {
        self.seen.keys().any(such)
    }

    /// The states on a shortest path to the wrong one.
    fn way(&self) -> Vec<&M::State> {
        let mut way = Vec::new();
        let mut at = self.wrong.map(|(at, _)| at);
        while let Some((place, (state, &from))) =
            at.and_then(|at| Some((at, self.seen.get_index(at)?)))
        {
            way.push(state);
            at = (from != place).then_some(from);
        }
        way.reverse();
        way
    }
}

impl<M: Model> fmt::Display for Explored<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((_, wrong)) = self.wrong else {
            return write!(f, "all of {} states", self.seen.len());
        };
        // The path consists of canonical states, whose names change from one to the next. Replayed
        // from its start, the path keeps its names.
        let way = self.way();
        let start = |start: &M::State| self.model.canonical(*start) == *way[0];
        let starts = self.model.starts();
        let mut state = starts.into_iter().find(start).ok_or(fmt::Error)?;
        writeln!(f, "{:36}{state}", "")?;
        for next in &way[1..] {
            let mut steps = self.model.steps(&state).into_iter();
            let found = steps.find(|(_, then)| self.model.canonical(*then) == **next);
            let (step, then) = found.ok_or(fmt::Error)?;
            writeln!(f, "{:36}{then}", step.to_string())?;
            state = then;
        }
        write!(f, "{wrong}; {} steps, {} states", way.len() - 1, self.seen.len())
    }
}

/// A quick hash of a few words. A collision costs time, nothing else.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

#[expect(clippy::print_stdout, reason = "a model prints how much it explored")]
fn report<M: Model>(explored: &Explored<'_, M>) {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    println!("{test}:\n{explored}\n");
}
