//! The compiler's words for wrong uses of the attribute, and what becomes of right ones: one use a file.
//! `cargo xtask bless` accepts new words.

mod pass;

#[test]
fn wrong_uses_are_told() {
    trybuild::TestCases::new().compile_fail("fail/*.rs");
}

#[test]
fn every_right_use_is_compiled() {
    let listed = include_str!("pass.rs");
    for file in std::fs::read_dir("pass").unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let name = name.strip_suffix(".rs").expect("a file of Rust");
        assert!(listed.contains(&format!("\nmod {name};\n")), "`mod {name};` is not in pass.rs");
    }
}
