//! Signals all processes of one server: the main process has a child for each connection, and the
//! children continue when it is paused or killed.

use std::fs;
use std::thread::yield_now;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::process::Process;

/// Pauses all processes (SIGSTOP), and returns once all have stopped.
pub(super) fn stop_all(server: &Process) {
    // First the main process, which starts the others.
    server.stop();
    let children = children_of(server.id());
    for &child in &children {
        signal(child, Signal::SIGSTOP);
    }
    while children.iter().any(|&child| !is_stopped(child)) {
        yield_now();
    }
}

/// Resumes all processes (SIGCONT).
pub(super) fn resume_all(server: &Process) {
    for child in children_of(server.id()) {
        signal(child, Signal::SIGCONT);
    }
    server.resume();
}

/// Kills all processes (SIGKILL), and returns once all are gone.
pub(super) fn kill_all(server: &mut Process) {
    server.stop();
    let children = children_of(server.id());
    for &child in &children {
        signal(child, Signal::SIGKILL);
    }
    server.kill();
    // Zombies count as gone: possibly only the system's first process can reap them.
    while children.iter().any(|&child| state(child).is_some_and(|state| state != 'Z')) {
        yield_now();
    }
}

/// Pauses one child (SIGSTOP), and returns once it has stopped.
pub(super) fn stop_one(child: i32) {
    signal(child, Signal::SIGSTOP);
    while !is_stopped(child) {
        yield_now();
    }
}

/// Resumes one child (SIGCONT).
pub(super) fn resume_one(child: i32) {
    signal(child, Signal::SIGCONT);
}

fn signal(child: i32, signal: Signal) {
    // It may have ended meanwhile.
    let _gone = kill(Pid::from_raw(child), signal);
}

fn children_of(pid: u32) -> Vec<i32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("the server has a list of its children");
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn is_stopped(pid: i32) -> bool {
    state(pid).is_none_or(|state| matches!(state, 'T' | 'Z' | 'X'))
}

/// Returns the process state from `/proc`, or `None` if there is no such process.
fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}
