//! The command as its users have it: real servers, real processes, a real terminal.

mod bench;
mod operators;
mod recordings;
mod run;
mod run_lost;
mod run_signals;
mod support;
mod svg;
mod terminal;
mod watch;
