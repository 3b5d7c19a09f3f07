//! What each thread still waits for.

use rustc_hash::FxHashMap;
use trace::event::ThreadId;

use crate::domain::DirtyIndex;

#[derive(Debug, Default)]
pub(crate) struct Thread {
    /// Lines on which this thread has a mark; may name a slot twice or in vain after others settled it.
    pub asked: Vec<DirtyIndex>,
    /// Thin `asked` when it is this long.
    pub thin_at: usize,
    /// Flushes executed since the last fence, the useless ones included.
    pub flushes: u64,
    /// Stores past the cache since the last fence.
    pub streamed: u64,
}

/// The threads that have flushed or streamed. Most events come from the thread of the one before.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    index: FxHashMap<ThreadId, usize>,
    threads: Vec<Thread>,
    free: Vec<usize>,
    last: Option<(ThreadId, usize)>,
}

impl Threads {
    pub fn find(&mut self, id: ThreadId) -> Option<&mut Thread> {
        let at = match self.last {
            Some((last, at)) if last == id => at,
            _ => *self.index.get(&id)?,
        };
        self.last = Some((id, at));
        Some(&mut self.threads[at])
    }

    pub fn find_or_insert(&mut self, id: ThreadId) -> &mut Thread {
        let at = match self.last {
            Some((last, at)) if last == id => at,
            _ => *self.index.entry(id).or_insert_with(|| {
                self.free.pop().unwrap_or_else(|| {
                    self.threads.push(Thread::default());
                    self.threads.len() - 1
                })
            }),
        };
        self.last = Some((id, at));
        &mut self.threads[at]
    }

    pub fn asked(&self, id: ThreadId) -> &[DirtyIndex] {
        self.index.get(&id).map_or(&[], |&at| &self.threads[at].asked)
    }

    /// With other slots for their lines; what is asked for on lines that have none is left out.
    pub fn with_slots(&self, slot: impl Fn(DirtyIndex) -> Option<DirtyIndex>) -> Threads {
        let thread = |thread: &Thread| Thread {
            asked: thread.asked.iter().filter_map(|&asked| slot(asked)).collect(),
            ..*thread
        };
        Threads {
            index: self.index.clone(),
            threads: self.threads.iter().map(thread).collect(),
            free: self.free.clone(),
            last: self.last,
        }
    }

    pub fn bytes_held(&self) -> usize {
        self.threads.iter().map(|thread| size_of_val(thread.asked.as_slice()) + size_of::<Thread>()).sum()
    }

    pub fn remove(&mut self, id: ThreadId) -> Option<Thread> {
        let at = self.index.remove(&id)?;
        self.last = None;
        self.free.push(at);
        Some(std::mem::take(&mut self.threads[at]))
    }
}
