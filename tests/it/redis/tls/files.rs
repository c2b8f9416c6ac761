//! Unusable TLS files, and contradictory settings: reported when the manager is built, by setting
//! and path, never by content.

use std::path::{Path, PathBuf};

use lockattr::{Error, LockManager};
use lockattr_tests::RedisServer;
use tempfile::TempDir;

use super::{secrets, url};
use crate::support::assert_refused;

/// Red without: the checks of `pem::authorities` and `pem::ourselves`.
#[tokio::test]
async fn a_file_that_cannot_be_used_is_named_and_not_quoted() {
    let server = RedisServer::builder().tls_clients().start().await;
    let other = RedisServer::builder().tls_clients().start().await;
    let directory = TempDir::new().unwrap();
    let (ca, cert, key) = (server.ca_path(), server.client_cert_path(), server.client_key_path());
    let pem = std::fs::read_to_string(&key).unwrap();
    let broken = |name: &str, content: &str| -> PathBuf {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    };
    let missing = directory.path().join("missing.pem");
    let empty = broken("empty.pem", "");
    let cut = broken("cut.pem", &pem[..pem.len() / 2]);
    let mixed = broken("mixed.pem", &pem.replace("-----\n", "----\n"));
    let no_der = "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n";
    let no_der = broken("no-der.pem", no_der);
    let locked = pem.replace("PRIVATE", "ENCRYPTED PRIVATE");
    let locked = broken("locked.pem", &locked);
    let key_of_other = other.client_key_path();
    let directory = directory.path();
    let cases: [(&str, [&Path; 3], &Path, &str); 15] = [
        ("ca", [&missing, &cert, &key], &missing, "cannot be read"),
        ("ca", [directory, &cert, &key], directory, "cannot be read"),
        ("ca", [&empty, &cert, &key], &empty, "no certificate"),
        ("ca", [&key, &cert, &key], &key, "no certificate"),
        ("ca", [&cut, &cert, &key], &cut, "no certificate"),
        ("ca", [&no_der, &cert, &key], &no_der, "cannot be read"),
        ("client_cert", [&ca, &missing, &key], &missing, "cannot be read"),
        ("client_cert", [&ca, &key, &key], &key, "no certificate"),
        ("client_cert", [&ca, &mixed, &key], &mixed, "no certificate"),
        ("client_key", [&ca, &cert, &missing], &missing, "cannot be read"),
        ("client_key", [&ca, &cert, &cert], &cert, "no private key"),
        ("client_key", [&ca, &cert, &cut], &cut, "no private key"),
        ("client_key", [&ca, &cert, &locked], &locked, "passphrase"),
        (
            "client_key",
            [&ca, &cert, &key_of_other],
            &key_of_other,
            "not the key to the certificate",
        ),
        ("client_key", [&ca, &no_der, &key], &key, "not the key to the certificate"),
    ];
    let secrets = [secrets(&key), secrets(&key_of_other)].concat();
    for (name, [ca, cert, key], path, expected) in cases {
        let named = LockManager::builder().url(url(&server, ca, cert, key)).build();
        let builder = LockManager::builder().url(server.tls_url());
        let built = builder.ca(ca).client_cert(cert).client_key(key).build();
        for error in [named.unwrap_err(), built.unwrap_err()] {
            assert!(matches!(error, Error::InvalidOptions(_)), "{error:?}");
            let text = format!("{error} {error:?}");
            let named = format!("`{name}={}`", path.display());
            assert!(text.contains(&named) && text.contains(expected), "{named}: {text}");
            let secret = secrets.iter().find(|&secret| text.contains(secret));
            assert_eq!(secret, None, "{text}");
        }
    }
}

#[test]
fn invalid_tls_settings_are_refused_with_a_message() {
    assert_refused(&[
        ("redis://h/?ca=/a.pem", "`ca` is for a store whose URL asks for TLS"),
        (
            "redis://h/?client_cert=/a.pem&client_key=/a.key",
            "`client_cert` is for a store whose URL asks for TLS",
        ),
        ("redis+unix:///s?ca=/a.pem", "`ca` is for a store whose URL asks for TLS"),
        ("memory://?ca=/a.pem", "sets an unknown option `ca`"),
        ("rediss://h/?client_cert=/a.pem", "`client_cert` needs `client_key` too"),
        ("rediss://h/?client_key=/a.key", "`client_key` needs `client_cert` too"),
        ("rediss://h/?ca=/a.pem&ca=/b.pem", "sets an option twice"),
        ("rediss://h/?ca=", "`ca=` cannot be read"),
    ]);
    let builder = LockManager::builder().url("redis://h/").ca("/a.pem");
    let error = builder.build().unwrap_err();
    assert!(error.to_string().contains("asks for TLS"), "{error}");
}
