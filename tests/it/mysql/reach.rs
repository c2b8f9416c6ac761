//! The settings of a `mysql://` URL, and what errors report about the server.

use lockattr::{Error, LockManager, LockOptions};

use super::Database;
use crate::support::assert_refused;

#[test]
fn an_invalid_url_is_refused_with_a_message() {
    assert_refused(&[
        ("mysql://db.example", "names the database"),
        ("mysql://db.example/", "names the database"),
        ("mysql://a,b/db", "one host"),
        ("mysql://db.example/db?replicas=1", "unknown option `replicas`"),
        ("mysql://db.example/db?lock=row", "`lease`"),
        ("mysql://db.example/db?heartbeat=0s", "must not be zero"),
        ("mysql://u%FF@db.example/db", "not UTF-8"),
    ]);
}

#[tokio::test]
async fn login_errors_name_the_cause_and_no_password() {
    let database = Database::new().await;
    for (url, says) in [
        (database.url("").replace("s3cret", "hushhush"), "Access denied"),
        (database.server.url_of("nowhere"), "Unknown database 'nowhere'"),
        ("mysql://locker:s3cret@127.0.0.1:1/x".into(), "127.0.0.1:1"),
    ] {
        let error = LockManager::connect(&url).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(matches!(error, Error::Store { .. }) && text.contains(says), "{text}");
        assert!(text.contains("127.0.0.1"), "{text}");
        assert!(!text.contains("hushhush") && !text.contains("s3cret"), "{text}");
    }
}

/// A login with every character that a URL must escape.
#[tokio::test]
async fn a_password_is_escaped_as_in_any_url() {
    let database = Database::new().await;
    let name = &database.name;
    database.execute(&format!("CREATE USER `odd@{name}` IDENTIFIED BY 'p@s/s:w?ö#d'")).await;
    database.execute(&format!("GRANT ALL ON {name}.* TO `odd@{name}`")).await;
    let login = format!("odd%40{name}:p%40s%2Fs%3Aw%3F%C3%B6%23d@");
    let url = database.url("").replace("locker:s3cret@", &login);
    let manager = LockManager::connect(url).await.unwrap();
    manager.acquire("a", LockOptions::new()).await.unwrap().release().await.unwrap();
    database.holds_nothing().await;
}
