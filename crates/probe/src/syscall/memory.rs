//! The address space: `mmap` and related calls.

use super::dispatch::Call;
use super::event;
use crate::layout;
use crate::load::{heap, modules, space};
use crate::lock::{LockName, SpinGuard, SpinLock};
use crate::pm::shared::is_writable_fd;
use crate::pm::{self, Range, Shadow, mapping, pools, shared};
use crate::recover::dense;
use crate::refuse;
use crate::ring;
use crate::sys::{self, MAP_ANONYMOUS, MAP_FIXED, PROT_EXEC, PROT_WRITE, nr, raw, sys};
use crate::thread::Thread;
use wire::record::{Header, kind};

const PAGE: u64 = 4096;
const MAP_TYPE: u64 = 0xf;
const MAP_SHARED: u64 = 1;
const MAP_SHARED_VALIDATE: u64 = 3;
const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;

/// One change of the address space at a time, so that our tables follow the kernel's.
static LOCK: SpinLock = SpinLock::new(LockName::AddressSpace);

/// Keeps the address space as it is during a call that copies the process: the child has no other thread that would free
/// the lock.
pub fn hold_for_fork(call: Call) -> Option<SpinGuard<'static>> {
    const CLONE_VM: u64 = 0x100;
    let copies = match call.nr {
        nr::FORK => true,
        nr::CLONE => call.args[0] & CLONE_VM == 0,
        nr::CLONE3 => crate::load::user::read::<u64>(call.args[0]).is_some_and(|flags| flags & CLONE_VM == 0),
        _ => false,
    };
    copies.then(|| LOCK.lock())
}

/// The short locks of this side, for the moment of the fork itself. Nothing that looks up PM, modules or engine memory
/// may run while they are held.
pub fn hold_tables() -> impl Sized {
    (shared::hold(), pm::hold(), modules::hold(), space::hold())
}

fn pages(len: u64) -> u64 {
    len.saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// A program that maps over the engine cannot be helped.
fn keep_off(thread: &mut Thread, what: &str, start: u64, len: u64) {
    let ours = space::overlaps_engine(start, len);
    let alias = pm::any() && !pm::pieces(layout::alias(start), len).is_empty();
    if ours || alias {
        refuse!(
            thread,
            "the program wants to {what} {start:#x}–{:#x}, where the recorder keeps its own data",
            start + len
        );
    }
}

pub fn mmap(thread: &mut Thread, call: Call) -> i64 {
    let [address, len, prot, flags, fd, offset] = call.args;
    let fd = fd as i32;
    let of_file = matches!(flags & MAP_TYPE, MAP_SHARED | MAP_SHARED_VALIDATE) && flags & MAP_ANONYMOUS == 0;
    let fixed = flags & MAP_FIXED != 0 && flags & MAP_FIXED_NOREPLACE == 0;
    let _guard = LOCK.lock();
    if fixed {
        keep_off(thread, "map", address, pages(len));
    }
    if !of_file && flags & MAP_ANONYMOUS == 0 && pools::of_fd(fd).is_some() {
        // A private mapping of a pool: loads from it are not seen.
        crate::recover::notes::incomplete();
    }
    let writable = prot & PROT_WRITE != 0;
    // Without permission the kernel shall say so itself.
    let allowed = of_file && (!writable || is_writable_fd(fd));
    let pool = if allowed { pools::mapped(thread, fd, writable) } else { None };
    if fixed {
        crate::translate::code::unmapped(address, len);
    }
    let real_prot = if pool.is_some() { mapping::seen(prot) } else { prot };
    // SAFETY: the program asks for it; `keep_off` has refused places of the engine.
    let result = unsafe { raw!(nr::MMAP, address, len, real_prot, flags, fd, offset) };
    if result < 0 {
        if result == -sys::ENOMEM {
            crate::recover::notes::out_of_memory();
        }
        return result;
    }
    let start = result as u64;
    let len = pages(len);
    if fixed {
        mapping::taken_away(thread, start, len);
        modules::unmapped(start, len);
    }
    if let Some(pool) = pool {
        mapping::join(thread, pool, fd);
        mapping::added(thread, Range { start, len, pool, offset, prot, shadow: Shadow::default() }, flags, fd);
    } else if of_file {
        shared::mapped(fd, start, len, offset, prot);
    } else {
        dense::mapped(start, len, prot, flags);
    }
    if prot & PROT_EXEC != 0 {
        crate::translate::code::mapped(start, len, prot);
        if flags & MAP_ANONYMOUS == 0 {
            modules::mapped(thread, fd, start, len, offset);
        }
    }
    result
}

pub fn munmap(thread: &mut Thread, call: Call) -> i64 {
    let [start, len, ..] = call.args;
    if start % PAGE != 0 || len == 0 || start.checked_add(len).is_none_or(|end| end > 0x7fff_ffff_f000) {
        // SAFETY: the kernel refuses it, with the right error.
        return unsafe { raw!(nr::MUNMAP, start, len) };
    }
    let len = pages(len);
    let _guard = LOCK.lock();
    keep_off(thread, "unmap", start, len);
    crate::translate::code::unmapped(start, len);
    modules::unmapped(start, len);
    mapping::taken_away(thread, start, len);
    dense::unmapping(start, len);
    // SAFETY: the program's own memory; `keep_off` has refused that of the engine.
    unsafe { raw!(nr::MUNMAP, start, len) }
}

pub fn mremap(thread: &mut Thread, call: Call) -> i64 {
    const MREMAP_FIXED: u64 = 2;
    let [old, old_len, new_len, flags, new, _] = call.args;
    let (old_len, new_len) = (pages(old_len), pages(new_len));
    let _guard = LOCK.lock();
    if flags & MREMAP_FIXED != 0 {
        keep_off(thread, "move memory to", new, new_len);
        crate::translate::code::unmapped(new, new_len);
    }
    if old % PAGE == 0 && new_len != 0 && pm::is_pm(old) {
        return mapping::remap(thread, old, old_len, new_len, flags, new);
    }
    let code = crate::translate::code::protection(old);
    if code.is_some() {
        crate::translate::code::unmapped(old, old_len);
    }
    // SAFETY: the program's own memory; `keep_off` has refused the engine's as a goal.
    let result = unsafe { raw!(nr::MREMAP, old, call.args[1], call.args[2], flags, new) };
    if result == -sys::ENOMEM {
        crate::recover::notes::out_of_memory();
    }
    if result >= 0 && flags & MREMAP_FIXED != 0 {
        mapping::taken_away(thread, new, new_len);
        modules::unmapped(new, new_len);
    }
    if let Some(prot) = code {
        let (start, len) = if result >= 0 { (result as u64, new_len) } else { (old, old_len) };
        // Pages of translated code may have lost their write permission.
        // SAFETY: the program's own mapping, with the rights that it has.
        unsafe { raw!(nr::MPROTECT, start, len, prot) };
        crate::translate::code::mapped(start, len, prot);
    }
    result
}

pub fn mprotect(thread: &mut Thread, call: Call) -> i64 {
    let [start, len, prot, key, ..] = call.args;
    if start % PAGE != 0 {
        return -sys::EINVAL;
    }
    let len = pages(len);
    let _guard = LOCK.lock();
    let result = if mapping::concerns(start, len) {
        mapping::protect(thread, call.nr, start, len, prot, key)
    } else {
        // SAFETY: the program's own request; the engine lies where natively nothing is mapped, so only a program that looks for it names it.
        unsafe { raw!(call.nr, start, len, prot, key) }
    };
    if result == 0 {
        crate::translate::code::protected(start, len, prot);
        shared::protected(start, len, prot);
        if prot & PROT_WRITE != 0 {
            crate::translate::code::made_writable(start, len);
        }
    }
    result
}

pub fn brk(call: Call) -> i64 {
    let _guard = LOCK.lock();
    heap::set(call.args[0]) as i64
}

pub fn madvise(thread: &mut Thread, call: Call) -> i64 {
    const MADV_DONTNEED: u64 = 4;
    const MADV_FREE: u64 = 8;
    const MADV_REMOVE: u64 = 9;
    const MADV_DONTFORK: u64 = 10;
    const MADV_DOFORK: u64 = 11;
    let [start, len, advice, ..] = call.args;
    // SAFETY: the program's own request; the engine lies where natively nothing is mapped, so only a program that looks for it names it.
    let result = unsafe { raw!(nr::MADVISE, start, len, advice) };
    if result != 0 {
        return result;
    }
    if matches!(advice, MADV_DONTNEED | MADV_FREE | MADV_REMOVE)
        && let Some(prot) = crate::translate::code::protection(start)
    {
        crate::translate::code::unmapped(start, pages(len));
        crate::translate::code::mapped(start, pages(len), prot);
    }
    if !pm::any() {
        return result;
    }
    for piece in pm::pieces(start, pages(len)) {
        match advice {
            MADV_REMOVE => {
                let header = Header { address: piece.offset, ..event::header(thread, kind::FILE_ZERO) };
                let parts = [&piece.pool.to_le_bytes()[..], &[0; 4], &piece.len.to_le_bytes()];
                ring::order(thread).put(header, &parts);
            }
            // The child shall have both or neither.
            MADV_DONTFORK | MADV_DOFORK => {
                // SAFETY: the alias of a piece of the program's mapping; only a fork is told of it.
                unsafe { raw!(nr::MADVISE, layout::alias(piece.start), piece.len, advice) };
            }
            _ => {}
        }
    }
    result
}

pub fn msync(thread: &mut Thread, call: Call) -> i64 {
    const MS_SYNC: u64 = 4;
    let [start, len, flags, ..] = call.args;
    let result = sys!(nr::MSYNC, start, len, flags);
    if result != 0 || flags & MS_SYNC == 0 {
        return result;
    }
    for piece in pm::pieces(start, len) {
        let header = Header { address: piece.start, ..event::header(thread, kind::MSYNC) };
        let parts = [&piece.pool.to_le_bytes()[..], &[0; 4], &piece.offset.to_le_bytes(), &piece.len.to_le_bytes()];
        ring::order(thread).put(header, &parts);
    }
    result
}

pub fn shmat(thread: &mut Thread, call: Call) -> i64 {
    const SHM_REMAP: u64 = 0o40000;
    if call.args[2] & SHM_REMAP != 0 && call.args[1] != 0 {
        keep_off(thread, "attach shared memory at", call.args[1], PAGE);
    }
    let _guard = LOCK.lock();
    // SAFETY: the kernel chooses a free place; `keep_off` has refused one of the engine.
    unsafe { raw!(nr::SHMAT, call.args[0], call.args[1], call.args[2]) }
}

pub fn remap_file_pages(thread: &mut Thread, call: Call) -> i64 {
    if !pm::pieces(call.args[0], call.args[1]).is_empty() {
        refuse!(thread, "remap_file_pages on a pool mapping");
    }
    // SAFETY: the program's own request; the engine lies where natively nothing is mapped, so only a program that looks for it names it.
    unsafe { raw!(nr::REMAP_FILE_PAGES, call.args[0], call.args[1], call.args[2], call.args[3], call.args[4]) }
}
