//! Randomness that is the same in every run (`wire::virtual_time`).

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use wire::control::option;
use wire::virtual_time::{fill_random, random_word};

use super::buffers;
use super::dispatch::Call;
use super::event;
use crate::load::user;
use crate::lock::{Guard, LockName, Locked};
use crate::pm::pools::Stat;
use crate::ring;
use crate::sys;
use crate::thread::Thread;

/// The kernel gives no more at once.
const LIMIT: u64 = (1 << 25) - 1;

fn virtual_random() -> bool {
    ring::control().options & option::REAL_RANDOM == 0
}

pub fn getrandom(thread: &mut Thread, call: Call) -> i64 {
    const KNOWN_FLAGS: u64 = 7;
    if !virtual_random() || call.args[2] & !KNOWN_FLAGS != 0 {
        return buffers::pass(thread, call);
    }
    fill(thread, call.args[0], call.args[1])
}

/// Fills the program's buffer from the virtual source.
pub fn fill(thread: &mut Thread, address: u64, len: u64) -> i64 {
    let len = len.min(LIMIT);
    let words = len.div_ceil(8);
    // Each word moves the state by the same amount: take all of them at once.
    let step = random_word(0).1;
    let mut state = ring::control().random_state.fetch_add(words.wrapping_mul(step), Ordering::Relaxed);
    let mut chunk = [0u8; 512];
    let mut done = 0;
    while done < len {
        let part = &mut chunk[..(len - done).min(512) as usize];
        state = fill_random(state, part);
        if !user::copy_out(address + done, part) {
            return -sys::EFAULT;
        }
        done += part.len() as u64;
    }
    event::kernel_write(thread, address, len);
    len as i64
}

static COUNT: AtomicU32 = AtomicU32::new(0);
/// Descriptors of `/dev/urandom` and `/dev/random`.
static DESCRIPTORS: Locked<Vec<i32>> = Locked::new(LockName::RandomDescriptors, Vec::new());

/// Holds the list, for fork.
pub fn hold() -> Guard<'static, Vec<i32>> {
    DESCRIPTORS.lock()
}

fn is_random_device(fd: i32) -> bool {
    const RANDOM: u64 = 0x108;
    const URANDOM: u64 = 0x109;
    Stat::of(fd).is_some_and(|s| s.is_device() && (s.rdev == RANDOM || s.rdev == URANDOM))
}

/// A file was opened by the path at this address.
pub fn opened(fd: i32, path: u64) {
    if !virtual_random() {
        return;
    }
    let Some(path) = user::c_string(path) else { return };
    if !path.ends_with(b"random") || !is_random_device(fd) {
        return;
    }
    let mut descriptors = DESCRIPTORS.lock();
    if !descriptors.contains(&fd) {
        descriptors.push(fd);
        COUNT.store(descriptors.len() as u32, Ordering::Relaxed);
    }
}

/// Are reads from this descriptor answered by [`fill`]?
pub fn serves(fd: i32) -> bool {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let known = DESCRIPTORS.lock().contains(&fd);
    // It may have been closed and its number given to another file.
    known && is_random_device(fd)
}

/// What `/proc/sys/kernel/random/uuid` says to the program, if that is what the path at this address names: libpmemobj names its
/// pools by it.
pub fn uuid(path: u64) -> Option<Vec<u8>> {
    const PATH: &[u8] = b"/proc/sys/kernel/random/uuid";
    if !virtual_random() || user::read::<[u8; 6]>(path)? != PATH[..6] || user::c_string(path)? != PATH {
        return None;
    }
    // RFC 9562: version 4, variant 10.
    let (high, low) = (word() & !0xf000 | 0x4000, word() & !(3 << 62) | 1 << 63);
    let text = alloc::format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}\n",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    );
    Some(text.into_bytes())
}

/// One word, for `rdrand` and `rdseed`.
pub fn word() -> u64 {
    let step = random_word(0).1;
    random_word(ring::control().random_state.fetch_add(step, Ordering::Relaxed)).0
}
