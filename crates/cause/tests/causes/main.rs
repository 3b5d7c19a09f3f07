//! Root causes on hand-made traces, with recoveries that are no processes.

mod bundles;
mod classes;
mod durable;
mod exhibits;
mod groups;
mod recoveries;
mod repairs;
mod traces;
