//! Which lines of the guaranteed image have changed, for whoever keeps a copy of it.

use std::sync::atomic::{AtomicU64, Ordering};

use persistency::line::LineId;
use rustc_hash::{FxHashMap, FxHashSet};

/// How far a copy has followed a guaranteed image. A new one has seen nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ChangeCursor(Option<(LogId, u64)>);

/// Tells the logs of this process apart: a cursor of another one has seen nothing of this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogId(u64);

/// What a copy has to do to be the guaranteed image again. Lengths of pools are not in here: compare them.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct GuaranteedChanges {
    /// The copy may hold anything: everything has to be put in place, `lines` is empty.
    pub all: bool,
    /// Ascending, each once.
    pub lines: Vec<LineId>,
}

/// The lines in the order of their changes. Of each line the newest change is enough, so the log is thinned out now
/// and then and never has many more entries than lines that ever changed.
#[derive(Debug)]
pub(crate) struct ChangeLog {
    id: LogId,
    entries: Vec<(u64, LineId)>,
    next: u64,
    thin_at: usize,
}

const THIN_AT: usize = 1 << 14;

impl Default for ChangeLog {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = LogId(NEXT.fetch_add(1, Ordering::Relaxed));
        ChangeLog { id, entries: Vec::new(), next: 0, thin_at: THIN_AT }
    }
}

impl ChangeLog {
    #[inline]
    pub fn add(&mut self, line: LineId) {
        // Runs of stores to one line are common. A cursor may stand behind the entry, so it gets a new number.
        if let Some(last) = self.entries.last_mut().filter(|last| last.1 == line) {
            last.0 = self.next;
        } else {
            self.entries.push((self.next, line));
        }
        self.next += 1;
        if self.entries.len() >= self.thin_at {
            self.thin();
        }
    }

    /// All lines that ever changed have just changed again.
    pub fn repeat_all(&mut self) {
        let lines: FxHashSet<LineId> = self.entries.iter().map(|&(_, line)| line).collect();
        lines.into_iter().for_each(|line| self.add(line));
    }

    fn thin(&mut self) {
        let mut newest: FxHashMap<LineId, u64> = FxHashMap::default();
        newest.extend(self.entries.iter().map(|&(number, line)| (line, number)));
        self.entries.retain(|(number, line)| newest[line] == *number);
        self.thin_at = THIN_AT.max(self.entries.len() * 2);
    }

    pub fn since(&self, cursor: &mut ChangeCursor) -> GuaranteedChanges {
        let Some((_, seen)) = cursor.0.replace((self.id, self.next)).filter(|(id, _)| *id == self.id) else {
            return GuaranteedChanges { all: true, lines: Vec::new() };
        };
        let first = self.entries.partition_point(|&(number, _)| number < seen);
        let mut lines: Vec<LineId> = self.entries[first..].iter().map(|&(_, line)| line).collect();
        lines.sort_unstable();
        lines.dedup();
        GuaranteedChanges { all: false, lines }
    }
}

#[cfg(test)]
mod tests {
    use trace::event::{LineNo, PoolId};

    use super::*;

    fn line(line: u64) -> LineId {
        LineId { pool: PoolId(0), line: LineNo(line) }
    }

    #[test]
    fn each_cursor_gets_what_changed_since_it_asked() {
        let mut log = ChangeLog::default();
        let (mut often, mut seldom) = (ChangeCursor::default(), ChangeCursor::default());
        assert!(log.since(&mut often).all && log.since(&mut seldom).all);
        log.add(line(3));
        assert_eq!(log.since(&mut often).lines, [line(3)]);
        // The same line again, right after the cursor was told of it.
        log.add(line(3));
        assert_eq!(log.since(&mut often).lines, [line(3)]);
        assert_eq!(log.since(&mut often).lines, []);
        log.add(line(1));
        assert_eq!(log.since(&mut seldom).lines, [line(1), line(3)]);
    }

    #[test]
    fn a_cursor_of_another_log_has_seen_nothing() {
        let (log, other) = (ChangeLog::default(), ChangeLog::default());
        let mut cursor = ChangeCursor::default();
        log.since(&mut cursor);
        assert!(!log.since(&mut cursor).all);
        assert!(other.since(&mut cursor).all);
    }

    #[test]
    fn the_log_is_thinned_without_losing_a_line() {
        let mut log = ChangeLog::default();
        let mut cursor = ChangeCursor::default();
        log.since(&mut cursor);
        for n in 0..200_000 {
            log.add(line(n % 100));
        }
        assert!(log.entries.len() <= THIN_AT);
        assert_eq!(log.since(&mut cursor).lines, (0..100).map(line).collect::<Vec<_>>());
    }
}
