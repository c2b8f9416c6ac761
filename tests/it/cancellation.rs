//! Drops every public future at each of its await points, under every store fault.

/// Makes a test of each scenario, and the list of them.
macro_rules! sweeps {
    ($($(#[$doc:meta])* fn $test:ident() = $scenario:ident;)*) => {
        $($(#[$doc])*
        #[test]
        fn $test() {
            $scenario.sweep();
        })*

        pub(super) const SCENARIOS: &[Scenario] = &[$($scenario),*];
    };
}

mod acquire;
mod aftermath;
mod annotated;
mod begins;
mod body;
mod count;
mod hold;
mod nemesis;
mod shutdown;
mod stepped;
mod sweep;
mod wait_queue;
mod world;
