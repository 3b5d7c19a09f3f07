//! Where the bytes of a pool come from when its content goes into a trace.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// The content of a pool at one moment.
#[expect(clippy::len_without_is_empty, reason = "nobody asks whether a pool is empty")]
pub trait PoolContent {
    fn len(&mut self) -> io::Result<u64>;

    /// The next range at or after `from` that may hold something other than zeros.
    fn data_after(&mut self, from: u64) -> io::Result<Option<Range<u64>>>;

    /// Fills `buffer` with what is at `offset`; what lies past the end is zero.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// The same content for a walk through all data, where that is cheaper.
    fn for_a_walk(&mut self) -> Option<Box<dyn PoolContent>> {
        None
    }
}

/// Skips holes with `SEEK_DATA`, so that huge sparse files are cheap.
impl PoolContent for File {
    fn len(&mut self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn data_after(&mut self, from: u64) -> io::Result<Option<Range<u64>>> {
        let end = self.metadata()?.len();
        if from >= end {
            return Ok(None);
        }
        let Ok(own) = reopened(self) else { return Ok(Some(from..end)) };
        match rustix::fs::seek(&own, SeekFrom::Data(from)) {
            Ok(start) if start >= end => Ok(None),
            Ok(start) => {
                let stop = rustix::fs::seek(&own, SeekFrom::Hole(start)).unwrap_or(end);
                Ok(Some(start..stop.clamp(start, end)))
            }
            Err(Errno::NXIO) => Ok(None),
            // Not every file system knows holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(from..end)),
            Err(error) => Err(error.into()),
        }
    }

    /// Without readahead: where space was reserved but never written, it fills the page cache with zeros, which from then on count as data. A pool of
    /// 160 MB of which little is used was read whole.
    fn for_a_walk(&mut self) -> Option<Box<dyn PoolContent>> {
        let own = reopened(self).ok()?;
        rustix::fs::fadvise(&own, 0, None, rustix::fs::Advice::Random).ok()?;
        Some(Box::new(own))
    }

    fn read_at(&mut self, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match FileExt::read_at(self, buffer, offset) {
                Ok(0) => {
                    buffer.fill(0);
                    return Ok(());
                }
                Ok(read) => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A fresh open file description. The descriptor may share its own with the target's (it came over a socket or from fork), and with that its file
/// position and what the kernel knows of how it is read.
fn reopened(file: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

impl PoolContent for &[u8] {
    fn len(&mut self) -> io::Result<u64> {
        Ok(<[u8]>::len(self) as u64)
    }

    fn data_after(&mut self, from: u64) -> io::Result<Option<Range<u64>>> {
        let end = <[u8]>::len(self) as u64;
        Ok((from < end).then_some(from..end))
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).map_or(<[u8]>::len(self), |offset| offset.min(<[u8]>::len(self)));
        let bytes = &self[from..];
        let have = bytes.len().min(buffer.len());
        buffer[..have].copy_from_slice(&bytes[..have]);
        buffer[have..].fill(0);
        Ok(())
    }
}
