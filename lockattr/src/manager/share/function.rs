//! Which function a result is of.

use std::any::{TypeId, type_name};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::platform::sync::Mutex;

/// A function, with its generic arguments, as the type of a closure in it tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    id: TypeId,
    type_name: &'static str,
}

/// The function that has `closure` in it.
///
/// Each closure has a type of its own, for each set of the generic arguments around it. The names of two types may be
/// equal, but in one build not their ids. The ids depend on the order of `impl` blocks: so that a build that has them in
/// another order does not take one for the other, the name counts as well.
pub(crate) fn of<F>(_closure: &F) -> Function {
    Function { id: typeid::of::<F>(), type_name: type_name::<F>() }
}

impl Function {
    /// The same in each process of a build, and short: names of types can be very long. `T` is what the function
    /// returns, so that a build in which that is another type takes no result of this one.
    pub(super) fn named<T>(self, function: Option<&'static str>) -> String {
        let mut name = DefaultHasher::new();
        self.type_name.hash(&mut name);
        type_name::<T>().hash(&mut name);
        format!("{} {:?} {:x}", function.unwrap_or_default(), self.id, name.finish())
    }
}

/// Whether no result of this function has had that outcome yet.
pub(super) fn is_first(of: &str, outcome: &'static str) -> bool {
    static SEEN: Mutex<BTreeSet<(String, &str)>> = Mutex::new(BTreeSet::new());
    SEEN.lock().insert((of.to_owned(), outcome))
}
