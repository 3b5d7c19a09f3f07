//! The program break. The kernel's own lies behind the probe's image; the target's shall lie behind the target's, as natively.
//! Where the kernel can be told so ([`identity`]) it keeps it; elsewhere it is kept here.

use core::sync::atomic::{AtomicU64, Ordering};

use super::identity;
use crate::sys::{self, PROT_READ, PROT_WRITE, nr, sys};

const PAGE: u64 = 4096;
static START: AtomicU64 = AtomicU64::new(0);
static BREAK: AtomicU64 = AtomicU64::new(0);

/// The heap begins at `end_of_image`, rounded up to a page as the kernel does (`fs/binfmt_elf.c`).
pub fn init(end_of_image: u64) {
    let start = page_up(end_of_image);
    START.store(start, Ordering::Relaxed);
    BREAK.store(start, Ordering::Relaxed);
}

/// First byte and end of the heap.
pub fn range() -> (u64, u64) {
    (START.load(Ordering::Relaxed), page_up(BREAK.load(Ordering::Relaxed)))
}

/// `brk(2)` as the kernel does it: the new break, or the old one if that cannot be. The caller holds the memory lock.
pub fn set(wanted: u64) -> u64 {
    if identity::assumed() {
        return sys!(nr::BRK, wanted) as u64;
    }
    let now = BREAK.load(Ordering::Relaxed);
    if wanted < START.load(Ordering::Relaxed) || wanted > 0x7fff_ffff_f000 {
        return now;
    }
    let (old_end, new_end) = (page_up(now), page_up(wanted));
    if new_end > old_end {
        let len = new_end - old_end;
        let got = sys::map_anonymous(old_end, len, PROT_READ | PROT_WRITE);
        if got != old_end as i64 {
            return now;
        }
    } else if new_end < old_end {
        sys!(nr::MUNMAP, new_end, old_end - new_end);
    }
    BREAK.store(wanted, Ordering::Relaxed);
    wanted
}

fn page_up(address: u64) -> u64 {
    (address + PAGE - 1) & !(PAGE - 1)
}
