//! From the probe's first instruction to the target's.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::arch::asm;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use wire::control::option;
use wire::record::{Header, kind};

use super::attach::{self, Request};
use super::elf::{self, Elf, PF_X, PT_GNU_STACK};
use super::image::{self, Spot};
use super::stack::Initial;
use super::{heap, identity, maps, modules, script};
use crate::refuse;
use crate::ring;
use crate::sys::{MAP_ANONYMOUS, MAP_NORESERVE, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE, nr, raw, sys};
use crate::thread::Thread;

static HIDDEN: AtomicU64 = AtomicU64::new(0);
static HIDDEN_LEN: AtomicU64 = AtomicU64::new(0);

/// The place kept where the vDSO would be.
pub fn hidden() -> Range<u64> {
    let start = HIDDEN.load(Ordering::Relaxed);
    start..start + HIDDEN_LEN.load(Ordering::Relaxed)
}

struct Start {
    initial: Initial,
    request: Request,
}

/// Called by `_start` with the stack pointer that the kernel set.
pub fn start(stack_pointer: *const u64) -> ! {
    // SAFETY: `_start` passes the pointer on unchanged.
    let initial = unsafe { Initial::read(stack_pointer) };
    attach::attach(&initial.exec_fn);
    let request = attach::take_request();
    if request.first {
        crate::syscall::operations::begin();
    }
    let mut thread = Thread::create(request.thread, request.process);
    thread.install();
    let engine_rsp = thread.engine_rsp;
    // It lives as long as its thread: `task::exit` frees it.
    let thread = Box::into_raw(thread);
    let start = Box::into_raw(Box::new(Start { initial, request }));
    // The first stack is about to be rewritten: go on on the engine's.
    // SAFETY: the engine stack is fresh and large; neither value is used here any more.
    unsafe {
        asm!("mov rsp, {stack}", "xor ebp, ebp", "call {become_target}", "ud2", stack = in(reg) engine_rsp,
             become_target = sym become_target, in("rdi") thread, in("rsi") start, options(noreturn))
    }
}

extern "C" fn become_target(thread: &mut Thread, start: *mut Start) -> ! {
    // SAFETY: made by `start` just before.
    let Start { mut initial, request } = *unsafe { Box::from_raw(start) };
    announce(thread, &request);
    crate::translate::init();
    crate::signal::init(thread);
    let hidden = unmap_vdso();

    let (fd, elf) = match open_program(&request.file, &mut initial.argv) {
        Ok(program) => program,
        Err(why) => refuse!(thread, "cannot run {}: it {why}", Text(&request.path)),
    };
    modules::set_executable(crate::pm::path_of(fd));
    let interpreter_path = elf.interpreter(fd);
    let spot = if interpreter_path.is_some() { Spot::Program } else { Spot::Next };
    let program = match image::map(thread, fd, &elf, spot) {
        Ok(image) => image,
        Err(why) => refuse!(thread, "cannot run {}: it {why}", Text(&request.path)),
    };
    modules::close(fd);
    let interpreter = interpreter_path.map(|path| map_interpreter(thread, &path));
    if hidden != 0 {
        // Natively the vDSO lies here: later mappings shall get the same places.
        // SAFETY: the kernel chooses a free place.
        let at = unsafe { raw!(nr::MMAP, 0, hidden, 0, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1i64, 0) };
        HIDDEN.store(at.max(0) as u64, Ordering::Relaxed);
        HIDDEN_LEN.store(hidden, Ordering::Relaxed);
    }
    heap::init(image::heap_start(&elf, &program, interpreter.is_none()));

    initial.describe(&program, elf.headers.len(), interpreter.as_ref());
    if ring::control().options & option::REAL_RANDOM == 0 {
        initial.set_random(wire::virtual_time::at_random());
    }
    // SAFETY: we run on the engine stack.
    let built = unsafe { initial.build(&request.path) };
    let stack = built.stack;
    clean_below(stack);
    identity::assume(&program, &built);
    allow_code_on_stack(&elf, stack);
    set_name(&request.path);
    if crate::flow::on() && crate::flow::values() {
        crate::flow::input::arguments(thread, &built.arguments);
    }

    thread.regs = Default::default();
    thread.regs.rsp = stack;
    thread.pc = interpreter.map_or(program.entry, |i| i.entry);
    thread.flags = 0x202;
    crate::trampoline::pass::start(thread)
}

/// Tells the host that a process begins, or goes on with another image.
fn announce(thread: &mut Thread, request: &Request) {
    let process = request.process.to_le_bytes();
    let pid = (sys!(nr::GETPID) as u32).to_le_bytes();
    let mut order = ring::order(thread);
    if request.first {
        let none = u32::MAX.to_le_bytes();
        order.put(Header { kind: kind::PROCESS_START, ..Header::default() }, &[&process, &none, &pid]);
    } else {
        order.put(Header { kind: kind::EXEC, ..Header::default() }, &[&request.path[..request.path.len().min(4096)]]);
    }
}

/// Takes away the vDSO and its data pages; returns their length.
fn unmap_vdso() -> u64 {
    let text = maps::read_file(c"/proc/self/maps");
    let mut len = 0;
    for line in maps::lines(&text) {
        if line.name.starts_with(b"[vvar") || line.name == b"[vdso]" {
            // SAFETY: the target does not run yet, and the engine does not use the vDSO.
            unsafe { raw!(nr::MUNMAP, line.start, line.end - line.start) };
            len += line.end - line.start;
        }
    }
    len
}

/// Opens the program, through the interpreters of scripts; rewrites the arguments as the kernel does for these.
fn open_program(path: &[u8], argv: &mut Vec<Vec<u8>>) -> Result<(i32, Elf), String> {
    let mut path = path.to_vec();
    for _ in 0..=script::MAX_DEPTH {
        let fd = open(&path)?;
        let Some(script) = script::read(fd)? else {
            return elf::read(fd).map(|elf| (fd, elf));
        };
        modules::close(fd);
        let first = [Some(script.interpreter.clone()), script.argument, Some(path)];
        argv.splice(..argv.len().min(1), first.into_iter().flatten());
        path = script.interpreter;
    }
    Err(String::from("is a script whose interpreters are scripts, too many in a row"))
}

fn open(path: &[u8]) -> Result<i32, String> {
    const O_CLOEXEC: u64 = 0o2000000;
    let mut text = path.to_vec();
    text.push(0);
    let fd = sys!(nr::OPEN, text.as_ptr(), O_CLOEXEC, 0);
    if fd < 0 {
        return Err(format!("or its interpreter ({}) cannot be opened (error {})", Text(path), -fd));
    }
    Ok(fd as i32)
}

fn map_interpreter(thread: &mut Thread, path: &[u8]) -> image::Image {
    let mapped = open(path).and_then(|fd| {
        let elf = elf::read(fd)?;
        let image = image::map(thread, fd, &elf, Spot::Next)?;
        modules::close(fd);
        Ok(image)
    });
    match mapped {
        Ok(image) => image,
        Err(why) => refuse!(thread, "the program interpreter {}: it {why}", Text(path)),
    }
}

/// A program without `PT_GNU_STACK`, or with an executable one, may run code on its stack.
fn allow_code_on_stack(elf: &Elf, stack: u64) {
    if elf.find(PT_GNU_STACK).is_some_and(|h| h.flags & PF_X == 0) {
        return;
    }
    let text = maps::read_file(c"/proc/self/maps");
    for line in maps::lines(&text) {
        if line.start <= stack && stack < line.end {
            const PROT_GROWSDOWN: u64 = 0x0100_0000;
            let prot = PROT_READ | PROT_WRITE | PROT_EXEC;
            // SAFETY: the stack's own page; it only gets more rights.
            unsafe { raw!(nr::MPROTECT, line.start, elf::PAGE, prot | PROT_GROWSDOWN) };
            // The kernel lets the stack grow to its limit; eight megabytes is the usual one.
            let lowest = line.end.saturating_sub(8 << 20);
            crate::translate::code::mapped(lowest, line.end - lowest, prot);
        }
    }
}

/// The kernel hands out a stack that is zero below its first word; `start` has left traces there.
fn clean_below(stack: u64) {
    const MADV_DONTNEED: u64 = 4;
    const TOUCHED: u64 = 64 << 10;
    let page = stack & !(elf::PAGE - 1);
    // SAFETY: stack that nobody uses any more.
    unsafe { raw!(nr::MADVISE, page - TOUCHED, TOUCHED, MADV_DONTNEED) };
    // SAFETY: stack that nobody uses any more.
    unsafe { core::ptr::write_bytes(page as *mut u8, 0, (stack - page) as usize) };
}

fn set_name(path: &[u8]) {
    const PR_SET_NAME: u64 = 15;
    let base = path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    let mut name = [0u8; 16];
    let len = base.len().min(15);
    name[..len].copy_from_slice(&base[..len]);
    // SAFETY: the kernel only reads the name, which ends with a zero.
    unsafe { raw!(nr::PRCTL, PR_SET_NAME, name.as_ptr()) };
}

/// A path for a message.
struct Text<'a>(&'a [u8]);

impl core::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.0))
    }
}
