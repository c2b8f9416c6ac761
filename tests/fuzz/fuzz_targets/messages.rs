//! Fuzzes messages to a subscriber: only `granted` with a claim's own token, a number and a time
//! grants it the lock, its lease does not begin in the future, and no other claim is notified.

#![no_main]

use std::cell::RefCell;
use std::sync::Arc;

use arbitrary::Arbitrary;
use futures_util::FutureExt;
use libfuzzer_sys::fuzz_target;
use lockattr::store::fuzzing::{postgres, redis as store};
use lockattr::store::{
    Claim, LockKey, Notification, OwnerToken, Sharing, Subscriber, Subscription,
};
use redis::{PushInfo, PushKind, Value};
use tokio::time::Instant;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    clock: Option<u64>,
    channel: Channel<'a>,
    words: Vec<Word<'a>>,
    kind: u8,
}

#[derive(Arbitrary, Debug)]
enum Channel<'a> {
    Ours,
    Any(&'a str),
}

/// The words of the protocol, in any order, and any others.
#[derive(Arbitrary, Debug)]
enum Word<'a> {
    Granted,
    Later,
    Wanted,
    Token,
    TokenInCapitals,
    AnothersToken,
    Number(u64),
    Signed(i64),
    Any(&'a str),
}

thread_local! {
    /// A subscriber with two waiters. Claims are made once, because their tokens are random.
    static WORLD: RefCell<World> = RefCell::new(World::new());
}

struct World {
    subscriber: Arc<Subscriber>,
    tokens: [OwnerToken; 2],
    subscriptions: [Subscription; 2],
}

impl World {
    fn new() -> Self {
        let subscriber = Arc::new(Subscriber::new(|_name| {}));
        let claim = || {
            let key = LockKey::new("lock:", "a").expect("a key");
            Claim::of(&subscriber, key, [], Sharing::Exclusive, "").token()
        };
        let tokens = [claim(), claim()];
        let subscriptions = tokens.map(|token| subscriber.subscribe(token));
        Self { subscriber, tokens, subscriptions }
    }
}

fuzz_target!(|input: Input<'_>| {
    WORLD.with_borrow(|World { subscriber, tokens: [ours, another], subscriptions }| {
        let words: Vec<_> = input.words.iter().map(|word| text_of(word, *ours, *another)).collect();
        let message = words.join(" ");
        let id = format!("{:016x}", subscriber.id());
        for from_redis in [false, true] {
            let prefix = match from_redis {
                true => "lockattr:inbox:".to_owned(),
                false => postgres::inbox(),
            };
            let channel = match &input.channel {
                Channel::Ours => [&*prefix, &id].concat(),
                Channel::Any(name) => (*name).to_owned(),
            };
            match from_redis {
                true => {
                    store::pushed(subscriber, input.clock, &push(input.kind, &channel, &message))
                }
                false => postgres::notified(subscriber, input.clock, &channel, &message),
            }
            for (token, subscriptions) in [ours, another].into_iter().zip(subscriptions) {
                let Some(notification) = subscriptions.next().now_or_never() else { continue };
                check(&notification, &message, *token, input.clock);
            }
        }
    });
});

fn check(notification: &Notification, message: &str, token: OwnerToken, clock: Option<u64>) {
    let mut words = message.split(' ');
    let (kind, named) = (words.next(), words.next());
    match notification {
        Notification::Granted(grant) => {
            assert_eq!((kind, named), (Some("granted"), Some(&*token.to_string())), "{message}");
            let counter: u64 = words.next().and_then(|word| word.parse().ok()).expect("a counter");
            assert_eq!(grant.fencing.get(), counter << 10);
            assert!(counter > 0 && words.next().is_some_and(|word| word.parse::<u64>().is_ok()));
            assert!(words.next().is_some() && clock.is_some(), "{message}");
            assert!(grant.since <= Instant::now(), "a lease that begins in the future");
        }
        Notification::AskAgain(at) => {
            let latest = Instant::now() + std::time::Duration::from_secs(15);
            assert!(*at <= latest, "a claim sleeps too long");
        }
    }
}

fn text_of(word: &Word<'_>, ours: OwnerToken, another: OwnerToken) -> String {
    match word {
        Word::Granted => "granted".into(),
        Word::Later => "later".into(),
        Word::Wanted => "wanted".into(),
        Word::Token => ours.to_string(),
        Word::TokenInCapitals => ours.to_string().to_uppercase(),
        Word::AnothersToken => another.to_string(),
        Word::Number(number) => number.to_string(),
        Word::Signed(number) => format!("{number:+}"),
        Word::Any(text) => (*text).to_owned(),
    }
}

fn push(kind: u8, channel: &str, message: &str) -> PushInfo {
    let text = |text: &str| Value::BulkString(text.into());
    let (kind, data) = match kind % 5 {
        0 => (PushKind::Message, vec![text(channel), text(message)]),
        1 => (PushKind::SMessage, vec![text(channel), text(message)]),
        2 => (PushKind::SUnsubscribe, vec![text(channel)]),
        3 => (PushKind::PMessage, vec![text(channel), text(channel), text(message)]),
        _ => (PushKind::Message, vec![text(channel), Value::Int(1), text(message)]),
    };
    PushInfo { kind, data }
}
