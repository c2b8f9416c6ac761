//! One process of a distributed program, for the tests: `node VERB name=value …`, orders on stdin,
//! answers on stdout, ends with stdin.

mod arguments;
mod counterexample;
mod echo;
mod fork;
mod job;
mod lead;
mod leave;
mod lock;
mod plain;
mod server;
mod share;
mod work;

use std::process::ExitCode;

use arguments::Arguments;

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => return refuse(&message),
    };
    match arguments.verb() {
        // It must run without the threads of a runtime.
        "fork" => ended(fork::run(&arguments)),
        // It chooses how many.
        "lead" => ended(lead::run(&arguments)),
        _ => in_a_runtime(&arguments),
    }
}

#[tokio::main]
async fn in_a_runtime(arguments: &Arguments) -> ExitCode {
    ended(match arguments.verb() {
        "echo" => echo::run(arguments).await,
        "counterexample" => counterexample::run(arguments).await,
        "job" => job::run(arguments).await,
        "leave" => leave::run(arguments).await,
        "lock" => lock::run(arguments).await,
        "plain" => plain::run(arguments).await,
        "server" => server::run().await,
        "share" => share::run(arguments).await,
        "work" => work::run(arguments).await,
        verb => {
            let verbs = "echo, counterexample, fork, job, lead, leave, lock, plain, server, share, \
                         work";
            return refuse(&format!("no verb `{verb}`; there are: {verbs}"));
        }
    })
}

fn ended(done: Result<(), Box<dyn std::error::Error>>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn refuse(message: &dyn std::fmt::Display) -> ExitCode {
    complain(message);
    ExitCode::from(2)
}

#[expect(clippy::print_stderr, reason = "stderr of a node shows among the test's own output")]
fn complain(message: &dyn std::fmt::Display) {
    eprintln!("node {}: {message}", std::process::id());
}
