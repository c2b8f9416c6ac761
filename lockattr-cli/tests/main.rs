//! The command as its users run it: real servers, real processes, a real terminal.

mod bench;
mod fence;
mod foreign;
mod left_out;
mod operators;
mod recordings;
mod run;
mod run_gives_up;
mod run_lost;
mod run_signals;
mod run_strays;
mod run_terminal;
mod support;
mod svg;
mod terminal;
mod watch;
