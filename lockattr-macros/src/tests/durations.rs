//! Durations: literals, expressions, and mistakes in them.

use quote::ToTokens;

use crate::duration::Time;

fn describe(source: &str) -> String {
    let expr = syn::parse_str(source).expect("an expression");
    match Time::from_expr("ttl", expr) {
        Ok(time) => {
            let tokens = time.to_token_stream().to_string().replace(' ', "");
            tokens.replace("::core::time::Duration::", "")
        }
        Err(mistake) => mistake.to_string(),
    }
}

#[track_caller]
fn check(source: &str, expected: &str) {
    assert_eq!(describe(source), expected, "of {source}");
}

#[test]
fn literals_are_read_at_compile_time() {
    check(r#""10s""#, "from_secs(10)");
    check(r#""0s""#, "from_secs(0)");
    check(r#""500ms""#, "from_millis(500)");
    check(r#""1m30s""#, "from_secs(90)");
    check(r#""1m 30s 5ms""#, "from_millis(90005)");
    check(r#""1.5s""#, "from_millis(1500)");
    check(r#""2h""#, "from_secs(7200)");
    check(r#""250us""#, "new(0,250000)");
    check(r#""1s 1ns""#, "new(1,1)");
}

#[test]
fn expressions_are_left_alone() {
    check("Duration::from_secs(3)", "Duration::from_secs(3)");
    check("self.ttl", "self.ttl");
    check("-offset", "-offset");
}

#[test]
fn numbers_need_a_unit() {
    let with_unit = "`ttl` is a duration with its unit: ";
    check("10", &format!("{with_unit}write `\"10s\"` or `\"10ms\"`"));
    check("10s", &format!("{with_unit}write it as a string, `\"10s\"`"));
    check("1.5", &format!("{with_unit}write `\"1.5s\"`"));
    check("-10", &format!("{with_unit}it cannot be negative, write `\"10s\"` or `\"500ms\"`"));
    check("true", &format!("{with_unit}write `\"10s\"`, `\"500ms\"` or `\"1m30s\"`"));
    check("'s'", &format!("{with_unit}write `\"10s\"`, `\"500ms\"` or `\"1m30s\"`"));
}

#[test]
fn strings_that_are_no_durations() {
    for text in ["", "10", "ten seconds", "-1s", "10 parsecs", "99999999999999999999s"] {
        let said = describe(&format!("{text:?}"));
        assert!(said.starts_with(&format!("`ttl`: {text:?} is not a duration (")), "{said}");
        assert!(said.ends_with("): write `\"10s\"`, `\"500ms\"` or `\"1m30s\"`"), "{said}");
    }
}
