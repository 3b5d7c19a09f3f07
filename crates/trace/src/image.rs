//! The content of a pool while the events of a trace are replayed onto it. Only pages that are not zero exist.

use std::ops::Range;

use crate::event::{Event, EventKind, Place, PoolId};
use crate::page_tree::PageTree;
use crate::pages::PAGE;

const PAGE_U64: u64 = PAGE as u64;

/// The bytes of one pool. Copies share their pages until one of them changes a page, and cost the same however many there are.
#[derive(Clone, Debug, Default)]
pub struct PoolImage {
    pages: PageTree,
    len: u64,
}

/// An event that reaches beyond what any file can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

impl PoolImage {
    pub fn new(len: u64) -> PoolImage {
        PoolImage { pages: PageTree::default(), len }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Numbers of the pages that exist, ascending.
    pub fn page_numbers(&self) -> impl Iterator<Item = u64> + use<> {
        self.pages.numbers(0..u64::MAX).into_iter()
    }

    /// Numbers of the pages of a range that exist, ascending.
    pub fn page_numbers_in(&self, range: Range<u64>) -> impl Iterator<Item = u64> + use<> {
        self.pages.numbers(range).into_iter()
    }

    pub fn page(&self, number: u64) -> Option<&[u8; PAGE]> {
        self.pages.get(number)
    }

    /// Calls `each` with the number of every page that the two do not share and with its content in both, ascending. Pages that are equal without
    /// being shared are among them. Between copies it costs what was changed since.
    pub fn differing<'i>(
        &'i self,
        other: &'i PoolImage,
        mut each: impl FnMut(u64, Option<&'i [u8; PAGE]>, Option<&'i [u8; PAGE]>),
    ) {
        self.pages.differing(&other.pages, &mut each);
    }

    /// # Errors
    /// If the range reaches beyond the largest offset there is.
    pub fn write(&mut self, mut offset: u64, mut bytes: &[u8]) -> Result<(), OutOfRange> {
        offset.checked_add(bytes.len() as u64).ok_or(OutOfRange)?;
        while !bytes.is_empty() {
            let at = (offset % PAGE_U64) as usize;
            let (now, later) = bytes.split_at(bytes.len().min(PAGE - at));
            self.pages.get_or_insert(offset / PAGE_U64)[at..at + now.len()].copy_from_slice(now);
            offset += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Makes a range zero; its end may lie beyond the pool.
    pub fn zero(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        for number in self.pages.numbers(offset / PAGE_U64..end.div_ceil(PAGE_U64)) {
            let start = number * PAGE_U64;
            let from = offset.saturating_sub(start).min(PAGE_U64) as usize;
            let to = (end - start).min(PAGE_U64) as usize;
            if (from, to) == (0, PAGE) {
                self.pages.remove(number);
            } else {
                self.pages.get_or_insert(number)[from..to].fill(0);
            }
        }
    }

    /// Whatever lies beyond the end of a file is gone when it shrinks, and zero when it grows again.
    pub fn resize(&mut self, len: u64) {
        let end = self.len.min(len);
        self.zero(end, u64::MAX - end);
        self.len = len;
    }

    fn place(&mut self, place: Place, bytes: &[u8]) -> Result<(), OutOfRange> {
        self.write(place.offset.0, bytes)
    }
}

/// Replays one event: those that change pool content change the image that `image` returns.
pub fn replay<'i>(event: &Event<'_>, mut image: impl FnMut(PoolId) -> &'i mut PoolImage) -> Result<(), OutOfRange> {
    match event.kind {
        EventKind::Store { place, bytes, .. }
        | EventKind::Rmw { place, new: bytes, .. }
        | EventKind::KernelWrite { place, bytes }
        | EventKind::FileWrite { place, bytes } => image(place.pool).place(place, bytes)?,
        EventKind::FileZero { place, len } => image(place.pool).zero(place.offset.0, len),
        EventKind::Resize { pool, len } => image(pool).resize(len),
        _ => {}
    }
    Ok(())
}
