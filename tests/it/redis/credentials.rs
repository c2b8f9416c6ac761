//! Passwords and users that rotate while locks are acquired, and a provider that names the new ones.

mod heartbeat;
mod provider;
mod rotation;
mod secrets;

use lockattr::store::Credentials;
use lockattr::{LockManager, LockOptions};
use lockattr_tests::{Cli, Load, Release, Rotating};

/// A secret store with this login.
pub(crate) fn rotating(user: &str, password: &str) -> Rotating {
    Rotating::new(Credentials::new(user, password))
}

/// Tasks that acquire a lock of one task each, and one of all of them.
pub(crate) fn load(manager: &LockManager, tasks: usize) -> Load {
    let mut load = Load::new(LockOptions::new(), Release::InBackground);
    for task in 0..tasks {
        load.add(manager, [format!("key-{task}"), "all".into()]);
    }
    load
}

/// Gives the user this password and no other.
pub(crate) async fn set_password(cli: &Cli, user: &str, password: &str) {
    let password = format!(">{password}");
    let () = cli.query(&["ACL", "SETUSER", user, "resetpass", &password]).await;
}

/// Ends all connections of the user, as services do when a token is too old.
pub(crate) async fn cut(cli: &Cli, user: &str) -> usize {
    cli.query(&["CLIENT", "KILL", "USER", user]).await
}
