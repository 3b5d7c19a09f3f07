//! Which words of pools were stored to.

use rustc_hash::FxHashMap;
use trace::event::{EventKind, Place, PoolId};
use trace::{ReadError, TraceReader};

use crate::conditions::Span;

/// Words of eight bytes.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// 64 to an entry.
    words: FxHashMap<(PoolId, u64), u64>,
}

impl Stored {
    /// All that a recorded run stored.
    pub fn of(reader: &TraceReader) -> Result<Stored, ReadError> {
        let mut stored = Stored::default();
        let mut events = reader.events();
        while let Some(event) = events.next()? {
            if let EventKind::Store { place, bytes, .. }
            | EventKind::Rmw { place, new: bytes, .. }
            | EventKind::KernelWrite { place, bytes }
            | EventKind::FileWrite { place, bytes } = event.kind
            {
                let Place { pool, offset } = place;
                stored.mark(Span { pool, offset: offset.0, len: bytes.len() as u32 });
            }
        }
        Ok(stored)
    }

    pub fn mark(&mut self, span: Span) {
        let (mut word, end) = (span.offset / 8, span.end().div_ceil(8));
        while word < end {
            let last = end.min((word | 63) + 1);
            let mask = (u64::MAX >> (64 - (last - word))) << (word % 64);
            *self.words.entry((span.pool, word / 64)).or_default() |= mask;
            word = last;
        }
    }

    /// Was any of this stored to?
    pub fn any(&self, span: Span) -> bool {
        (span.offset / 8..span.end().div_ceil(8))
            .any(|word| self.words.get(&(span.pool, word / 64)).is_some_and(|words| words >> (word % 64) & 1 == 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_words_are_exactly_those_of_the_spans() {
        let mut stored = Stored::default();
        stored.mark(Span { pool: PoolId(3), offset: 500, len: 1200 });
        for word in 0..400u64 {
            let asked = Span { pool: PoolId(3), offset: word * 8, len: 8 };
            assert_eq!(stored.any(asked), (500 / 8..1700u64.div_ceil(8)).contains(&word), "{word}");
        }
    }
}
