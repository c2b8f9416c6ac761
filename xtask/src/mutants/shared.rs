//! One build for all mutants that fit into it. A variable of the environment chooses one of them.

use std::collections::BTreeMap;

use super::build::Build;
use super::messages::{CompileError, errors};
use super::mutant::Mutant;
use super::plan::Plan;
use super::program::Program;
use super::tree::Tree;

pub(crate) struct Shared {
    pub(crate) tree: Tree,
    pub(crate) build: Build,
}

impl Shared {
    /// Builds these programs with all mutants of `plan` in them, and takes those out that do not compile.
    pub(crate) fn built(
        plan: &mut Plan,
        mutants: &[Mutant],
        programs: &[&'static Program],
    ) -> Result<Self, String> {
        loop {
            let tree = Tree::copied("switched", |file| plan.switched(file))?;
            let output = match Build::of(&tree.root, programs.iter().copied()) {
                Ok(build) => return Ok(Self { tree, build }),
                Err(output) => output,
            };
            let failed = excluded(plan, &output);
            if failed.is_empty() {
                return Err(format!("the shared build fails:\n{output}"));
            }
            for (number, error) in failed {
                eprintln!("xtask: {} is built alone: {error}", mutants[number - 1].name);
            }
        }
    }
}

/// Takes the mutants out that errors of the compiler are about, and returns their numbers and errors.
fn excluded<'a>(plan: &mut Plan, output: &'a str) -> BTreeMap<usize, &'a str> {
    let mut failed = BTreeMap::new();
    for CompileError { message, places } in errors(output) {
        let mut mutants = places.iter().filter_map(|(file, line)| plan.mutant_at(file, *line));
        failed.extend(mutants.next().map(|mutant| (mutant, message)));
    }
    for mutant in failed.keys() {
        plan.exclude(*mutant);
    }
    failed
}
