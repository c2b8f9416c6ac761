//! The items that the attribute accepts.

use super::{check_complaints, expand};

const KEY: &str = "key = \"stock\"";

#[test]
fn functions_that_can_be_locked() {
    for item in [
        "async fn f() {}",
        "pub(in crate::a) async unsafe fn f<'a, T: ?Sized>(&'a self, _: &T) -> Result<&'a u8, E> where T: A { 1 }",
        "fn f() -> Pin<Box<dyn Future<Output = ()> + Send>> { Box::pin(async {}) }",
        "fn f() -> ::core::pin::Pin<std::boxed::Box<dyn a::Future<Output = u8> + 'a>> { x() }",
        "fn f() -> BoxFuture<'static, ()> { x() }",
        "fn f() -> futures::future::LocalBoxFuture<'_, ()> { x() }",
        "fn f() -> impl Future<Output = ()> + Send { x() }",
        "fn f() -> impl Send + std::future::Future<Output = impl Display> { x() }",
        "fn f() -> (impl Future<Output = ()>) { x() }",
        "fn f() -> impl Stream<Item = Result<u8, E>> + Send { x() }",
        "fn f() -> impl futures::TryStream<Ok = u8, Error = E> { x() }",
        "fn f() -> ::core::pin::Pin<Box<dyn a::Stream<Item = u8> + 'a>> { x() }",
        "fn f() -> BoxStream<'static, u8> { x() }",
        "fn f(&mut self, _: impl Display) -> Result<&mut u8, E> { 1 }",
        "unsafe fn f() {}",
        "fn main() -> Result<(), E> { rt().block_on(async {}) }",
        "#[core::prelude::v1::test] fn main() {}",
        "fn go() -> Result<(), E> { let body = async { 1 }; tokio::spawn(body); }",
        "fn main() { let body = async { 1 }; rt().block_on(body) }",
        "fn main() { let span; {} { if false {} { let body = async { 1 }; rt().block_on(body) } } }",
    ] {
        check_complaints(KEY, item, &[]);
    }
}

#[test]
fn functions_that_cannot() {
    check_complaints(
        KEY,
        "const fn f() {}",
        &["a `const fn` cannot wait for a lock: leave `const` out"],
    );
    check_complaints(
        KEY,
        "pub extern \"C\" fn f() {}",
        &[
            "an `extern` function cannot say that the lock was refused: put `#[distributed_lock]` on a \
           function that it calls",
        ],
    );
    check_complaints(
        KEY,
        "async fn f(&self);",
        &["a function without a body has nothing to lock: put `#[distributed_lock]` on the \
           functions that implement it"],
    );
    check_complaints(
        KEY,
        "async fn f() -> ! { loop {} }",
        &[
            "a function that never returns cannot say that the lock was refused: return a `Result<_, \
           E>` with `E: From<lockattr::Error>`",
        ],
    );
}

#[test]
fn what_would_be_locked_only_while_it_is_made() {
    for item in [
        "async fn f() -> impl Stream<Item = u8> { x() }",
        "fn f() -> Result<impl a::Stream<Item = u8>, E> { x() }",
        "fn f() -> impl Future<Output = Result<impl Stream<Item = u8>, E>> + Send { x() }",
    ] {
        check_complaints(KEY, item, &[&stream_in_vain("impl Stream<Item = Result<_, E>>")]);
    }
    for item in [
        "async fn f() -> Result<BoxStream<'static, u8>, E> { x() }",
        "fn f() -> Option<Pin<Box<dyn Stream<Item = u8> + Send>>> { x() }",
    ] {
        check_complaints(KEY, item, &[&stream_in_vain("BoxStream<'_, Result<_, E>>")]);
    }
    for item in [
        "fn f() -> Result<impl Future<Output = u8>, E> { x() }",
        "fn f() -> Option<BoxFuture<'a, u8>> {}",
    ] {
        let future =
            "the lock would be given back as soon as this future is made: write `async fn f`";
        check_complaints(KEY, item, &[future]);
    }
    for item in [
        "async fn f() -> Result<BoxFuture<'static, u8>, E> { x() }",
        "async fn f() -> Result<impl Future<Output = u8>, E> { x() }",
        "async fn f() -> Result<Pin<Box<dyn Future<Output = u8> + Send>>, E> { x() }",
        "async fn f() -> Result<(u8, Vec<LocalBoxFuture<'a, u8>>), E> { x() }",
        "fn f() -> BoxFuture<'a, Result<BoxFuture<'a, u8>, E>> { x() }",
    ] {
        let future = "the lock would be given back as soon as this future is made: await it in the body, \
                      and return what it yields";
        check_complaints(KEY, item, &[future]);
    }
    for item in [
        "fn f() -> Result<impl Iterator<Item = u8>, E> { x() }",
        "fn f() -> impl Iterator<Item = u8> { x() }",
        "async fn f() -> Option<Box<dyn DoubleEndedIterator<Item = u8> + 'a>> { x() }",
        "fn f() -> BoxFuture<'a, Result<[(u8, Box<dyn Iterator<Item = u8>>); 2], E>> { x() }",
    ] {
        let iterator = "the lock would be given back before this iterator has yielded anything: collect \
                        its items in the body, and return a `Vec`";
        check_complaints(KEY, item, &[iterator]);
    }
    // What makes a value later takes its own lock.
    for fine in [
        "fn f() -> Result<impl IntoIterator<Item = u8>, E> { x() }",
        "fn f() -> Result<Box<dyn Fn() -> BoxFuture<'static, u8>>, E> { x() }",
        "fn f() -> Result<impl Display, E> { x() }",
        "fn f() -> impl Stream<Item = Result<BoxFuture<'static, u8>, E>> { x() }",
    ] {
        check_complaints(KEY, fine, &[]);
    }
}

/// Red without: `refuse_track_caller`.
#[test]
fn a_caller_that_the_body_cannot_see() {
    let sentence = "`#[track_caller]` would name a place in lockattr, which calls the body: leave it out, or \
                    put it on a function that passes `Location::caller()` to this one";
    for item in
        ["fn f() -> Result<(), E> {}", "fn f() -> BoxFuture<'static, Result<(), E>> { x() }"]
    {
        check_complaints(KEY, &format!("#[track_caller] {item}"), &[sentence]);
    }
    // The compiler says what becomes of it.
    check_complaints(KEY, "#[track_caller] async fn f() -> Result<(), E> {}", &[]);
}

/// The message for a stream that would be made under the lock and polled without it.
fn stream_in_vain(instead: &str) -> String {
    format!(
        "the lock would be given back as soon as this stream is made: write `fn f(…) -> {instead}`, \
         which holds it until the stream ends, or lock in a function of its own what makes the stream"
    )
}

/// As in an `async fn`. Red without: `FutureShape::yields` in `refuse_lazy_output`.
#[test]
fn a_stream_that_a_future_yields() {
    let boxed = stream_in_vain("BoxStream<'_, Result<_, E>>");
    for output in [
        // The output of `#[async_trait]`.
        "Pin<Box<dyn Future<Output = Result<BoxStream<'a, u8>, E>> + Send + 'async_trait>>",
        "impl Future<Output = Option<Pin<Box<dyn Stream<Item = u8>>>>>",
        "BoxFuture<'_, BoxStream<'_, u8>>",
        "futures::future::LocalBoxFuture<'_, anyhow::Result<LocalBoxStream<'_, u8>>>",
    ] {
        check_complaints(KEY, &format!("fn f() -> {output} {{ x() }}"), &[&boxed]);
    }
    // A name of the user's own.
    check_complaints(KEY, "fn f() -> OrderBoxFuture<'_> { x() }", &[]);
}

#[test]
fn nothing_cancels_a_plain_function() {
    let cancel = "key = \"stock\", on_lost = cancel";
    let sentence = "`on_lost = cancel` cannot stop a plain function, which runs on the calling thread: \
                    write `on_lost = error` (the default there) or `on_lost = ignore`, and ask \
                    `lockattr::current()` in the body, or make it an `async fn`";
    check_complaints(cancel, "fn f() {}", &[sentence]);
    for item in
        ["async fn f() {}", "fn f() -> impl Stream<Item = u8> {}", "fn f() -> BoxFuture<'a, u8> {}"]
    {
        check_complaints(cancel, item, &[]);
    }
}

#[test]
fn other_items() {
    for (word, item) in [("trait", "pub unsafe trait A {}"), ("mod", "pub(crate) mod a { }")] {
        let sentence = format!(
            "`#[distributed_lock]` goes on a function: put it on those inside this `{word}`"
        );
        check_complaints(KEY, item, &[&sentence]);
    }
    for (word, item) in [
        ("struct", "#[derive(Debug)] pub struct A;"),
        ("enum", "enum A {}"),
        ("const", "const A: u8 = 3;"),
        ("static", "static A: u8 = 3;"),
        ("type", "type A = B;"),
        ("use", "use a::b;"),
        ("extern", "extern crate a;"),
        ("extern", "extern \"C\" {}"),
        ("extern", "unsafe extern {}"),
        ("macro_rules", "macro_rules! a { () => {} }"),
        ("println", "println!();"),
    ] {
        let sentence = format!("`#[distributed_lock]` goes on a function, not on this `{word}`");
        check_complaints(KEY, item, &[&sentence]);
    }
}

#[test]
fn the_item_stays_beside_its_mistakes() {
    let item = "mod a { async fn f() { 1 } }";
    let expanded = expand("key = \"<\"", item).to_string();
    let untouched = item.parse::<proc_macro2::TokenStream>().expect("tokens").to_string();
    assert!(expanded.starts_with(&untouched), "{expanded}");
}

#[test]
fn a_body_that_counts_on_a_lease_does_not_stay() {
    let beside = |args: &str, item: &str| {
        let expanded = expand(args, item).to_string();
        let end = expanded.find(":: core :: compile_error").expect("a mistake");
        expanded[..end].split_once("]").expect("an attribute").1.replace(' ', "")
    };
    let bad = "key = \"<\", lease = held";
    let unreachable = "{::core::unreachable!()}";
    for head in ["pub async fn f(&self) -> A", "fn f() -> BoxFuture<'static, ()>", "fn main()"] {
        let kept = head.replace(' ', "");
        assert_eq!(beside(bad, &format!("{head} {{ held }}")), format!("{kept}{unreachable}"));
        assert_eq!(beside("key = \"<\"", &format!("{head} {{ 1 }}")), format!("{kept}{{1}}"));
    }
    let opaque = beside("guard = held", "fn f() -> impl Future<Output = A> + Send { held }");
    assert!(opaque.ends_with("{async{::core::unreachable!()}}"), "{opaque}");
    let inferred = beside(bad, "async fn f() -> Result<impl A, E> { held }");
    assert!(inferred.ends_with("{held}"), "{inferred}");
}

#[test]
fn patterns_that_async_trait_replaced() {
    check_complaints(
        "key = \"<left>\"",
        "fn f<'async_trait>(__arg0: (u8, u8)) -> Pin<Box<dyn Future<Output = ()> + 'async_trait>> { x() }",
        &["`<left>` in the key: `left` is not a parameter of this function; none of its \
           parameters has a name, and `#[async_trait]` has replaced a pattern: name that parameter \
           and take it apart in the body"],
    );
}

/// Red without: `has_rewritten`.
#[test]
fn a_parameter_that_is_named_like_one_of_async_trait_is_a_parameter() {
    check_complaints(
        "key = \"<left>\"",
        "async fn f(__arg0: u8, id: u8) -> Result<(), E> { x() }",
        &["`<left>` in the key: `left` is not a parameter of this function; its parameters are \
           `__arg0`, `id`; for a constant \
           write its path, as in `<self::left>`"],
    );
    check_complaints("key = \"<__arg0>\"", "async fn f(__arg0: u8) -> Result<(), E> { x() }", &[]);
}

/// Red without: the whole names in `ALIASES`.
#[test]
fn a_name_that_only_ends_like_an_alias_is_a_type_of_the_users_own() {
    for output in [
        "Result<NotBoxFuture, E>",
        "Result<my::MyBoxFuture<'static, u8>, E>",
        "Option<NotBoxStream>",
        "Result<Option<MyBoxStream<u8>>, E>",
    ] {
        for asyncness in ["", "async "] {
            let item = format!("{asyncness}fn f() -> {output} {{ x() }}");
            check_complaints("key = \"a\"", &item, &[]);
        }
    }
    for output in ["NotBoxFuture", "my::MyBoxFuture<'static, u8>", "MyBoxStream<u8>"] {
        let expanded = expand("key = \"a\"", &format!("fn f() -> {output} {{ x() }}")).to_string();
        assert!(
            expanded.contains("run_blocking") && expanded.contains("reject_named"),
            "{expanded}"
        );
    }
}
