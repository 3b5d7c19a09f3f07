//! PMDK transactions, seen through the calls of `pmemobj_tx_*`.

mod functions;
pub(crate) mod ranges;
pub(crate) mod transactions;
