//! What keepers are made of: tiny processes between the host and what it runs, here for recordings and in `recover` for recoveries.

pub mod bare;
pub mod page;
