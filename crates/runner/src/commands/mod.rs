//! One process per operation, without starting each anew: every command line waits at its first use of a pool in a fork server of its own,
//! and a recovery is a row of runs on the same slot. What a command did to a state that it cannot tell from this one is not done again.

mod effects;
mod lines;
mod recovery;
mod row;

pub(crate) use row::Commands;
