//! The compiler's words for right and wrong uses of the attribute, one use a file. `cargo xtask
//! bless` accepts new ones.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("ui/pass/*.rs");
    cases.compile_fail("ui/fail/*.rs");
}
