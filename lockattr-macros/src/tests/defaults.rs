//! `defaults(…)`, and the defaults of an `impl` block for the functions inside.

use super::{check_complaints, complaints, expand};

/// The options in the expansion, without spaces.
fn expanded(args: &str, item: &str) -> String {
    let expanded = expand(args, item).to_string().replace(' ', "");
    assert!(!expanded.contains("compile_error"), "{expanded}");
    expanded
}

#[test]
fn a_default_holds_where_the_attribute_says_nothing_else() {
    let house = "defaults(ttl = \"30s\", retry = 3, manager = \"orders\")";
    let said = expanded(&format!("key = \"k\", {house}, ttl = \"5s\""), "async fn f() {}");
    assert!(said.contains(".ttl(::core::time::Duration::from_secs(5))"), "{said}");
    assert!(!said.contains("from_secs(30)"), "{said}");
    assert!(said.contains(".retry(3)") && said.contains(".manager_named(\"orders\")"), "{said}");
}

#[test]
fn the_key_may_be_a_default_and_either_key_overrules_both() {
    check_complaints("defaults(key = \"k\")", "async fn f() {}", &[]);
    let both = expanded("keys = [\"a\", \"b\"], defaults(key = \"k\")", "async fn f() {}");
    assert!(!both.contains("\"k\""), "{both}");
    let permits = expanded("key = \"k\", permits = 3, defaults(mode = shared)", "async fn f() {}");
    assert!(!permits.contains("Mode"), "{permits}");
}

#[test]
fn of_nested_defaults_the_outer_ones_hold() {
    let nested = "key = \"k\", defaults(retry = 1, defaults(retry = 2, ttl = \"2s\"))";
    let said = expanded(nested, "async fn f() {}");
    assert!(said.contains(".retry(1)") && !said.contains(".retry(2)"), "{said}");
    assert!(said.contains("from_secs(2)"), "{said}");
}

#[test]
fn mistakes_in_defaults_are_reported_also_where_they_are_overruled() {
    check_complaints(
        "key = \"k\", ttl = \"5s\", defaults(ttl = 30, retry = 1, retry = 2)",
        "async fn f() {}",
        &[
            "`ttl` is a duration with its unit: write `\"30s\"` or `\"30ms\"`",
            "`retry` is given twice: leave one of them out",
        ],
    );
    check_complaints(
        "key = \"k\", defaults = 3",
        "async fn f() {}",
        &["`defaults` takes options in parentheses: write `defaults(ttl = \"30s\")`"],
    );
}

#[test]
fn an_impl_hands_its_options_on_to_those_that_have_the_attribute() {
    let block = "impl<T> A<T> where T: B {
        #[distributed_lock] async fn a(&self) {}
        #[doc = \"b\"] #[lockattr::distributed_lock(ttl = \"5s\")] pub fn b(&self) {}
        #[cfg_attr(feature = \"locks\", distributed_lock(retry = 1), inline)] fn c(&self) {}
        fn d(&self) { #[distributed_lock(key = \"other\")] async fn e() {} }
        const F: u8 = 1;
    }";
    let said = expanded("key = \"cart:<self.id>\", retry = 3", block);
    let defaults = "defaults(key=\"cart:<self.id>\",retry=3),";
    assert!(said.contains(&format!("#[distributed_lock({defaults})]asyncfna")), "{said}");
    assert!(
        said.contains(&format!("#[lockattr::distributed_lock({defaults}ttl=\"5s\")]pubfnb")),
        "{said}"
    );
    let conditional = format!(
        "#[cfg_attr(feature=\"locks\",distributed_lock({defaults}retry=1),inline)]fnc(&self)"
    );
    assert!(said.contains(&conditional), "{said}");
    // The content of a body belongs to another function.
    assert!(said.contains("fnd(&self){#[distributed_lock(key=\"other\")]asyncfne(){}}"), "{said}");
}

#[test]
fn an_impl_in_which_nothing_is_locked_is_a_mistake() {
    check_complaints(
        "key = \"k\"",
        "unsafe impl A for B { async fn f() {} }",
        &[
            "no function in this `impl` has `#[distributed_lock]`: put it on those that shall be locked; \
           what stands here are their defaults",
        ],
    );
}

#[test]
fn an_impl_that_says_nothing_or_nonsense_is_a_mistake_once() {
    let block = "impl A { #[distributed_lock] fn a() {} #[distributed_lock] fn b() {} }";
    let said = complaints("", block);
    assert!(said.len() == 1 && said[0].contains("says nothing here"), "{said:?}");
    check_complaints(
        "ttl = \"1ms\", lease = lease",
        block,
        &[
            "`ttl` is 1ms, too short to renew: write `\"10ms\"` or more",
            "`lease` is a name in one body: write it at the functions that use it",
        ],
    );
    let expanded = expand("ttl = 3", block).to_string();
    assert!(!expanded.contains("distributed_lock ("), "{expanded}");
}
