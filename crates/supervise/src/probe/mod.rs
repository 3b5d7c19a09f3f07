//! A program under the probe: the embedded image, what it is told before it starts, the memory that it shares with the host.

mod configure;
mod error;
mod image;
mod launch;
mod options;
mod shared;

pub use error::LaunchError;
pub use image::{ProbeImage, is_embedded};
pub use launch::{Isolation, Launch, Launched};
pub use options::{ProbeOptions, Substituted};
pub use shared::{Shared, futex_wait, futex_wake, ring_doorbell};

pub(crate) use configure::{configure_recovery, configure_roots, cover};
