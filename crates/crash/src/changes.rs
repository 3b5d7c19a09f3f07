//! Which lines of the guaranteed image have changed, for whoever keeps a copy of it.
//!
//! The cursor holds the image as the copy has it. Images [share](PoolImage) what they have in common, so this costs a copy of each page that changes
//! after it, and to find what differs takes time for those pages only. Nothing is written down while the image changes, and the cursor is right at
//! any other place of the trace and for any other walk: whoever looks into one failing state asks several walks in turn, and the slot of recovery, which
//! follows all of them, would else have to be filled anew each time.

use persistency::line::{LINE_BYTES, LineId};
use trace::PoolImage;
use trace::event::{LineNo, PoolId};

use crate::image::{LINES_PER_PAGE, PAGE_BYTES};

/// How far a copy has followed a guaranteed image. A new one has seen nothing.
#[derive(Clone, Debug, Default)]
pub struct ChangeCursor(Option<Vec<PoolImage>>);

/// What a copy has to do to be the guaranteed image again. Lengths of pools are not in here: compare them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GuaranteedChanges {
    /// The copy may hold anything: everything has to be put in place, `lines` is empty.
    pub all: bool,
    /// Ascending, each once.
    pub lines: Vec<LineId>,
}

impl ChangeCursor {
    /// What has changed since the last time; the copy is told now.
    pub(crate) fn follow(&mut self, pools: &[PoolImage]) -> GuaranteedChanges {
        let Some(known) = self.0.as_mut().filter(|known| known.len() == pools.len()) else {
            self.0 = Some(pools.to_vec());
            return GuaranteedChanges { all: true, lines: Vec::new() };
        };
        let mut lines = Vec::new();
        for ((number, now), before) in (0..).map(PoolId).zip(pools).zip(known) {
            differing(number, before, now, &mut lines);
            before.clone_from(now);
        }
        GuaranteedChanges { all: false, lines }
    }
}

/// The lines of a pool that may not be what they were.
fn differing(pool: PoolId, before: &PoolImage, now: &PoolImage, lines: &mut Vec<LineId>) {
    // What was stored past the end of the file shows once the file is longer, and no longer does once it is shorter.
    let certain = match before.len() == now.len() {
        true => u64::MAX,
        false => before.len().min(now.len()) / LINE_BYTES as u64,
    };
    let mut add = |page: u64, differs: &dyn Fn(usize) -> bool| {
        let first = page * LINES_PER_PAGE;
        let of_page = (0..LINES_PER_PAGE).filter(|line| first + line >= certain || differs(*line as usize));
        lines.extend(of_page.map(|line| LineId { pool, line: LineNo(first + line) }));
    };
    let zeros = [0; LINE_BYTES];
    before.differing(now, |page, before, now| {
        let content = |page: Option<&[u8; PAGE_BYTES as usize]>, line: usize| -> [u8; LINE_BYTES] {
            page.map_or(zeros, |page| *page.as_chunks().0.get(line).unwrap_or(&zeros))
        };
        add(page, &|line| content(before, line) != content(now, line));
    });
    if certain < u64::MAX {
        let from = certain / LINES_PER_PAGE;
        let shared = now.page_numbers_in(from..u64::MAX);
        shared.for_each(|page| add(page, &|_| false));
        lines.sort_unstable();
        lines.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line: u64) -> LineId {
        LineId { pool: PoolId(0), line: LineNo(line) }
    }

    fn write(pools: &mut [PoolImage], line: u64, byte: u8) {
        pools[0].write(line * 64 + 5, &[byte]).unwrap();
    }

    #[test]
    fn each_cursor_gets_what_changed_since_it_asked() {
        let mut pools = vec![PoolImage::new(1 << 20)];
        let (mut often, mut seldom) = (ChangeCursor::default(), ChangeCursor::default());
        assert!(often.follow(&pools).all && seldom.follow(&pools).all);
        write(&mut pools, 3, 1);
        assert_eq!(often.follow(&pools).lines, [line(3)]);
        // The same line again, right after the cursor was told of it.
        write(&mut pools, 3, 2);
        assert_eq!(often.follow(&pools).lines, [line(3)]);
        assert_eq!(often.follow(&pools).lines, []);
        write(&mut pools, 700, 1);
        assert_eq!(seldom.follow(&pools).lines, [line(3), line(700)]);
    }

    #[test]
    fn a_cursor_is_right_for_the_image_of_another_place() {
        let mut pools = vec![PoolImage::new(1 << 20)];
        write(&mut pools, 9, 1);
        let earlier = pools.clone();
        write(&mut pools, 3, 1);
        pools[0].zero(9 * 64, 64);
        let mut cursor = ChangeCursor::default();
        cursor.follow(&pools);
        for _ in 0..2 {
            assert_eq!(cursor.follow(&earlier), GuaranteedChanges { all: false, lines: vec![line(3), line(9)] });
            assert_eq!(cursor.follow(&pools).lines, [line(3), line(9)]);
        }
        let other = [PoolImage::new(64), PoolImage::new(64)];
        assert!(cursor.follow(&other).all, "these are not the same pools");
    }

    /// Past the end of a file is memory that no file holds: it is zero in any copy.
    #[test]
    fn what_was_past_the_end_has_changed_when_the_end_has() {
        let mut pools = vec![PoolImage::new(100)];
        write(&mut pools, 0, 1);
        write(&mut pools, 1, 7);
        pools[0].write(110, &[3]).unwrap();
        let mut cursor = ChangeCursor::default();
        cursor.follow(&pools);
        // The image has the same bytes; the file now holds one more of them.
        let mut longer = vec![PoolImage::new(200)];
        write(&mut longer, 0, 1);
        write(&mut longer, 1, 7);
        longer[0].write(110, &[3]).unwrap();
        let found = cursor.follow(&longer).lines;
        assert!(found.contains(&line(1)) && !found.contains(&line(0)), "{found:?}");
        assert!(cursor.follow(&pools).lines.contains(&line(1)));
    }
}
