//! Recoveries of small programs, natively and by the fork server.

#[path = "../native_world/mod.rs"]
mod native_world;
#[path = "../server_world/mod.rs"]
mod server_world;

mod apart;
mod in_place;
mod native;
mod server;
mod system_calls;
