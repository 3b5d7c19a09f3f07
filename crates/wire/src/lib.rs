//! The protocol between the probe (inside the target) and the host: fixed-layout records in one shared ring,
//! and the shared control page. `no_std`; versioned together with the probe, which is embedded in the host.
#![no_std]

pub mod control;
pub mod cover;
pub mod guest;
pub mod mark;
pub mod record;
pub mod recover;
pub mod ring;
pub mod virtual_time;
