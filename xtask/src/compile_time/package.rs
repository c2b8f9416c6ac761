//! The generated program, and how much of the processor cargo uses for it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::child;

pub(super) const FUNCTIONS: u32 = 300;

/// The ticks of `/proc` in a second, on every Linux.
const TICKS: f64 = 100.0;

/// As in a service: each function awaits something in a loop, returns errors with `?`, and builds a text.
const BODY: &str = r#"(id: u64, quantity: u32) -> Result<u64, Error> {
    let mut left = stock(id).await?;
    let mut lines = Vec::new();
    for number in 0..quantity {
        if left == 0 {
            left = stock(id).await?;
        }
        left -= 1;
        lines.push(format!("{number} of {id}"));
    }
    println!("{}", lines.join(", "));
    Ok(left)
}

"#;

/// A crate of its own beside the workspace's other outputs.
pub(super) struct Package {
    folder: PathBuf,
}

impl Package {
    pub(super) fn create() -> Result<Self, String> {
        let folder = child::root().join("target/compile-time");
        let manifest = format!(
            "[package]\nname = \"compile-time\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [dependencies]\nlockattr = {{ path = {:?} }}\ntokio = {{ version = \"1\", features = [\"rt\"] }}\n\n\
             [workspace]\n",
            child::root().join("lockattr")
        );
        write(&folder.join("src/main.rs"), "fn main() {}")?;
        write(&folder.join("Cargo.toml"), &manifest)?;
        // The same versions as everywhere here.
        let lock = fs::read_to_string(child::root().join("Cargo.lock"));
        write(&folder.join("Cargo.lock"), &lock.map_err(|error| format!("Cargo.lock: {error}"))?)?;
        Ok(Self { folder })
    }

    /// The CPU-seconds that cargo and its compilers take after an edit of the program.
    pub(super) fn spent(&self, words: &[&str], annotated: bool) -> Result<f64, String> {
        write(&self.folder.join("src/main.rs"), &source(annotated))?;
        let manifest = self.folder.join("Cargo.toml");
        let manifest = manifest.to_str().ok_or("the project's path is not UTF-8")?;
        let mut cargo = child::cargo(words);
        cargo.args(["--quiet", "--offline", "--manifest-path", manifest]);
        // Else cargo would reuse what it knows of the other source.
        cargo.env("CARGO_INCREMENTAL", "0").env("CARGO_TARGET_DIR", self.folder.join("target"));
        let before = children()?;
        let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
        let spent = children()? - before;
        if status.success() { Ok(spent) } else { Err("the generated crate has errors".to_owned()) }
    }
}

/// The CPU-seconds of all child processes that have ended, and of theirs.
fn children() -> Result<f64, String> {
    let stat = fs::read_to_string("/proc/self/stat")
        .map_err(|error| format!("/proc/self/stat, which only Linux has: {error}"))?;
    // The name of the program comes second, in brackets, and may contain spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: Vec<f64> = fields.skip(13).take(2).filter_map(|it| it.parse().ok()).collect();
    Ok(ticks.iter().sum::<f64>() / TICKS)
}

/// Each function is boxed, so that the compiler generates it, with little beside it.
fn source(annotated: bool) -> String {
    let mut source = String::from(
        "use std::pin::Pin;\n\nuse lockattr::Error;\n\n\
         async fn stock(id: u64) -> Result<u64, Error> {\n    \
             tokio::task::yield_now().await;\n    Ok(id)\n}\n\n",
    );
    let mut boxed = String::new();
    for number in 0..FUNCTIONS {
        if annotated {
            source += "#[lockattr::distributed_lock(key = \"product:<id>\", ttl = \"10s\", retry = 10)]\n";
        }
        source += &format!("async fn deduct_{number}{BODY}");
        boxed += &format!("        Box::pin(deduct_{number}(id, 1)),\n");
    }
    source += &format!(
        "type Boxed = Pin<Box<dyn Future<Output = Result<u64, Error>> + Send>>;\n\n\
         fn main() {{\n    let id = std::env::args().count() as u64;\n    \
             let all: Vec<Boxed> = vec![\n{boxed}    ];\n    println!(\"{{}}\", all.len());\n}}\n"
    );
    source
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}
