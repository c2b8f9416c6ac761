//! Settings of the database, which those of its sessions replace.

use super::*;
use crate::every_way::lock_in_every_way;

/// Refuse every write, read the functions' literals in another way, or could change what a statement
/// means. `postgres_session/server_timeouts.rs` has the limits.
const BREAKING: [&str; 12] = [
    "default_transaction_read_only = on",
    "default_transaction_deferrable = on",
    "default_transaction_isolation = serializable",
    "standard_conforming_strings = off",
    "bytea_output = escape",
    "datestyle = 'SQL, DMY'",
    "intervalstyle = sql_standard",
    "timezone = 'Asia/Kolkata'",
    "row_security = off",
    "transform_null_equals = on",
    "array_nulls = off",
    "extra_float_digits = -15",
];

/// Red without: `default_transaction_read_only` or `standard_conforming_strings` in `replaced`.
#[tokio::test]
async fn no_setting_of_the_database_changes_how_it_is_locked() {
    let database = Database::new().await;
    // A client with these settings may neither create the tables nor change settings.
    drop(database.manager("").await);
    let client = database.server.client_of(&database.name).await;
    for setting in BREAKING {
        let set = format!("alter database {} set {setting}", database.name);
        client.batch_execute(&set).await.unwrap();
    }
    let queued = async || database.queued().await == 1;
    lock_in_every_way(&database.url, &database.url, queued).await;
}
