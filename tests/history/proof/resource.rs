//! The counter that a lock guards.

use lockattr_history::{Damage, Resource};

#[test]
fn consecutive_writes_do_no_damage() {
    let mut resource = Resource::default();
    for token in [5, 7, 7, 9] {
        resource.write(resource.read() + 1, token);
    }
    assert_eq!((resource.read(), resource.writes(), resource.newest()), (4, 4, 9));
    assert_eq!(resource.damage(), []);
}

#[test]
fn a_write_over_another_names_both_tokens_once() {
    let mut resource = Resource::default();
    let late = resource.read() + 1;
    resource.write(resource.read() + 1, 7);
    resource.write(late, 8);
    resource.write(resource.read() + 1, 9);
    let lost = Damage::LostUpdate { count: 1, writes: 2, by: 8, over: 7 };
    assert_eq!(
        lost.to_string(),
        "an update is lost: write 2, by token 8, wrote 1 over the write of token 7"
    );
    assert_eq!(resource.damage(), [lost]);
}

#[test]
fn a_smaller_token_is_reported_whether_it_reads_or_writes() {
    let mut resource = Resource::default();
    resource.write(1, 7);
    resource.visit(5);
    resource.write(2, 6);
    let stale = |token| Damage::StaleToken { token, after: 7 };
    assert_eq!(resource.damage(), [stale(5), stale(6)]);
    assert_eq!(stale(5).to_string(), "token 5 came after 7: a smaller token");
}
