//! Root causes on hand-made traces, with recoveries that are no processes.

mod classes;
mod durable;
mod groups;
mod recoveries;
mod repairs;
#[expect(dead_code, reason = "the tests of `evidence` need more of it")]
mod traces;
mod workers;
