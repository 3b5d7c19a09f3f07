//! Hints from children of fork to their parent. A program that forks again and again runs the same code in each child,
//! and each child would translate it again. So a child leaves the addresses that it had to translate (and to unwind) in shared memory; the
//! parent does the same work once, before its next fork, and later children find it done.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use wire::control::FORK_HINTS;

use super::{instrumented, link};
use crate::context::rule;
use crate::ring::control;
use crate::thread::Thread;

/// This process is a child of fork and has not executed another program since.
static CHILD: AtomicBool = AtomicBool::new(false);
/// The program image, the same in all its forks; 0: not numbered yet.
static IMAGE: AtomicU32 = AtomicU32::new(0);
/// Hints that this process has seen.
static SEEN: AtomicU32 = AtomicU32::new(0);

const RULE: u64 = 1 << 47;
const INSTRUMENTED: u64 = 1 << 62;
/// Above the address and below `INSTRUMENTED`.
const IMAGES: u32 = 0x3fff;

/// In the child, right after fork.
pub fn in_child() {
    CHILD.store(true, Ordering::Relaxed);
}

/// Code at `pc` was translated.
pub fn translated(pc: u64) {
    leave(pc);
}

/// The instruction at `pc` was seen to touch PM.
pub fn instrumented(pc: u64) {
    leave(pc | INSTRUMENTED);
}

/// The unwind rule of `pc` was looked up in the program's tables.
pub fn unwound(pc: u64) {
    leave(pc | RULE);
}

fn leave(hint: u64) {
    if !CHILD.load(Ordering::Relaxed) {
        return;
    }
    let control = control();
    let at = control.fork_hint_count.load(Ordering::Relaxed) as usize;
    if at >= FORK_HINTS {
        return;
    }
    let at = control.fork_hint_count.fetch_add(1, Ordering::Relaxed) as usize;
    if at < FORK_HINTS {
        let image = IMAGE.load(Ordering::Relaxed) as u64;
        control.fork_hints[at].store(image << 48 | hint, Ordering::Release);
    }
}

/// In the parent, before it forks: does what earlier children of this image had to do; whether there was anything. No engine
/// lock is held.
pub fn take(thread: &mut Thread) -> bool {
    let control = control();
    if IMAGE.load(Ordering::Relaxed) == 0 {
        IMAGE.store((control.next_image.fetch_add(1, Ordering::Relaxed) + 1) & IMAGES, Ordering::Relaxed);
    }
    let image = IMAGE.load(Ordering::Relaxed) as u64;
    let count = (control.fork_hint_count.load(Ordering::Acquire) as usize).min(FORK_HINTS);
    let before = SEEN.load(Ordering::Relaxed) as usize;
    let mut seen = before;
    while seen < count {
        let hint = control.fork_hints[seen].load(Ordering::Acquire);
        if hint == 0 {
            break;
        }
        seen += 1;
        if hint >> 48 & u64::from(IMAGES) != image {
            continue;
        }
        let pc = hint & (RULE - 1);
        if hint & INSTRUMENTED != 0 {
            instrumented::learn_told(pc);
        } else if hint & RULE != 0 {
            rule::at(pc, true);
        } else {
            link::prepare(thread, pc);
        }
    }
    SEEN.store(seen as u32, Ordering::Relaxed);
    seen != before
}

/// There is room for hints again. Only where no other process can be writing some.
pub fn forget() {
    let control = control();
    let count = (control.fork_hint_count.swap(0, Ordering::Relaxed) as usize).min(FORK_HINTS);
    for hint in &control.fork_hints[..count] {
        hint.store(0, Ordering::Relaxed);
    }
    SEEN.store(0, Ordering::Relaxed);
}
