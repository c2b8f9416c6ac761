//! Every state that can be reached, breadth first, so that the first wrong one is reached by a
//! shortest way.
//!
//! States are kept whole and compared whole: that none was left out does not hang on a hash.
//! (`stateright` keeps 64 bits of each, and brings forty crates and a web server with it.)

use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use indexmap::IndexMap;
use indexmap::map::Entry;

/// What is explored.
pub(crate) trait Model {
    type State: Copy + Eq + Hash + fmt::Display;
    type Step: fmt::Display;

    fn starts(&self) -> Vec<Self::State>;

    /// All that can happen in `state`, and what is then.
    fn steps(&self, state: &Self::State) -> Vec<(Self::Step, Self::State)>;

    /// The one state that stands for all those which differ from this one in names only. Whatever
    /// can happen in one of them can happen in each, under the other names.
    fn canonical(&self, state: Self::State) -> Self::State;

    /// What is wrong with it.
    fn wrong(&self, state: &Self::State) -> Option<&'static str>;
}

/// What was explored: all of it, or all until the first wrong state.
pub(crate) struct Explored<'a, M: Model> {
    model: &'a M,
    /// Each state in the order of its discovery, with the place of the one it was found from; a
    /// start stands for itself.
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

/// The search finds that this is wrong, and so many steps lead there.
#[track_caller]
pub(crate) fn is_wrong<M: Model>(model: &M, what: &str, steps: usize) {
    explore(model).is_wrong(what, steps);
}

impl<M: Model> Explored<'_, M> {
    /// Nothing is wrong anywhere, however many states there are.
    #[track_caller]
    pub(crate) fn has_nothing_wrong(&self) {
        assert!(self.wrong.is_none(), "a state is wrong:\n{self}");
        report(self);
    }

    /// Nothing is wrong anywhere, and there are so many states.
    #[track_caller]
    pub(crate) fn holds(&self, states: usize) {
        self.has_nothing_wrong();
        assert_eq!(self.seen.len(), states, "the model is not what it was");
    }

    /// This is wrong, and so many steps lead there.
    #[track_caller]
    pub(crate) fn is_wrong(&self, what: &str, steps: usize) {
        report(self);
        let found = self.wrong.map(|(_, wrong)| (wrong, self.way().len() - 1));
        assert_eq!(found, Some((what, steps)), "\n{self}");
    }

    /// Whether there is such a state.
    pub(crate) fn some(&self, such: impl FnMut(&M::State) -> bool) -> bool {
        self.seen.keys().any(such)
    }

    /// The states on a shortest way to the wrong one.
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
        // The way leads through canonical states, whose names change from one to the next; gone
        // again from its start, they stay.
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

/// A quick hash of a few words. Two states that share one cost time, nothing else.
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

#[expect(clippy::print_stdout, reason = "what was explored is what a model says of itself")]
fn report<M: Model>(explored: &Explored<'_, M>) {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    println!("{test}:\n{explored}\n");
}
