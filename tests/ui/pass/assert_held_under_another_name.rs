//! A module that re-exports lockattr: the macros find it under any path.

mod house {
    pub(crate) mod locks {
        pub(crate) use lockattr::*;
    }
}

use house::locks;

fn write(id: u64) {
    locks::assert_held!("product:<id>");
    locks::debug_assert_held!("product:<id>", "{id}",);
}

#[test]
fn compiles_and_runs() {
    assert!(std::panic::catch_unwind(|| write(42)).is_err());
}
