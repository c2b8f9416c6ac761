//! `cargo xtask compile-time`: how long the compiler takes for annotated functions, beside the same
//! functions without the attribute.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::child;

const FUNCTIONS: u32 = 200;

/// Plain and annotated in turn, because the machine's speed changes.
const ROUNDS: usize = 7;

pub(crate) fn run() -> Result<(), String> {
    let package = Package::create()?;
    let mut taken = [Vec::new(), Vec::new()];
    // The dependencies, once.
    package.check(false)?;
    package.check(true)?;
    for _ in 0..ROUNDS {
        for annotated in [false, true] {
            taken[usize::from(annotated)].push(package.check(annotated)?);
        }
    }
    let [plain, annotated] = taken.map(median);
    let each = annotated.saturating_sub(plain) / FUNCTIONS;
    println!("`cargo check` of {FUNCTIONS} async functions, the median of {ROUNDS} rounds:");
    println!("plain       {plain:.2?}");
    println!("annotated   {annotated:.2?}, {:.1} times as long", annotated.div_duration_f64(plain));
    println!("the attribute adds {each:.2?} for each function");
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A crate of its own beside the workspace's other outputs.
struct Package {
    folder: PathBuf,
}

impl Package {
    fn create() -> Result<Self, String> {
        let folder = child::root().join("target/compile-time");
        let manifest = format!(
            "[package]\nname = \"compile-time\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [dependencies]\nlockattr = {{ path = {:?} }}\n\n[workspace]\n",
            child::root().join("lockattr")
        );
        write(&folder.join("src/lib.rs"), "")?;
        write(&folder.join("Cargo.toml"), &manifest)?;
        // The same versions as everywhere here.
        let lock = fs::read_to_string(child::root().join("Cargo.lock"));
        write(&folder.join("Cargo.lock"), &lock.map_err(|error| format!("Cargo.lock: {error}"))?)?;
        Ok(Self { folder })
    }

    /// Returns how long cargo takes to check the crate after an edit.
    fn check(&self, annotated: bool) -> Result<Duration, String> {
        write(&self.folder.join("src/lib.rs"), &source(annotated))?;
        let manifest = self.folder.join("Cargo.toml");
        let manifest = manifest.to_str().ok_or("the project's path is not UTF-8")?;
        let mut cargo =
            child::cargo(&["check", "--quiet", "--offline", "--manifest-path", manifest]);
        // Else cargo would reuse what it knows of the other source.
        cargo.env("CARGO_INCREMENTAL", "0").env("CARGO_TARGET_DIR", self.folder.join("target"));
        #[allow(clippy::disallowed_methods, reason = "no runtime here")]
        let begun = Instant::now();
        let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
        let taken = begun.elapsed();
        if status.success() { Ok(taken) } else { Err("the generated crate has errors".to_owned()) }
    }
}

fn source(annotated: bool) -> String {
    let mut source = String::from("use lockattr::Error;\n");
    if annotated {
        source += "use lockattr::distributed_lock;\n";
    }
    for number in 0..FUNCTIONS {
        if annotated {
            source += "#[distributed_lock(key = \"product:<id>\", ttl = \"10s\", retry = 10)]\n";
        }
        source += &format!(
            "pub async fn deduct_{number}(id: u64, quantity: u32) -> Result<u64, Error> {{\n    \
             println!(\"{{quantity}} of {{id}}\");\n    Ok(id + {number})\n}}\n"
        );
    }
    source
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}
