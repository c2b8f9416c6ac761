//! What the checker finds: each rule by a history written by hand, and all of it beside another
//! checker, on histories made at random.

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
