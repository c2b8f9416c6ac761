//! The settings of a URL.

use crate::support::assert_refused;

#[test]
fn invalid_urls_are_refused_with_a_message() {
    assert_refused(&[
        ("etcd://h1/?session_timeout=soon", "`session_timeout=soon`"),
        ("etcd://h1/?response_timeout=0s", "`response_timeout` must"),
        ("etcd://h1/?replicas=1", "`session_timeout`, `connect_timeout`"),
        ("etcd://h1/?tls=on", "`true` or `false`"),
        ("etcd://h1,h2/shop", "`prefix=` keeps applications apart"),
        ("etcd://app@h1/", "only half a login"),
        ("etcd://:s3cret@h1/", "only half a login"),
        ("etcd://app:s3cret%FF@h1/", "is not UTF-8"),
    ]);
}
