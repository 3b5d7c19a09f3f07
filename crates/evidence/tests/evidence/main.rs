//! Bundles and evidence of causes in hand-made traces.

mod bundles;
mod gathered;
#[expect(dead_code, reason = "the tests of `cause` need more of it")]
#[path = "../../../cause/tests/causes/traces.rs"]
mod traces;
