//! Rewrites a Rust file so that a variable of the environment chooses a mutant while the program runs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

/// Has the number of the mutant that the programs of the shared build run with. A process that a test
/// starts inherits it.
pub(crate) const VARIABLE: &str = "LOCKATTR_MUTANT";

/// A body of a file, and what it is with a mutant.
pub(crate) struct Arm {
    pub(crate) body: Range<usize>,
    pub(crate) mutant: usize,
    pub(crate) text: String,
}

/// A rewritten file, and in which of its lines the arms are.
#[derive(Default)]
pub(crate) struct Switched {
    pub(crate) text: String,
    pub(crate) lines: Vec<(RangeInclusive<usize>, usize)>,
}

/// Returns the file with `match … { 1 => { …with the mutant… } _ => { …as it is… } }` in its bodies.
pub(crate) fn switched(file: &str, arms: &[Arm]) -> Switched {
    // An outer body comes before those in it.
    let mut bodies = BTreeMap::<_, Vec<&Arm>>::new();
    for arm in arms {
        bodies.entry((arm.body.start, Reverse(arm.body.end))).or_default().push(arm);
    }
    let bodies: Vec<_> = bodies.into_values().collect();
    let mut switched = Switched::default();
    switched.write(file, 0..file.len(), &bodies);
    switched
}

impl Switched {
    /// Writes a part of the file. An arm has its body as it was: its mutant is the only one.
    fn write(&mut self, file: &str, part: Range<usize>, mut bodies: &[Vec<&Arm>]) {
        let mut at = part.start;
        while let [arms, after @ ..] = bodies {
            let body = arms[0].body.clone();
            let within = after.iter().take_while(|arms| arms[0].body.end <= body.end).count();
            let (inner, after) = after.split_at(within);
            self.text += &file[at..body.start];
            self.text += &format!(" match {} {{\n", number());
            for arm in arms {
                self.arm(arm);
            }
            self.text += "_ => {";
            self.write(file, body.clone(), inner);
            self.text += "} }";
            (at, bodies) = (body.end, after);
        }
        self.text += &file[at..part.end];
    }

    fn arm(&mut self, arm: &Arm) {
        let first = self.line();
        self.text += &format!("{} => {{{}}}", arm.mutant, arm.text);
        self.lines.push((first..=self.line(), arm.mutant));
        self.text.push('\n');
    }

    fn line(&self) -> usize {
        self.text.matches('\n').count() + 1
    }
}

/// An expression. It needs nothing of its crate, and reads the variable once. The command's leash is
/// started without any variables, so it reads its parent's.
fn number() -> String {
    let (lock, mine) = ("::std::sync::LazyLock", format!("::std::env::var({VARIABLE:?})"));
    let parents = format!(
        "::std::fs::read_to_string(format!(\"/proc/{{}}/environ\", \
         ::std::os::unix::process::parent_id())).ok().and_then(|all| all.split('\\0')\
         .find_map(|it| it.strip_prefix(\"{VARIABLE}=\").map(str::to_owned)))"
    );
    let read = format!("{mine}.ok().or_else(|| {parents})");
    let number = format!("{read}.map_or(0, |it| it.parse().expect(\"a number\"))");
    format!("{{ static MUTANT: {lock}<usize> = {lock}::new(|| {number}); *MUTANT }}")
}

#[cfg(test)]
mod tests {
    use super::{Arm, number, switched};

    /// Returns `file` with arms for these bodies, and the lines of the arms.
    #[track_caller]
    fn with(file: &str, arms: &[(&str, usize, &str)]) -> (String, Vec<(usize, usize)>) {
        let arm = |(body, mutant, text): &(&str, usize, &str)| {
            let start = file.find(body).unwrap();
            Arm { body: start..start + body.len(), mutant: *mutant, text: (*text).to_owned() }
        };
        let switched = switched(file, &arms.iter().map(arm).collect::<Vec<_>>());
        syn::parse_file(&switched.text).unwrap();
        let lines = switched.lines.iter().map(|(lines, mutant)| (*lines.start(), *mutant));
        (switched.text.replace(&number(), "N"), lines.collect())
    }

    #[test]
    fn each_body_has_its_mutants_and_what_it_was() {
        let (text, lines) = with("fn a() {1}\nfn b() {2}\n", &[("1", 7, "\n0"), ("2", 8, "3")]);
        assert_eq!(
            text,
            "fn a() { match N {\n7 => {\n0}\n_ => {1} }}\nfn b() { match N {\n8 => {3}\n_ => {2} }}\n"
        );
        assert_eq!(lines, [(2, 7), (6, 8)]);
    }

    #[test]
    fn mutants_of_a_body_are_beside_each_other_and_those_of_an_inner_one_in_what_it_was() {
        let arms = [("fn b() {2}", 1, "3"), ("2", 2, "4"), ("fn b() {2}", 3, "5")];
        let (text, _) = with("fn a() {fn b() {2}}", &arms);
        assert_eq!(
            text,
            "fn a() { match N {\n1 => {3}\n3 => {5}\n_ => {fn b() { match N {\n2 => {4}\n_ => {2} }}} }}"
        );
    }
}
