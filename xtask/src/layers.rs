//! Checks the layers of `lockattr/src`: a file may only import from its own layer or a lower one.
//!
//! The sources are read as text: the paths after `crate::`, in `use` and elsewhere. Tests are
//! skipped, because they may use any layer.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::child;

/// The layers, from top to bottom.
const LAYERS: [&str; 12] = [
    "expansion",
    "testing",
    "manager",
    "hold",
    "watchdog",
    "observe",
    "lease",
    "engines",
    "store",
    "queue",
    "lock",
    "platform",
];

/// The files outside of all layers. `lib.rs` lists the public items; `sim.rs` exports items for the
/// simulation.
const ROOT_FILES: [&str; 2] = ["lib.rs", "sim.rs"];

/// The names that a `pub use` defines, each with the segments of its path.
type Names = BTreeMap<String, Vec<String>>;

fn depth_of(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|each| *each == layer)
}

/// Returns a file's code without its comments and without the tests at its end.
fn code(text: &str) -> String {
    let end = text.find("\nmod tests {").unwrap_or(text.len());
    let lines = text[..end].lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Splits `a::{b, c::{d as e}}` into `a::b` and `a::c::d`, each with the name that it defines.
fn leaves(tree: &str) -> Vec<(Vec<String>, String)> {
    fn walk(prefix: &[String], tree: &str, found: &mut Vec<(Vec<String>, String)>) {
        let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
        for (at, letter) in tree.char_indices() {
            match letter {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    parts.push(&tree[start..at]);
                    start = at + 1;
                }
                _ => {}
            }
        }
        parts.push(&tree[start..]);
        for part in parts.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
            let (head, inner) = part.split_once('{').unwrap_or((part, ""));
            let (path, alias) = head.split_once(" as ").unwrap_or((head, ""));
            let segments = path.split("::").map(str::trim).filter(|segment| !segment.is_empty());
            let path: Vec<_> = prefix.iter().cloned().chain(segments.map(str::to_owned)).collect();
            if part.contains('{') {
                walk(&path, inner.trim_end().strip_suffix('}').unwrap_or(inner), found);
            } else {
                let last = path.last().cloned().unwrap_or_default();
                let name = if alias.is_empty() { last } else { alias.trim().to_owned() };
                found.push((path, name));
            }
        }
    }
    let mut found = Vec::new();
    walk(&[], tree, &mut found);
    found
}

/// Returns the paths after `crate::` in a file's code, in imports and elsewhere.
fn crate_paths(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let before = &code[..at];
        // Macros use `$crate::` for other crates.
        if before.ends_with('$') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        if before.trim_end().ends_with("use") {
            let tree = rest.split(';').next().unwrap_or_default();
            paths.extend(leaves(tree).into_iter().map(|(path, _)| path));
        } else {
            let is_path = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | ':');
            let end = rest.find(|letter| !is_path(letter)).unwrap_or(rest.len());
            let segments = rest[..end].split("::").filter(|segment| !segment.is_empty());
            paths.push(segments.map(str::to_owned).collect());
        }
    }
    paths
}

/// Returns the names that a file's `pub use` defines for paths that begin with `prefix`.
fn public_names(code: &str, prefix: &str) -> Names {
    let uses = code.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let paths = uses.filter_map(|tree| tree.strip_prefix(prefix)).flat_map(leaves);
    paths.map(|(path, name)| (name, path)).collect()
}

/// Returns the layer of a path after `crate::`.
fn layer_of(path: &[String], root: &Names, store: &Names) -> Option<String> {
    let (first, second) = (path.first()?, path.get(1));
    if first == "store"
        && let Some(path) = second.and_then(|name| store.get(name))
    {
        return path.first().cloned();
    }
    match first.as_str() {
        "__private" => Some("expansion".to_owned()),
        layer if depth_of(layer).is_some() => Some(layer.to_owned()),
        name => root.get(name).and_then(|path| layer_of(path, root, store)),
    }
}

/// Returns the imports of one file that point to a higher layer.
fn upward_imports(file: &str, text: &str, root: &Names, store: &Names) -> Vec<String> {
    let Some((layer, _)) = file.split_once('/') else { return Vec::new() };
    let Some(from) = depth_of(layer) else {
        return vec![format!("{file}: `{layer}` is not a layer")];
    };
    let code = code(text);
    let mut found = Vec::new();
    if file == format!("{layer}/mod.rs") && code.contains("super::") {
        found.push(format!("{file}: `super` leaves the layer"));
    }
    for path in crate_paths(&code) {
        let Some(to) = layer_of(&path, root, store) else { continue };
        // `store/mod.rs` re-exports the engines as `lockattr::store::…`.
        let is_reexport = file == "store/mod.rs" && to == "engines";
        if depth_of(&to).is_some_and(|to| to < from) && !is_reexport {
            found.push(format!("{file}: {layer} -> {to} (crate::{})", path.join("::")));
        }
    }
    found
}

/// Collects the sources below a folder, with their relative paths.
fn sources(folder: &Path, prefix: &str, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("the sources").flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            sources(&entry.path(), &format!("{name}/"), found);
        } else if name.ends_with(".rs") {
            found.push((name, fs::read_to_string(entry.path()).expect("a source")));
        }
    }
}

/// Returns the sources of the runtime crate.
fn runtime_sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    sources(&child::root().join("lockattr/src"), "", &mut files);
    files
}

/// Returns the public names of one file of the runtime crate.
fn public_names_of(files: &[(String, String)], file: &str, prefix: &str) -> Names {
    let text = files.iter().find(|(name, _)| name == file).map(|(_, text)| code(text));
    public_names(&text.expect(file), prefix)
}

/// Red without: any import that was changed so that it points downwards.
#[test]
fn an_import_only_points_to_a_lower_layer() {
    let files = runtime_sources();
    let root = public_names_of(&files, "lib.rs", "");
    let store = public_names_of(&files, "store/mod.rs", "crate::");
    let is_test = |file: &str| file.ends_with("tests.rs") || file.contains("/tests/");
    let sources = files.iter().filter(|(file, _)| !is_test(file));
    let found: Vec<_> =
        sources.flat_map(|(file, text)| upward_imports(file, text, &root, &store)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Red without: any of the top-level files that moved into a layer.
#[test]
fn every_file_is_in_a_layer() {
    let files = runtime_sources();
    let top_level: Vec<_> = files.iter().filter(|(file, _)| !file.contains('/')).collect();
    for (file, _) in top_level {
        assert!(ROOT_FILES.contains(&file.as_str()), "{file} is in no layer");
    }
}

/// Red without: the checks of inline paths, of re-exports of the root and of `store`, and of
/// `super`.
#[test]
fn an_import_from_a_higher_layer_is_found() {
    let root = public_names("pub use manager::{LockManager, Other as Named};", "");
    let store = public_names("pub use crate::engines::redis::RedisStore;", "crate::");
    let check = |file: &str, text: &str, expected: usize| {
        let found = upward_imports(file, text, &root, &store);
        assert_eq!(found.len(), expected, "{file}: {text}\n{found:?}");
    };
    check("store/claim.rs", "use crate::lock::key::LockKey;", 0);
    check("store/claim.rs", "use crate::{lock::key::LockKey, hold::{chain, guard::LockGuard}};", 2);
    check("hold/guard.rs", "fn f() { crate::manager::open::open() }", 1);
    check("hold/guard.rs", "use crate::LockManager;", 1);
    check("hold/guard.rs", "use crate::Named;", 1);
    check("hold/guard.rs", "// crate::LockManager", 0);
    check("hold/guard.rs", "$crate::LockManager", 0);
    check("hold/guard.rs", "f();\n#[cfg(test)]\nmod tests { use crate::LockManager; }", 0);
    check("queue/mod.rs", "use crate::store::RedisStore;", 1);
    check("queue/mod.rs", "use super::lock::key;", 1);
    check("attic/mod.rs", "", 1);
    check("lib.rs", "pub use crate::manager::LockManager;", 0);
}
