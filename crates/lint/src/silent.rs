//! Stores that change nothing: `*p = *p`, a value that was there already.
//!
//! Whether such a store becomes durable makes no difference to what a power failure can leave, so nobody needs to flush it. The pass over the
//! trace knows no contents and takes it for a store like any other. Therefore the lines that have lost stores at the end are looked at
//! once more, with their contents, and without the stores that changed nothing: what is lost then, counts. Traces without lost stores
//! that a rule would report are read once.

use persistency::line::{LINE_BYTES, LineId};
use persistency::tracker::Tracker;
use rustc_hash::FxHashMap;
use trace::event::{Event, EventId, EventKind, FenceKind, FlushTarget, Place, PoolId, PoolOffset};
use trace::{ReadError, TraceReader};

const LINE: u64 = LINE_BYTES as u64;

/// Feeds a new tracker all that concerns these lines, except stores that change nothing. `tag` makes of an event's number and shape what
/// the tracker shall keep of it.
pub(crate) fn track(
    reader: &TraceReader,
    lines: impl Iterator<Item = LineId>,
    mut tracker: Tracker,
    tag: impl Fn(EventId, usize) -> EventId,
) -> Result<Tracker, ReadError> {
    let mut contents = Contents::initial(reader, lines)?;
    reader.events().for_each_with_shape(|id, shape, event| {
        match contents.take(event) {
            Matters::Not => {}
            Matters::Whole => drop(tracker.apply(tag(id, shape as usize), event)),
            Matters::AsFence => {
                let kind = EventKind::Fence { kind: FenceKind::Locked };
                tracker.apply(tag(id, shape as usize), &Event { kind, ..event.clone() });
            }
        }
        Ok::<(), ReadError>(())
    })?;
    Ok(tracker)
}

/// What an event has to do with the lines that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matters {
    Not,
    Whole,
    /// An atomic instruction that wrote what was there.
    AsFence,
}

/// What some lines contain, in the order of the program.
#[derive(Debug)]
struct Contents(FxHashMap<LineId, [u8; LINE_BYTES]>);

impl Contents {
    fn initial(reader: &TraceReader, lines: impl Iterator<Item = LineId>) -> Result<Contents, ReadError> {
        let mut contents = Contents(lines.map(|line| (line, [0; LINE_BYTES])).collect());
        for pool in (0..reader.tables().pools.len() as u32).map(PoolId) {
            reader.initial_pages(pool, |page, bytes| {
                let offset = PoolOffset(page * bytes.len() as u64);
                contents.write(Place { pool, offset }, bytes);
            })?;
        }
        Ok(contents)
    }

    /// Takes what an event changes.
    fn take(&mut self, event: &Event<'_>) -> Matters {
        let if_so = |matters: bool| if matters { Matters::Whole } else { Matters::Not };
        match event.kind {
            EventKind::Store { place, bytes, .. }
            | EventKind::KernelWrite { place, bytes }
            | EventKind::FileWrite { place, bytes } => if_so(self.write(place, bytes)),
            EventKind::Rmw { place, new, .. } if self.write(place, new) => Matters::Whole,
            EventKind::Rmw { .. } => Matters::AsFence,
            EventKind::Flush { target: FlushTarget::Pool(place), .. } => if_so(self.0.contains_key(&LineId::of(place))),
            EventKind::Flush { .. } | EventKind::Load { .. } => Matters::Not,
            EventKind::FileZero { place, len } => {
                self.zero(place, len);
                Matters::Whole
            }
            EventKind::Resize { pool, len } => {
                self.zero(Place { pool, offset: PoolOffset(len) }, u64::MAX);
                Matters::Whole
            }
            _ => Matters::Whole,
        }
    }

    /// Whether that changed anything.
    fn write(&mut self, place: Place, bytes: &[u8]) -> bool {
        let mut changed = false;
        let (start, end) = (place.offset.0, place.offset.0 + bytes.len() as u64);
        for at in (start - start % LINE..end).step_by(LINE_BYTES) {
            let line = LineId::of(Place { pool: place.pool, offset: PoolOffset(at) });
            let Some(content) = self.0.get_mut(&line) else { continue };
            let (from, to) = (start.max(at), end.min(at + LINE));
            let old = &mut content[(from - at) as usize..(to - at) as usize];
            let new = &bytes[(from - start) as usize..(to - start) as usize];
            changed |= old != new;
            old.copy_from_slice(new);
        }
        changed
    }

    fn zero(&mut self, place: Place, len: u64) {
        let (start, end) = (place.offset.0, place.offset.0.saturating_add(len));
        for (line, content) in &mut self.0 {
            let first = line.start();
            if first.pool != place.pool {
                continue;
            }
            for (offset, byte) in (first.offset.0..).zip(content.iter_mut()) {
                if (start..end).contains(&offset) {
                    *byte = 0;
                }
            }
        }
    }
}
