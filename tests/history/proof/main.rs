//! Tests of the checker: each rule with hand-written histories, and all rules against another
//! checker, with random histories.

mod alike;
mod ends;
mod fences;
mod holders;
mod notation;
mod random;
mod reentry;
mod reference;
mod resource;
mod shared;
mod terms;
