//! The probe's connection to the host: three inherited descriptors, the control area, and the request that started this image.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicI32, Ordering};

use wire::control::{
    CONTROL_BYTES, CONTROL_FD_BELOW, Control, EXEC_BYTES, RING_BYTES, SOCKET_FD_BELOW, WIRE_VERSION, option,
};
use wire::cover::COVER_BYTES;
use wire::recover::NOTES_BYTES;

use crate::fail;
use crate::layout;
use crate::ring;
use crate::sys::{MAP_FIXED_NOREPLACE, MAP_SHARED, PROT_READ, PROT_WRITE, nr, raw, sys};

static PROBE_FD: AtomicI32 = AtomicI32::new(-1);

/// The descriptor of the probe's own file; `exec` starts it again.
pub fn probe_fd() -> i32 {
    PROBE_FD.load(Ordering::Relaxed)
}

/// The socket over which descriptors of pools go to the host.
pub fn socket_fd() -> i32 {
    probe_fd() - SOCKET_FD_BELOW
}

/// Is this one of the descriptors that the target must not see?
pub fn is_hidden(fd: i32) -> bool {
    fd >= socket_fd() && fd <= probe_fd()
}

/// Maps the control area and the ring. `exec_fn` is what the kernel put into `AT_EXECFN`: "/dev/fd/P".
pub fn attach(exec_fn: &[u8]) {
    let digits = exec_fn.strip_prefix(b"/dev/fd/").unwrap_or_default();
    let number = digits.iter().take_while(|b| b.is_ascii_digit()).fold(0i32, |n, b| n * 10 + i32::from(b - b'0'));
    if digits.is_empty() || number < SOCKET_FD_BELOW {
        fail::early("fencepost: the probe is not a program to be started by hand\n");
    }
    PROBE_FD.store(number, Ordering::Relaxed);
    let fd = number - CONTROL_FD_BELOW;
    let map = |at: u64, len: usize, offset: usize| {
        let flags = MAP_SHARED | MAP_FIXED_NOREPLACE;
        // SAFETY: `MAP_FIXED_NOREPLACE` takes no place where something lies.
        if unsafe { raw!(nr::MMAP, at, len, PROT_READ | PROT_WRITE, flags, fd, offset) } != at as i64 {
            fail::early("fencepost: the probe cannot map its control area\n");
        }
    };
    map(layout::CONTROL, CONTROL_BYTES, 0);
    map(layout::RING, RING_BYTES, CONTROL_BYTES);
    map(layout::RING + RING_BYTES as u64, RING_BYTES, CONTROL_BYTES);
    if ring::control().version != WIRE_VERSION {
        fail::early("fencepost: probe and host are of different versions\n");
    }
    if ring::control().options & option::RECOVER != 0 {
        map(layout::NOTES, NOTES_BYTES, CONTROL_BYTES + RING_BYTES);
    }
    if crate::cover::on() {
        map(layout::COVER, COVER_BYTES, CONTROL_BYTES + RING_BYTES + NOTES_BYTES);
    }
}

/// What this image was asked to be.
#[derive(Debug)]
pub struct Request {
    /// The first image of the recording, not the result of an exec.
    pub first: bool,
    pub process: u32,
    pub thread: u32,
    /// The program's path as it was given to exec.
    pub path: Vec<u8>,
    /// The path to open, if that is another one.
    pub file: Vec<u8>,
}

const FREE: u32 = u32::MAX;

/// Takes the request that was left for this process.
pub fn take_request() -> Request {
    let own = sys!(nr::GETPID) as u32;
    let control: &Control = ring::control();
    // A slot for our own pid first: pid 0 stands for the first process only.
    for wanted in [own, 0] {
        for slot in &control.exec_slots {
            if slot.pid.load(Ordering::Acquire) == wanted {
                let len = (slot.path_len as usize).min(EXEC_BYTES - 16);
                let mut paths = slot.path[..len].splitn(2, |b| *b == 0);
                let path = paths.next().unwrap_or_default().to_vec();
                let file = paths.next().map_or_else(|| path.clone(), <[u8]>::to_vec);
                let request = Request { first: wanted == 0, process: slot.process, thread: slot.thread, path, file };
                slot.pid.store(FREE, Ordering::Release);
                return request;
            }
        }
    }
    fail::early("fencepost: the probe finds no request for its process\n")
}
