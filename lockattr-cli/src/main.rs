//! The command `lockattr`: lists, acquires and releases locks from a terminal.
#![allow(clippy::print_stderr, reason = "a program for the terminal")]

mod background;
mod bench;
mod columns;
mod exit;
mod failure;
mod fence;
mod ls;
mod output;
mod pattern;
mod release;
mod row;
mod run;
mod sort;
mod span;
mod store;
mod watch;
mod who;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;
use store::StoreUrl;

/// Names the store, so that no password is among the arguments.
const URL_VARIABLE: &str = "LOCKATTR_URL";

/// The text of `--help` below the options.
const EXAMPLES: &str = "\
Examples:
  export LOCKATTR_URL=redis://127.0.0.1/?prefix=shop:   any store, as the services name it
  lockattr ls                                           list the held locks and their holders
  lockattr who product:42                               show one lock
  lockattr watch 'order:*'                              a live view
  lockattr release product:42                           how to take a lock from its holder
  lockattr run nightly -- ./report.sh                   run a command on one machine only
  lockattr bench --seconds 5                            measure this store from here
  lockattr fence sql --engine postgres --table stock    let a table refuse late writes

`lockattr help COMMAND` explains a command and its exit codes.";

/// List, acquire and release distributed locks.
#[derive(Debug, Parser)]
#[command(name = "lockattr", version, max_term_width = 100, after_help = EXAMPLES)]
struct Arguments {
    /// The store, with the settings of its services in the URL, like `redis://127.0.0.1/?prefix=shop:`
    ///
    /// Any of memory://, redis://, rediss://, redis+unix://, redis+sentinel://, redis+cluster://,
    /// redlock://, postgres://, mysql://, zookeeper:// and etcd://. Other users of this machine can
    /// read the arguments of a program: set a URL with a password in the variable.
    #[arg(long, global = true, env = URL_VARIABLE, hide_env_values = true, value_name = "URL")]
    url: Option<StoreUrl>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Ls(ls::Ls),
    Who(who::Who),
    Watch(watch::Watch),
    Release(release::Release),
    Run(run::Run),
    Bench(bench::Bench),
    Fence(fence::Fence),
    /// Watches a `lockattr run`, and ends its command if it is killed.
    #[command(hide = true)]
    Leash(run::Leash),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Requested help is no error. If it cannot be printed, there is no way to report that.
            let code = if error.use_stderr() { exit::ERROR } else { exit::OK };
            error.print().ok();
            return ExitCode::from(code);
        }
    };
    let done = tokio::runtime::Runtime::new().map_err(Failure::from).and_then(|runtime| {
        let done = runtime.block_on(execute(arguments));
        // Does not wait for a thread that still reads from the terminal.
        runtime.shutdown_background();
        done
    });
    match done {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}

async fn execute(arguments: Arguments) -> Result<u8, Failure> {
    let url = arguments.url;
    match arguments.command {
        Command::Ls(ls) => ls.execute(&store::connect(url).await?).await,
        Command::Who(who) => who.execute(&store::connect(url).await?).await,
        Command::Watch(watch) => {
            let shown = url.as_ref().map(StoreUrl::shown).unwrap_or_default();
            watch.execute(&store::connect(url).await?, shown).await
        }
        Command::Release(release) => release.execute(&store::connect(url).await?).await,
        Command::Run(run) => run.execute(url).await,
        Command::Bench(bench) => bench.execute(&store::connect(url).await?).await,
        Command::Fence(fence) => fence.execute(url.as_ref()),
        Command::Leash(leash) => leash.execute().await,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Arguments;

    #[test]
    fn the_arguments_fit_together() {
        Arguments::command().debug_assert();
    }
}
