//! The part of the compiler's messages that is compared.

/// Returns the messages without what depends on other files than the one that is compiled, and without
/// the last lines, which count the messages.
pub(crate) fn compared(stderr: &str) -> String {
    let messages = stderr.split("\nerror: aborting due to ").next().unwrap_or_default();
    // The compiler names `String` in full if a library has another one.
    let messages = messages.replace("std::string::String", "String");
    let messages = messages.replace("--> tests/ui/", "--> ");
    let messages = messages.trim_end().split("\n\n").map(without_lines_of_lockattr);
    messages.collect::<Vec<_>>().join("\n\n") + "\n"
}

/// Removes the numbers of the lines that a message quotes from lockattr's sources, and the space that
/// they need beside the other lines.
fn without_lines_of_lockattr(message: &str) -> String {
    let mut in_lockattr = false;
    let mut lines = Vec::new();
    for line in message.lines() {
        let mut line = line.to_owned();
        if let Some((margin, path)) = line.split_once("--> ") {
            in_lockattr = path.starts_with("lockattr/");
            if in_lockattr {
                let file = path.split(':').next().unwrap_or(path);
                line = format!("{margin}--> $WORKSPACE/{file}");
            }
        } else if in_lockattr {
            let number = number(&line);
            line.replace_range(..number, &" ".repeat(number));
        }
        lines.push(line);
    }
    // The second line has the place, behind as many spaces as the longest number has digits.
    let margin = lines.get(1).and_then(|line| line.find("--> ")).unwrap_or(0);
    let longest = lines.iter().map(|line| number(line)).max().unwrap_or(0);
    for line in &mut lines {
        remove_spaces(line, margin.saturating_sub(longest.max(1)));
    }
    lines.join("\n")
}

/// Returns the length of the line number that a quoted line begins with.
fn number(line: &str) -> usize {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if line[digits..].trim_start().starts_with(['|', '+', '-', '~']) { digits } else { 0 }
}

/// Removes that many spaces after the line number, where there are any.
fn remove_spaces(line: &mut String, spaces: usize) {
    let number = number(line);
    if line[number..].starts_with(&" ".repeat(spaces)) {
        line.replace_range(number..number + spaces, "");
    }
}
