//! The built-in rules: `FP01xx` durability, `FP02xx` waste, `FP03xx` suspicion, `FP04xx` PMDK transactions,
//! `FP05xx` notes. One file each.

pub mod accidental_fence;
pub mod clean_flush;
pub mod clflush;
pub mod dirty_overwrite;
pub mod flush_not_fenced;
pub mod large_copy;
pub mod library_state;
pub mod needless_mfence;
pub mod nt_not_fenced;
pub mod nt_only_flush;
pub mod open_transaction;
pub mod redundant_logging;
pub mod repeated_flush;
pub mod store_not_durable;
pub mod transient_data;
pub mod unlogged_store;
pub mod unordered_lines;
pub mod useless_fence;
pub mod volatile_flush;
pub mod volatile_locks;
pub mod without_transaction;
