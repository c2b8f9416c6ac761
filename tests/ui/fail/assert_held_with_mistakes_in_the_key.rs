use lockattr::{assert_held, debug_assert_held};

fn write(id: u64) {
    assert_held!("product:<id");
    assert_held!("product:<>");
    debug_assert_held!("product:<nothing>");
    assert_held!("product:<id>" "a message");
}

fn main() {
    write(1);
}
