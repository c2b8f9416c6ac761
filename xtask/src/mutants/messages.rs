//! Reads what the compiler's errors say, and about which lines.

/// An error of the compiler.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CompileError<'a> {
    pub(crate) message: &'a str,
    /// Files of the project and lines in them, the main one first.
    pub(crate) places: Vec<(&'a str, usize)>,
}

/// Returns the errors in the output of a build.
pub(crate) fn errors(output: &str) -> Vec<CompileError<'_>> {
    let errors = output.split("\n\n").filter_map(|block| {
        let is_error = |line: &&str| line.starts_with("error[") || line.starts_with("error: ");
        let mut lines = block.lines().skip_while(|line| !is_error(line));
        let (message, mut file) = (lines.next()?, "");
        let place = |line| {
            let (at, number) = place(line)?;
            file = at.unwrap_or(file);
            Some((file, number))
        };
        Some(CompileError { message, places: lines.filter_map(place).collect() })
    });
    errors.filter(|error| !error.places.is_empty()).collect()
}

/// Reads `  --> file:line:column`, `  ::: file:line:column`, and `line |` with a line of that file.
fn place(line: &str) -> Option<(Option<&str>, usize)> {
    let line = line.trim_start();
    if let Some(place) = line.strip_prefix("--> ").or_else(|| line.strip_prefix("::: ")) {
        let (rest, _column) = place.rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        return Some((Some(file), line.parse().ok()?));
    }
    let (number, _) = line.split_once(" |")?;
    Some((None, number.trim_end().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{CompileError, errors};

    const OUTPUT: &str = "\
   Compiling lockattr v0.1.0 (/tree/lockattr)
warning: unused variable: `a`
 --> lockattr/src/a.rs:1:9

error[E0308]: mismatched types
   --> lockattr/src/b.rs:20:5
    |
 20 |     1
    |     ^ expected `()`, found integer
100 | |   2
note: function defined here
   ::: lockattr/src/c.rs:3:4

error: aborting due to 1 previous error; 1 warning emitted

error: could not compile `lockattr` (lib) due to 1 previous error
";

    #[test]
    fn each_error_has_its_places() {
        let b = "lockattr/src/b.rs";
        let places = vec![(b, 20), (b, 20), (b, 100), ("lockattr/src/c.rs", 3)];
        let message = "error[E0308]: mismatched types";
        assert_eq!(errors(OUTPUT), [CompileError { message, places }]);
    }
}
