//! The host's own descriptors of the pools: for their content at the start and at the end.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use trace::PoolInfo;
use trace::event::PoolId;

use super::error::HostError;

/// A pool as the probe numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct WirePool(pub u32);

/// Pools met so far.
#[derive(Debug)]
pub(super) struct PoolFiles {
    socket: OwnedFd,
    /// Descriptors that came before their `POOL` record was read.
    early: HashMap<WirePool, OwnedFd>,
    ids: HashMap<WirePool, PoolId>,
    files: Vec<(PoolId, PoolInfo, File)>,
}

impl PoolFiles {
    pub fn new(socket: OwnedFd) -> PoolFiles {
        PoolFiles { socket, early: HashMap::new(), ids: HashMap::new(), files: Vec::new() }
    }

    pub fn id(&self, pool: WirePool) -> Option<PoolId> {
        self.ids.get(&pool).copied()
    }

    pub fn infos(&self) -> impl Iterator<Item = &PoolInfo> {
        self.files.iter().map(|(_, info, _)| info)
    }

    /// Takes the descriptor of a new pool from the socket, opened again for reading: the target's own may be
    /// write-only, and its file position is the target's.
    pub fn receive(&mut self, pool: WirePool, path: &str) -> Result<File, HostError> {
        let missing = |source| HostError::PoolMissing { path: path.to_owned(), source };
        let fd = loop {
            if let Some(fd) = self.early.remove(&pool) {
                break fd;
            }
            let (number, fd) = receive_descriptor(&self.socket).map_err(missing)?;
            self.early.insert(WirePool(number), fd);
        };
        let again = File::open(format!("/proc/self/fd/{}", fd.as_raw_fd()));
        Ok(again.unwrap_or_else(|_| File::from(fd)))
    }

    pub fn add(&mut self, pool: WirePool, id: PoolId, info: PoolInfo, file: File) {
        self.ids.insert(pool, id);
        self.files.push((id, info, file));
    }

    /// The files, for their final content.
    pub fn into_files(self) -> Vec<(PoolId, PoolInfo, File)> {
        self.files
    }
}

/// One packet: a `u32` and a descriptor.
fn receive_descriptor(socket: &OwnedFd) -> io::Result<(u32, OwnedFd)> {
    let mut number = [0_u8; 4];
    // Room for one descriptor with its header, aligned as a header must be.
    let mut control = [0_u64; 8];
    let mut data = libc::iovec { iov_base: number.as_mut_ptr().cast(), iov_len: number.len() };
    // SAFETY: a zeroed `msghdr` is valid.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = mem::size_of_val(&control);
    loop {
        let mut ready = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // The probe sends the descriptor before the record; the limit only matters if it was killed in between.
        // SAFETY: one live `pollfd`.
        match unsafe { libc::poll(&raw mut ready, 1, 5000) } {
            0 => return Err(io::ErrorKind::TimedOut.into()),
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => continue,
            -1 => return Err(io::Error::last_os_error()),
            _ => {}
        }
        let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
        // SAFETY: all pointers in `message` refer to live local buffers of the lengths given.
        match unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            4 => break,
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    // SAFETY: the kernel filled the control buffer that `message` points to.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    if header.is_null() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: not null, so it points to a whole header inside the control buffer.
    let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
    if level != libc::SOL_SOCKET || kind != libc::SCM_RIGHTS {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: SCM_RIGHTS carries descriptors; the buffer has room for one, which is now ours.
    let fd = unsafe { OwnedFd::from_raw_fd(ptr::read_unaligned(libc::CMSG_DATA(header).cast::<i32>())) };
    Ok((u32::from_le_bytes(number), fd))
}
