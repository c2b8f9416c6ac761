//! Settings for TLS that contradict each other, and files that cannot be used.

use lockattr::store::{PostgresSessionStore, PostgresStore};

use super::*;

fn invalid(query: &str) -> String {
    let url = format!("postgres://me:s3cret@db.example/shop?{query}");
    let (one, other) = (PostgresStore::open(&url).err(), PostgresSessionStore::open(&url).err());
    let (Some(one), Some(other)) = (one, other) else { panic!("{query} is accepted") };
    assert!(matches!(one, Error::InvalidOptions(_)), "{one:?}");
    assert_eq!(one.to_string(), other.to_string());
    one.to_string()
}

#[test]
fn contradictions_are_refused() {
    for (query, expected) in [
        ("sslmode=allow", "`sslmode` must be"),
        ("sslmode=disable&ca=/ca.pem", "`ca` is for TLS"),
        ("sslmode=disable&sslcert=/c.pem&sslkey=/k.pem", "`client_cert` is for TLS"),
        ("sslcert=/c.pem", "`client_cert` needs `client_key`"),
        ("ca=/a.pem&sslrootcert=/b.pem", "`sslrootcert` twice"),
        ("sslkey=/a.pem&key=/b.pem&sslcert=/c.pem", "`sslkey` twice"),
        ("sslrootcert=system&sslmode=require", "`sslmode=verify-full`"),
        ("sslmode=verify-ca", "any public authority"),
        ("sslnegotiation=direct", "`sslnegotiation=direct`"),
        ("sslnegotiation=direct&sslmode=prefer", "`sslnegotiation=direct`"),
    ] {
        let sentence = invalid(query);
        assert!(sentence.contains(expected), "{query}: {sentence}");
        assert!(!sentence.contains("s3cret"), "{sentence}");
    }
}

#[tokio::test]
async fn files_that_cannot_be_used_are_refused_by_their_names() {
    let (server, other) = (PostgresServer::with_tls().await, PostgresServer::with_tls().await);
    let (cert, key) = server.client_paths();
    let (_, key_of_other) = other.client_paths();
    let (cert, key) = (cert.display(), key.display());
    for (query, expected) in [
        ("sslrootcert=/nowhere.pem".to_owned(), "`ca=/nowhere.pem` cannot be read"),
        (format!("sslmode=verify-ca&sslrootcert={key}"), "has no certificate in PEM"),
        (format!("sslcert={key}&sslkey={key}"), "has no certificate in PEM"),
        (format!("sslcert={cert}&sslkey={cert}"), "has no private key in PEM"),
        (
            format!("sslcert={cert}&sslkey={}", key_of_other.display()),
            "is not the key to the certificate",
        ),
    ] {
        let sentence = invalid(&query);
        assert!(sentence.contains(expected), "{query}: {sentence}");
    }
}

/// The client would connect to the address, and in plaintext, as to a socket.
///
/// Red without: the check of `get_hostaddrs` in `tls::mode`.
#[test]
fn a_socket_with_an_address_in_the_network_is_refused() {
    let url = "postgres:///shop?host=/run/postgresql&hostaddr=10.0.0.5&sslmode=verify-full";
    let sentence = PostgresStore::open(url).unwrap_err().to_string();
    assert!(sentence.contains("`hostaddr` is an address in the network"), "{sentence}");
}

/// As libpq: a server has no TLS on a socket, and a program's URL may name either.
#[test]
fn a_unix_socket_needs_no_tls() {
    for query in ["sslmode=verify-full", "sslmode=require", ""] {
        PostgresStore::open(&format!("postgres:///shop?host=/run/postgresql&{query}")).unwrap();
    }
}
