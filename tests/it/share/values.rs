//! What a waiter gets equals what the caller that ran the body gets; what would not is not shared.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, Ordering};

use lockattr::{Error, LockOptions};
use lockattr_tests::capture_events;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::pair::Pair;

/// The values of the caller that ran the body and of the one that waited for it, and how often the body ran.
async fn got<T>(pair: &Pair, value: &T) -> (T, T, u32)
where
    T: Clone + Serialize + DeserializeOwned,
{
    let runs = AtomicU32::new(0);
    let body = async |_: &lockattr::Lease| {
        let _open = pair.gate.acquire().await.unwrap();
        runs.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Error>(value.clone())
    };
    let call = async |manager: &lockattr::LockManager| {
        manager.with_shared_result("7", LockOptions::new(), body).await?
    };
    let (one, other) = pair.call("7", call(&pair.one), call(&pair.other)).await;
    (one, other, runs.load(Ordering::Relaxed))
}

/// As text, since `NaN` is not equal to itself.
async fn kept<T: Clone + Debug + Serialize + DeserializeOwned>(pair: &Pair, value: T) {
    let (one, other, runs) = got(pair, &value).await;
    assert_eq!((format!("{one:?}"), runs), (format!("{other:?}"), 1));
    assert_eq!(format!("{value:?}"), format!("{other:?}"));
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Meters(f64);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Marker;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Every {
    Unit,
    Newtype(Meters),
    Tuple(u8, i128),
    Struct { at: Option<Option<()>>, until: char },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Rounded(f64),
    Text(String),
    Count(u64),
    Tagged(Tagged),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    Small { number: u8 },
    Big { number: i64, rest: Vec<Every> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Flat {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    left_out: Option<u8>,
    id: u128,
    #[serde(flatten)]
    rest: BTreeMap<String, Untagged>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Borrowed {
    text: std::borrow::Cow<'static, str>,
    #[serde(with = "raw")]
    bytes: Vec<u8>,
    address: std::net::IpAddr,
}

/// As serde's bytes.
mod raw {
    use serde::{Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        struct Bytes;
        impl de::Visitor<'_> for Bytes {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
                Ok(bytes.to_vec())
            }
        }
        from.deserialize_bytes(Bytes)
    }
}

async fn all_are_kept(pair: Pair) {
    let pair = &pair;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let floats: Vec<f64> = (0..200)
        .map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            f64::from_bits(random)
        })
        .collect();
    let bits = |floats: &[f64]| floats.iter().map(|float| float.to_bits()).collect::<Vec<_>>();
    let (one, other, runs) = got(pair, &floats).await;
    let changed = bits(&one).iter().zip(bits(&other)).filter(|(one, other)| *one != other).count();
    assert_eq!((changed, runs), (0, 1), "changed floats of 200, and runs");
    kept(pair, Some(f64::NAN)).await;
    kept(pair, (f64::NEG_INFINITY, -0.0_f64, f32::NAN, f32::MIN_POSITIVE)).await;
    kept(pair, Some(())).await;
    kept(pair, Some(None::<u8>)).await;
    kept(pair, None::<Option<()>>).await;
    kept(pair, (i128::MIN, u128::MAX, i8::MIN, 'ß', String::from("a=b %20 / \u{0}\n\u{1f600};")))
        .await;
    kept(pair, (Marker, ())).await;
    kept(
        pair,
        vec![
            Every::Unit,
            Every::Newtype(Meters(0.1 + 0.2)),
            Every::Tuple(1, -1),
            Every::Struct { at: Some(None), until: '"' },
        ],
    )
    .await;
    let tagged = Tagged::Big { number: -1, rest: vec![Every::Unit, Every::Newtype(Meters(2.0))] };
    kept(pair, [Untagged::Rounded(5.0), Untagged::Text("5".into()), Untagged::Tagged(tagged)])
        .await;
    let rest = [("a".to_owned(), Untagged::Text(String::new()))].into();
    kept(pair, Flat { left_out: None, id: 7, rest }).await;
    kept(pair, BTreeMap::from([((1_u8, Some(false)), Meters(1.5)), ((2, None), Meters(2.5))]))
        .await;
    let bytes = (0..=255).collect();
    let address = "::1".parse().unwrap();
    kept(pair, Borrowed { text: "text".into(), bytes, address }).await;
    kept(pair, serde_json::json!({"a": [1, -1, 0.1, null, true], "b": {}})).await;
    // Their order is another one in each process, and each time.
    let map: HashMap<u32, HashSet<u32>> = (0..20).map(|n| (n, (0..n).collect())).collect();
    let (one, other, runs) = got(pair, &map).await;
    assert_eq!((one, runs), (other, 1));
}

/// Red without: an encoding that keeps serde's data model.
#[tokio::test(flavor = "multi_thread")]
async fn in_memory_a_waiter_gets_what_the_body_returned() {
    all_are_kept(Pair::in_memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_redis_a_waiter_gets_what_the_body_returned() {
    all_are_kept(Pair::over_redis().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_postgres_a_waiter_gets_what_the_body_returned() {
    all_are_kept(Pair::over_postgres().await).await;
}

/// Its second variant is read as the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Alike {
    Length(Meters),
    Number(f64),
}

/// Cannot be read at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Unreadable {
    #[serde(skip_serializing)]
    needed: u8,
}

/// Red without: the comparison of what is read with what was written, or its warning.
#[tokio::test]
async fn a_value_that_would_be_another_is_not_shared_and_a_warning_says_so_once() {
    let (pair, events) = (Pair::in_memory(), capture_events());
    for _ in 0..3 {
        let value = Alike::Number(1.0);
        assert_eq!(got(&pair, &value).await, (value.clone(), value, 2));
        let value = Unreadable { needed: 1 };
        assert_eq!(got(&pair, &value).await, (value.clone(), value, 2));
    }
    assert_eq!(events.count("would not be equal"), 1);
    assert_eq!(events.count("missing field `needed`"), 1);
}

/// What a type skips is no part of its value for serde: the waiter gets the default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Skips {
    sent: u8,
    #[serde(skip)]
    skipped: u8,
}

#[tokio::test]
async fn a_field_that_serde_skips_is_the_default_for_callers_that_waited() {
    let value = Skips { sent: 1, skipped: 1 };
    let (one, other, runs) = got(&Pair::in_memory(), &value).await;
    assert_eq!((one, other, runs), (value.clone(), Skips { skipped: 0, ..value }, 1));
}

/// Is read once: as if the text had been changed in the store after that.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ReadOnce;

impl<'de> Deserialize<'de> for ReadOnce {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        static READ: AtomicU32 = AtomicU32::new(0);
        serde::de::IgnoredAny::deserialize(from)?;
        match READ.fetch_add(1, Ordering::Relaxed) {
            0 => Ok(Self),
            _ => Err(serde::de::Error::custom("read already")),
        }
    }
}

#[tokio::test]
async fn a_caller_that_cannot_read_a_result_runs_the_body() {
    assert_eq!(got(&Pair::in_memory(), &ReadOnce).await, (ReadOnce, ReadOnce, 2));
}
