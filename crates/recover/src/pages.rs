//! What a pool holds: its length, and the pages that are not all zeros. Contents that have most pages in common share them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

pub const PAGE: usize = 4096;

type Page = [u8; PAGE];
const ZEROS: Page = [0; PAGE];

/// Equal contents are equal values: no page is all zeros, and beyond the end there are only zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    len: u64,
    pages: BTreeMap<u64, Arc<Page>>,
}

impl Content {
    /// All zeros.
    pub fn zeros(len: u64) -> Content {
        Content { len, pages: BTreeMap::new() }
    }

    pub fn of_bytes(bytes: &[u8]) -> Content {
        let mut content = Content::zeros(bytes.len() as u64);
        content.put(0, bytes);
        content
    }

    /// What a file holds. Where the file system knows holes, they are not read.
    pub fn of(file: &File) -> io::Result<Content> {
        let mut content = Content::zeros(file.metadata()?.len());
        let mut buffer = vec![0; 64 * PAGE];
        let mut at = 0;
        while let Some((from, to)) = data(file, at, content.len)? {
            at = from / PAGE as u64 * PAGE as u64;
            while at < to {
                let room = buffer.len().min(((to - at) as usize).next_multiple_of(PAGE));
                read_zeros_beyond(file, at, &mut buffer[..room])?;
                content.put(at, &buffer[..room]);
                at += room as u64;
            }
        }
        Ok(content)
    }

    /// Into an empty file of this length.
    pub fn write(&self, file: &File) -> io::Result<()> {
        file.set_len(self.len)?;
        for (number, page) in &self.pages {
            let at = number * PAGE as u64;
            let inside = (self.len - at).min(PAGE as u64) as usize;
            file.write_all_at(&page[..inside], at)?;
        }
        Ok(())
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number and bytes of each page that is not all zeros.
    pub fn pages(&self) -> impl Iterator<Item = (u64, &Arc<Page>)> {
        self.pages.iter().map(|(number, page)| (*number, page))
    }

    /// A page; zeros if it is none of those.
    pub fn page(&self, number: u64) -> &Page {
        self.pages.get(&number).map_or(&ZEROS, |page| page)
    }

    /// Does another content share this page?
    pub fn shares(&self, other: &Content, number: u64) -> bool {
        match (self.pages.get(&number), other.pages.get(&number)) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Changes the length; what is cut off is lost.
    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            let last = len / PAGE as u64;
            self.pages.retain(|number, _| *number <= last);
            let tail = (len - last * PAGE as u64) as usize;
            let mut page = *self.page(last);
            page[tail..].fill(0);
            self.set_page(last, &page);
        }
        self.len = len;
    }

    /// Puts bytes; those beyond the end are left out.
    pub fn put(&mut self, offset: u64, bytes: &[u8]) {
        let inside = self.len.saturating_sub(offset).min(bytes.len() as u64) as usize;
        let (mut at, mut rest) = (offset, &bytes[..inside]);
        while !rest.is_empty() {
            let (number, within) = (at / PAGE as u64, (at % PAGE as u64) as usize);
            let (here, next) = rest.split_at(rest.len().min(PAGE - within));
            if self.page(number)[within..within + here.len()] != *here {
                let mut page = *self.page(number);
                page[within..within + here.len()].copy_from_slice(here);
                self.set_page(number, &page);
            }
            at += here.len() as u64;
            rest = next;
        }
    }

    fn set_page(&mut self, number: u64, page: &Page) {
        match *page == ZEROS {
            true => drop(self.pages.remove(&number)),
            false => drop(self.pages.insert(number, Arc::new(*page))),
        }
    }
}

/// The next byte range from `at` on that is no hole.
fn data(file: &File, at: u64, len: u64) -> io::Result<Option<(u64, u64)>> {
    if at >= len {
        return Ok(None);
    }
    let seek = |from: u64, whence: i32| {
        // SAFETY: plain lseek on an open descriptor.
        match unsafe { libc::lseek(file.as_raw_fd(), from as i64, whence) } {
            -1 => Err(io::Error::last_os_error()),
            place => Ok(place as u64),
        }
    };
    match seek(at, libc::SEEK_DATA) {
        Ok(from) => Ok(Some((from.max(at), seek(from, libc::SEEK_HOLE)?.min(len)))),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(Some((at, len))),
        Err(error) => Err(error),
    }
}

/// Fills `bytes` from a file; what lies beyond its end is zero.
pub(crate) fn read_zeros_beyond(file: &File, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes[filled..].fill(0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The obvious way, beside it.
    fn check(content: &Content, bytes: &[u8]) {
        assert_eq!(*content, Content::of_bytes(bytes));
        let file = tempfile::tempfile().unwrap();
        content.write(&file).unwrap();
        let mut back = vec![1; bytes.len()];
        read_zeros_beyond(&file, 0, &mut back).unwrap();
        assert_eq!(back, bytes);
        assert_eq!(Content::of(&file).unwrap(), *content);
    }

    #[test]
    fn contents_are_those_of_a_vector() {
        let mut bytes = vec![0u8; 9 * PAGE + 100];
        let mut content = Content::zeros(bytes.len() as u64);
        let mut state = 7u64;
        for round in 0..200u64 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (at, len) = ((state >> 33) as usize % 45_000, (state >> 20) as usize % 6000);
            if round % 10 == 9 {
                bytes.resize(at, 0);
                content.set_len(at as u64);
            } else {
                let value = if round % 3 == 0 { 0 } else { round as u8 };
                content.put(at as u64, &vec![value; len]);
                let inside = at.min(bytes.len())..(at + len).min(bytes.len());
                bytes[inside].fill(value);
            }
            check(&content, &bytes);
        }
    }
}
