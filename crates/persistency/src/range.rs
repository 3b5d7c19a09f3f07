//! Ranges of a pool: cut into the parts that lie in one line each.

use trace::event::{LineNo, Place, PoolOffset};

use crate::line::{LINE_BYTES, LineId};

/// The unit of `msync`: POSIX speaks of "those whole pages containing any part" of the range.
const PAGE_BYTES: u64 = 4096;

/// One line's part of a longer range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinePart {
    pub line: LineId,
    /// The first byte inside the line.
    pub start: u8,
    pub len: u8,
    /// Where this part begins inside the range.
    pub at: usize,
}

/// Cuts `len` bytes from `place` at line boundaries, by ascending address.
pub(crate) fn line_parts(place: Place, len: usize) -> impl Iterator<Item = LinePart> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= len {
            return None;
        }
        let offset = PoolOffset(place.offset.0.wrapping_add(at as u64));
        let start = offset.0 as usize % LINE_BYTES;
        let here = (LINE_BYTES - start).min(len - at);
        let part = LinePart {
            line: LineId { pool: place.pool, line: offset.line() },
            start: start as u8,
            len: here as u8,
            at,
        };
        at += here;
        Some(part)
    })
}

/// The lines of all pages that the range touches: first line and the line after the last.
pub(crate) fn page_lines(place: Place, len: u64) -> (LineNo, LineNo) {
    let first = place.offset.0 / PAGE_BYTES * PAGE_BYTES;
    let end = place.offset.0.saturating_add(len).checked_next_multiple_of(PAGE_BYTES).unwrap_or(u64::MAX);
    (LineNo(first / LINE_BYTES as u64), LineNo(end.div_ceil(LINE_BYTES as u64)))
}

/// The lines that lie wholly inside the range: first line and the line after the last.
pub(crate) fn whole_lines(place: Place, len: u64) -> (LineNo, LineNo) {
    let first = place.offset.0.div_ceil(LINE_BYTES as u64);
    let end = place.offset.0.saturating_add(len) / LINE_BYTES as u64;
    (LineNo(first), LineNo(end.max(first)))
}

#[cfg(test)]
mod tests {
    use trace::event::PoolId;

    use super::*;

    fn place(offset: u64) -> Place {
        Place { pool: PoolId(0), offset: PoolOffset(offset) }
    }

    #[test]
    fn parts_are_cut_at_line_boundaries() {
        let parts: Vec<_> = line_parts(place(60), 72).map(|p| (p.line.line.0, p.start, p.len, p.at)).collect();
        assert_eq!(parts, [(0, 60, 4, 0), (1, 0, 64, 4), (2, 0, 4, 68)]);
        assert_eq!(line_parts(place(60), 0).count(), 0);
    }

    #[test]
    fn msync_rounds_to_pages() {
        assert_eq!(page_lines(place(4095), 2), (LineNo(0), LineNo(128)));
        assert_eq!(page_lines(place(4096), 1), (LineNo(64), LineNo(128)));
        assert_eq!(page_lines(place(0), u64::MAX), (LineNo(0), LineNo(u64::MAX.div_ceil(64))));
    }

    #[test]
    fn whole_lines_leave_the_boundaries_out() {
        assert_eq!(whole_lines(place(1), 200), (LineNo(1), LineNo(3)));
        assert_eq!(whole_lines(place(1), 10), (LineNo(1), LineNo(1)));
        assert_eq!(whole_lines(place(64), 64), (LineNo(1), LineNo(2)));
    }
}
