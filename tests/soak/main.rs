//! `cargo xtask soak`: random faults and random workloads, on every topology.
//!
//! The faults and the work of each process are functions of the seed, but their timing is not. A
//! seed that failed once may need several runs to fail again.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod calendar;
mod chance;
mod crowd;
mod forked;
mod nemesis;
mod outcome;
mod plan;
mod plot;
mod round;
mod soak;
mod topology;
mod verdict;
mod worker;
mod workers;

use std::process::ExitCode;

use plan::Plan;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help") {
        println!("{}", plan::usage());
        return ExitCode::SUCCESS;
    }
    if let Some((verb, rest)) = words.split_first()
        && verb == "fork"
    {
        return ended(forked::run(rest));
    }
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all();
    if words.first().is_some_and(|verb| verb == "worker") {
        calendar::is_wrong_here();
        builder.on_thread_start(calendar::is_wrong_here);
    }
    let runtime = builder.build().expect("a runtime");
    let done = match words.split_first() {
        Some((verb, rest)) if verb == "crowd" => runtime.block_on(crowd::run(rest)),
        Some((verb, rest)) if verb == "worker" => runtime.block_on(worker::run(rest)),
        _ => match Plan::parse(&words) {
            Ok(plan) => runtime.block_on(soak::run(&plan)),
            Err(message) => {
                eprintln!("soak: {message}\n\n{}", plan::usage());
                return ExitCode::from(2);
            }
        },
    };
    ended(done)
}

fn ended(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("soak: {message}");
            ExitCode::FAILURE
        }
    }
}
