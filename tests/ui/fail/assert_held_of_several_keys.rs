fn write(from: u64, to: u64) {
    lockattr::assert_held!(["account:<from>", "account:<to>"]);
}

fn main() {
    write(1, 2);
}
