//! Tests that correct uses of the attribute compile, and pins the compiler's messages for wrong
//! ones: one use in each file. `cargo xtask bless` accepts new messages.

mod compiler;
mod fail;
mod forms;
mod messages;
mod pass;
mod without_features;

#[test]
fn every_correct_use_is_compiled() {
    let listed = include_str!("pass.rs");
    for file in std::fs::read_dir("pass").unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let name = name.strip_suffix(".rs").expect("a Rust file");
        assert!(listed.contains(&format!("\nmod {name};\n")), "`mod {name};` is not in pass.rs");
    }
}
