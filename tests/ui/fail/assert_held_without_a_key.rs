fn write() {
    lockattr::assert_held!();
}

fn main() {
    write();
}
