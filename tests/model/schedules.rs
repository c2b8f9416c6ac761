//! Enumerates the schedules of a model, each once.
//!
//! A depth-first search that leaves out schedules which differ from an explored one only in the
//! order of independent steps (sleep sets: Godefroid, *Partial-Order Methods for the Verification
//! of Concurrent Systems*, 1996).
//!
//! Two steps are dependent if they are at the same object. Everything that tasks share and decide
//! by is such an object, or is only touched in a step at one particular object. Shuttle's own
//! depth-first search tries all orders of all steps, which are too many for three tasks.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

thread_local! {
    /// For each task that is about to make a step: the object of the step.
    static BEFORE: RefCell<HashMap<TaskId, Object>> = RefCell::default();
    /// The number of objects created in this run.
    static OBJECTS: Cell<usize> = const { Cell::new(0) };
}

/// Where dependent steps meet. Numbered, because addresses differ between runs: an object that the
/// same steps create has the same number in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object(usize);

impl Object {
    pub(crate) fn new() -> Self {
        OBJECTS.set(OBJECTS.get() + 1);
        Self(OBJECTS.get())
    }
}

/// Lets any other task go first. Then the caller makes a step at this object.
pub(crate) fn step_at(object: Object) {
    // While a failed schedule is torn down, nothing is explored.
    if std::thread::panicking() {
        return;
    }
    let me = shuttle::current::me();
    BEFORE.with_borrow_mut(|before| before.insert(me, object));
    // Shuttle does not model time: this only switches tasks. Its `yield_now` would also wake the
    // task.
    shuttle::thread::sleep(std::time::Duration::ZERO);
    BEFORE.with_borrow_mut(|before| before.remove(&me));
}

/// The search. It ends when no choice is left.
#[derive(Default)]
pub(crate) struct EverySchedule {
    choices: Vec<Choice>,
    /// How many of `choices` were made in this run.
    made: usize,
    begun: bool,
    /// How many runs turned out to repeat an earlier one, and were only run to their end.
    repeated: Rc<Cell<usize>>,
}

struct Choice {
    now: Next,
    /// Steps that were chosen here in earlier runs, or need not be chosen any more.
    asleep: Vec<Next>,
    later: Vec<Next>,
    /// All that follows is explored already: this run only has to reach its end.
    repeats: bool,
}

/// A task that can run, and the object of its step. A task that begins or ends has none.
#[derive(Clone, Copy, PartialEq)]
struct Next {
    task: TaskId,
    at: Option<Object>,
}

impl Next {
    fn meets(self, other: Self) -> bool {
        self.task == other.task || (self.at.is_some() && self.at == other.at)
    }
}

impl EverySchedule {
    /// The number of repeated runs, to be read when the search is over.
    pub(crate) fn repeated(&self) -> Rc<Cell<usize>> {
        self.repeated.clone()
    }

    fn choose(&self, able: &[Next]) -> Choice {
        let (mut asleep, later) = (Vec::new(), Vec::new());
        if let Some(last) = self.choices.last() {
            if last.repeats {
                return Choice { now: able[0], asleep, later, repeats: true };
            }
            asleep.clone_from(&last.asleep);
            asleep.retain(|one| !one.meets(last.now));
        }
        // The order of independent steps does not matter, so such a step comes first.
        if let Some(&now) = able.iter().find(|next| next.at.is_none()) {
            return Choice { now, asleep, later, repeats: false };
        }
        let awake = able.iter().copied().filter(|next| !asleep.contains(next));
        let mut later: Vec<Next> = awake.collect();
        let (now, repeats) = later.pop().map_or((able[0], true), |now| (now, false));
        Choice { now, asleep, later, repeats }
    }
}

impl Scheduler for EverySchedule {
    fn new_execution(&mut self) -> Option<Schedule> {
        BEFORE.with_borrow_mut(HashMap::clear);
        OBJECTS.set(0);
        let repeats = self.choices.last().is_some_and(|last| last.repeats);
        self.repeated.set(self.repeated.get() + usize::from(repeats));
        if self.begun {
            loop {
                let mut choice = self.choices.pop()?;
                if let Some(now) = choice.later.pop() {
                    choice.asleep.push(std::mem::replace(&mut choice.now, now));
                    self.choices.push(choice);
                    break;
                }
            }
        }
        (self.begun, self.made) = (true, 0);
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, able: &[&Task], _: Option<TaskId>, _: bool) -> Option<TaskId> {
        if self.made == self.choices.len() {
            let able: Vec<Next> = BEFORE.with_borrow(|before| {
                let next =
                    |task: &&Task| Next { task: task.id(), at: before.get(&task.id()).copied() };
                able.iter().map(next).collect()
            });
            let choice = self.choose(&able);
            self.choices.push(choice);
        }
        let chosen = self.choices[self.made].now.task;
        self.made += 1;
        Some(chosen)
    }

    fn next_u64(&mut self) -> u64 {
        panic!("a model leaves nothing to chance")
    }
}

mod tests {
    use std::sync::{Arc, Mutex};

    use shuttle::scheduler::DfsScheduler;
    use shuttle::{Config, Runner};

    use super::{EverySchedule, Object, Scheduler, step_at};
    use crate::explore::Seen;

    /// Runs three tasks of two steps each, at these objects. Returns the number of schedules, and
    /// the orders of the steps at each object that occurred.
    fn orders(scheduler: impl Scheduler + 'static, at: [usize; 6]) -> (usize, Vec<String>) {
        let seen = Seen::default();
        let orders = seen.clone();
        let runs = Runner::new(scheduler, Config::default()).run(move || {
            let order = Arc::new(Orders(Default::default(), orders.clone()));
            let objects = [(); 4].map(|()| Object::new());
            for (task, at) in at.chunks(2).enumerate() {
                let (order, at) = (order.clone(), at.to_vec());
                drop(shuttle::thread::spawn(move || {
                    for object in at {
                        step_at(objects[object]);
                        order.0[object].lock().expect("no panics").push_str(&task.to_string());
                    }
                }));
            }
        });
        (runs, seen.all())
    }

    /// The order at each object, noted when the last task is gone.
    struct Orders([Mutex<String>; 4], Seen);

    impl Drop for Orders {
        fn drop(&mut self) {
            self.1.note(&format!(
                "{:?}",
                self.0.each_ref().map(|at| at.lock().map(|o| o.clone()).ok())
            ));
        }
    }

    /// Red without: `asleep.retain`; or with `later` left empty.
    #[test]
    fn no_order_is_left_out_and_none_is_tried_twice() {
        // 6! / (2! · 2! · 2!) at one object; one where no two tasks share an object.
        for (at, schedules) in [([0; 6], 90), ([0, 0, 1, 1, 2, 2], 1)] {
            let search = EverySchedule::default();
            let repeated = search.repeated();
            assert_eq!(orders(search, at).0 - repeated.get(), schedules, "{at:?}");
        }
        for at in [[0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 2, 3], [0, 1, 0, 1, 1, 0], [0, 1, 1, 2, 2, 0]] {
            let (_, all) = orders(DfsScheduler::new(None, false), at);
            let (_, explored) = orders(EverySchedule::default(), at);
            assert_eq!(all, explored, "{at:?}");
        }
    }
}
