//! Becoming the target: its image, its interpreter, its first stack, in the places where the kernel would have put them.

pub mod attach;
pub mod boot;
pub mod elf;
pub mod heap;
pub mod identity;
pub mod image;
pub mod maps;
pub mod modules;
pub mod script;
pub mod space;
pub mod stack;
pub mod user;

pub use boot::start;
