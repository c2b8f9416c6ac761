//! Locks that belong to connections. A fault that ends a connection releases its locks before the
//! holder knows, so here connections live as long as their processes.

use lockattr_tests::{Engine, MariaDb, PostgresServer};

use super::{Topology, engines};
use crate::nemesis::{Attack, Harm, Trouble};

const TROUBLES: &[Trouble] = &[
    Trouble::Killed,
    Trouble::Stopped,
    Trouble::NetworkSilent,
    Trouble::RepliesHeld,
    Trouble::NetworkSlow,
];

/// PostgreSQL's advisory locks.
pub(crate) struct Advisory(PostgresServer);

/// MySQL's `GET_LOCK`.
pub(crate) struct GetLock(MariaDb);

macro_rules! sessions_of {
    ($sessions:ident: $engine:ty, $modes:literal) => {
        impl Engine for $sessions {
            const OUTLIVES_ITS_CONNECTION: bool = false;

            async fn start() -> Self {
                Self(<$engine as Engine>::start().await)
            }

            fn addrs(&self) -> Vec<String> {
                self.0.addrs()
            }

            fn url_at(&self, addrs: &[String]) -> String {
                lockattr_tests::with_query(&self.0.url_at(addrs), "lock=session")
            }

            async fn restart(&self) {
                self.0.restart().await;
            }

            fn freeze(&self) {
                self.0.freeze();
            }

            fn thaw(&self) {
                self.0.thaw();
            }

            async fn left(&self) -> Vec<String> {
                self.0.left().await
            }
        }

        impl Topology for $sessions {
            const HARMS: &'static [Harm] = &[Harm::Frozen];
            const TROUBLES: &'static [Trouble] = TROUBLES;
            const ALL_MODES: bool = $modes;
            const ENTRIES_END: bool = false;

            async fn suffer(&self, attack: Attack<Harm>) {
                engines::suffer(&self.0, attack).await;
            }
        }
    };
}

sessions_of!(Advisory: PostgresServer, false);
sessions_of!(GetLock: MariaDb, false);
