//! Wrong uses of the attribute: each file in `fail/` must not compile, and has the compiler's message
//! beside it.

use std::path::Path;

use expect_test::expect_file;

use crate::{compiler, messages, without_features};

/// Compiles one file, and compares the messages. A file whose name ends with `_without_the_feature` is
/// compiled with lockattr without its features.
fn check(name: &str) {
    let beside = |extension| format!("{}/fail/{name}.{extension}", env!("CARGO_MANIFEST_DIR"));
    assert!(Path::new(&beside("rs")).exists(), "fail/{name}.rs is not there");
    let without_features = name.ends_with("_without_the_feature");
    let lockattr =
        if without_features { without_features::lockattr() } else { compiler::lockattr() };
    let mut rustc = compiler::rustc();
    rustc.args(["--extern", lockattr, "--edition=2024", "--allow=dead_code", "--verbose"]);
    rustc.arg(format!("tests/ui/fail/{name}.rs"));
    let output = rustc.output().expect("the compiler starts");
    let stderr = String::from_utf8(output.stderr).expect("messages in UTF-8");
    assert!(!output.status.success(), "fail/{name}.rs must not compile");
    assert_eq!(output.status.code(), Some(1), "the compiler crashed: {stderr}");
    expect_file![beside("stderr")].assert_eq(&messages::compared(&stderr));
}

/// A test for each file.
macro_rules! wrong_uses {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn every_file_is_of_a_listed_wrong_use() {
            for file in std::fs::read_dir("fail").unwrap() {
                let path = file.unwrap().path();
                let name = path.file_stem().and_then(|name| name.to_str());
                let listed = [$(stringify!($name)),*];
                assert!(name.is_some_and(|name| listed.contains(&name)), "list {path:?} in fail.rs");
            }
        }
    };
}

wrong_uses! {
    assert_held_of_several_keys
    assert_held_with_mistakes_in_the_key
    assert_held_without_a_key
    async_fn_returns_a_stream
    async_trait_method_returns_a_stream
    attribute_on_a_struct
    attribute_on_a_trait
    attribute_on_an_impl
    body_asks_with_an_error_of_another_type
    body_assigns_to_an_immutable_parameter
    body_cannot_be_spawned
    body_has_a_syntax_error
    body_leaves_a_parameter_unused
    body_names_a_generated_variable
    body_names_no_field
    body_names_nothing_known
    body_returns_early_with_another_type
    body_uses_a_moved_parameter
    body_yields_another_type
    body_yields_nothing
    boxed_future_under_a_name_of_ones_own
    boxed_future_yields_a_stream
    braces_around_a_field_of_a_parameter
    braces_around_a_parameter
    call_is_not_awaited
    crate_is_a_string
    crate_is_not_a_path
    crate_is_not_there
    function_has_no_body
    function_is_const
    function_is_extern
    hold_at_least_is_longer_than_max_hold
    hold_at_least_is_longer_than_ttl_without_renew
    hold_at_least_without_unit
    impl_block_with_mistakes
    key_beside_keys
    key_given_twice
    key_is_a_list
    key_is_an_expression_without_display
    key_is_empty
    key_text_is_too_long
    key_with_nothing_after_the_equals_sign
    key_without_a_value
    key_without_its_name
    keys_are_a_string
    keys_are_an_expression
    keys_are_empty
    keys_beside_key
    keys_with_a_key_without_display
    keys_without_a_comma
    lead_is_an_expression
    lead_on_functions_that_cannot
    lead_with_an_argument_that_is_not_clone
    lead_with_options_that_do_not_fit
    lease_hides_a_parameter
    lease_is_a_pattern
    lease_is_a_string
    lease_under_another_name_than_the_body_uses
    lease_where_the_body_may_run_unlocked
    lease_where_the_lock_is_not_always_taken
    manager_has_an_empty_name
    manager_is_a_number
    manager_is_an_expression_of_another_type
    manager_is_not_a_reference
    manager_of_self_in_a_free_function
    lifetime_is_too_short
    many_mistakes_of_attribute_and_function
    many_mistakes_of_many_keys
    many_mistakes_of_one_attribute
    many_mistakes_of_one_key
    many_options_that_contradict_each_other
    many_options_that_exclude_each_other
    max_hold_is_shorter_than_ttl
    max_hold_without_unit
    missing_key
    mistake_beside_a_lease
    mistake_in_a_function_made_by_a_macro
    mistake_in_an_async_trait_method
    mode_is_an_unknown_word
    mode_is_quoted
    must_use_is_kept
    no_options
    on_busy_is_an_unknown_word
    on_busy_is_quoted
    on_busy_returns_another_type
    on_busy_returns_nothing
    on_busy_returns_two_values
    on_busy_returns_without_parentheses
    on_busy_skip_where_the_error_has_no_room
    on_busy_skip_where_there_is_a_number
    on_busy_skip_where_there_is_no_option
    on_lost_is_an_unknown_word
    on_lost_is_quoted
    on_unavailable_is_an_unknown_word
    once_per_of_a_value_that_is_no_result
    once_per_with_options_that_do_not_fit
    option_for_several_keys_misspelled
    option_in_parentheses
    option_misspelled
    option_of_the_key_misspelled
    option_under_the_name_of_another_library
    options_with_a_stray_token
    options_without_a_comma
    pattern_parameter_in_an_async_trait_method
    percent_sign_after_a_placeholder
    permits_are_an_expression_of_another_type
    permits_are_negative
    permits_are_zero
    permits_beside_mode
    placeholder_consumes_its_parameter
    placeholder_is_empty
    placeholder_is_not_an_expression
    placeholder_is_not_closed
    placeholder_is_not_display
    placeholder_misspells_a_parameter
    placeholder_names_a_variable_of_the_body
    placeholder_names_no_field
    placeholder_names_no_parameter
    placeholder_names_self_in_a_free_function
    placeholder_parameter_without_display_bound
    placeholder_where_there_are_no_parameters
    placeholders_with_nothing_between_them
    plain_fn_cancelled_when_lost
    plain_fn_returns_a_number
    reentrant_is_a_number
    reentrant_is_an_unknown_name
    release_is_a_bool
    release_is_an_unknown_word
    renew_is_a_string
    renew_is_an_expression_of_another_type
    retry_delay_given_twice
    retry_delay_is_a_number
    retry_delay_is_zero
    retry_is_a_string
    retry_is_an_expression_of_another_type
    retry_is_more_than_a_u32
    retry_is_negative
    returns_a_boxed_future_of_a_number
    returns_a_number
    returns_an_error_without_room
    returns_an_option
    returns_never
    returns_nothing
    share_result_with_options_that_do_not_fit
    share_result_without_the_feature
    stream_of_numbers
    struct_named_like_a_boxed_future
    term_of_a_function_that_does_not_lead
    ttl_given_twice
    ttl_is_a_number
    ttl_is_an_expression_of_another_type
    ttl_is_negative
    ttl_is_too_long
    ttl_is_too_short
    ttl_with_the_unit_outside_the_quotes
    ttl_with_unknown_unit
    ttl_without_unit
    unknown_option
    wait_is_a_bool
    wait_is_an_expression_of_another_type
    wait_is_zero_with_retry
    when_is_a_string
    when_is_an_expression_of_another_type
}
