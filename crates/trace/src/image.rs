//! The content of a pool while the events of a trace are replayed onto it. Only pages that are not zero exist.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::event::{Event, EventKind, Place, PoolId};
use crate::pages::PAGE;

const PAGE_U64: u64 = PAGE as u64;

/// The bytes of one pool. Copies share their pages until one of them changes a page.
#[derive(Clone, Debug, Default)]
pub struct PoolImage {
    pages: FxHashMap<u64, Arc<[u8; PAGE]>>,
    len: u64,
}

/// An event that reaches beyond what any file can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

impl PoolImage {
    pub fn new(len: u64) -> PoolImage {
        PoolImage { pages: FxHashMap::default(), len }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Numbers of the pages that exist, in no order.
    pub fn page_numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.pages.keys().copied()
    }

    pub fn page(&self, number: u64) -> Option<&[u8; PAGE]> {
        self.pages.get(&number).map(|page| &**page)
    }

    /// # Errors
    /// If the range reaches beyond the largest offset there is.
    pub fn write(&mut self, mut offset: u64, mut bytes: &[u8]) -> Result<(), OutOfRange> {
        offset.checked_add(bytes.len() as u64).ok_or(OutOfRange)?;
        while !bytes.is_empty() {
            let at = (offset % PAGE_U64) as usize;
            let (now, later) = bytes.split_at(bytes.len().min(PAGE - at));
            let page = self.pages.entry(offset / PAGE_U64).or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(page)[at..at + now.len()].copy_from_slice(now);
            offset += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Makes a range zero; its end may lie beyond the pool.
    pub fn zero(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let (first, last) = (offset / PAGE_U64, end.div_ceil(PAGE_U64));
        let touched = |number: &u64| (first..last).contains(number);
        let numbers: Vec<u64> = if last - first < self.pages.len() as u64 {
            (first..last).collect()
        } else {
            self.pages.keys().copied().filter(touched).collect()
        };
        for number in numbers {
            let start = number * PAGE_U64;
            let from = offset.saturating_sub(start).min(PAGE_U64) as usize;
            let to = (end - start).min(PAGE_U64) as usize;
            if (from, to) == (0, PAGE) {
                self.pages.remove(&number);
            } else if let Some(page) = self.pages.get_mut(&number) {
                Arc::make_mut(page)[from..to].fill(0);
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
