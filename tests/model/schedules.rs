//! The schedules of a model, each once: a depth-first search that leaves out what differs from an
//! explored one only in the order of steps that do not meet (sleep sets: Godefroid, *Partial-Order
//! Methods for the Verification of Concurrent Systems*, 1996).
//!
//! Two steps meet if they are at the same object. Everything tasks share and decide by is such an
//! object, or is only touched in a step at one and always the same. Shuttle's own depth-first
//! search tries all orders of all steps, which is too many for three tasks.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};

thread_local! {
    /// At which object each task that stands before a step will make it.
    static BEFORE: RefCell<HashMap<TaskId, Object>> = RefCell::default();
    /// How many objects this run has made.
    static OBJECTS: Cell<usize> = const { Cell::new(0) };
}

/// Where steps meet. Numbered, because an address is another one in the next run: what was made
/// by the same steps has the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object(usize);

impl Object {
    pub(crate) fn new() -> Self {
        OBJECTS.set(OBJECTS.get() + 1);
        Self(OBJECTS.get())
    }
}

/// Here any other task may go first; then comes a step at this object.
pub(crate) fn step_at(object: Object) {
    // While a failed schedule is torn down, nothing is explored.
    if std::thread::panicking() {
        return;
    }
    let me = shuttle::current::me();
    BEFORE.with_borrow_mut(|before| before.insert(me, object));
    // Time is not modelled by shuttle: this is a switch of tasks. Its `yield_now` would wake the
    // task as well.
    shuttle::thread::sleep(std::time::Duration::ZERO);
    BEFORE.with_borrow_mut(|before| before.remove(&me));
}

/// The search. It ends when there is no choice left.
#[derive(Default)]
pub(crate) struct EverySchedule {
    choices: Vec<Choice>,
    /// How many of them were made in this run.
    made: usize,
    begun: bool,
    /// How many runs turned out to be like an earlier one, and only came to their end.
    repeated: Rc<Cell<usize>>,
}

struct Choice {
    now: Next,
    /// Those that were chosen here in earlier runs, or need not be any more.
    asleep: Vec<Next>,
    later: Vec<Next>,
    /// All that follows was explored: this run only has to come to its end.
    repeats: bool,
}

/// A task that can go on, and at which object; a task that begins or ends is at none.
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
    /// To be read once the search is over.
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
        // What meets nothing is as good first as later.
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

    /// Three tasks of two steps each, at these objects: how many schedules, and which orders of the
    /// steps at each object came about.
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

    /// The order at each of the objects, noted once the last task is gone.
    struct Orders([Mutex<String>; 4], Seen);

    impl Drop for Orders {
        fn drop(&mut self) {
            self.1.note(&format!(
                "{:?}",
                self.0.each_ref().map(|at| at.lock().map(|o| o.clone()).ok())
            ));
        }
    }

    /// Red without: `asleep.retain`, or with `later` left empty.
    #[test]
    fn no_order_is_left_out_and_none_is_tried_twice() {
        // 6! / (2! · 2! · 2!) at one object; one alone where no two tasks meet.
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
