//! The calls that a thread is inside of, kept by watching every call and the stack pointer.
//!
//! A frame lives as long as its return address lies at or above the stack pointer, so returns, `longjmp` and C++
//! unwinding need no care of their own: after each instruction, frames below the stack pointer are gone.
//! A signal handler begins a level of its own (rule 9: a path ends at a signal handler's frame), which lasts as long
//! as the stack pointer stays in the handler's part of the stack.

use std::ops::Range;

use trace::event::{ContextId, WatchId};

/// An active call.
#[derive(Clone, Debug)]
pub struct ActiveCall {
    /// Where the return address lies.
    slot: u64,
    pub return_to: u64,
    /// The path up to and including this call, once an event has asked for it.
    pub context: Option<ContextId>,
    /// The watched function that returns from this frame; after tail calls the last one.
    pub watch: Option<WatchId>,
}

/// The part of the stack that a handler runs on.
#[derive(Clone, Debug)]
pub enum HandlerStack {
    /// Below the interrupted function, up to this address.
    Below(u64),
    /// `sigaltstack`.
    Alternate(Range<u64>),
}

#[derive(Clone, Debug, Default)]
struct Level {
    stack: Option<HandlerStack>,
    frames: Vec<ActiveCall>,
}

impl Level {
    fn holds(&self, rsp: u64) -> bool {
        match &self.stack {
            None => true,
            Some(HandlerStack::Below(top)) => rsp <= *top,
            Some(HandlerStack::Alternate(range)) => range.contains(&rsp),
        }
    }
}

/// All active calls of a thread.
#[derive(Clone, Debug)]
pub struct ShadowStack {
    /// The first is the thread's own; each further one is a signal handler.
    levels: Vec<Level>,
}

impl Default for ShadowStack {
    fn default() -> ShadowStack {
        ShadowStack { levels: vec![Level::default()] }
    }
}

impl ShadowStack {
    fn top(&mut self) -> &mut Level {
        self.levels.last_mut().expect("the thread's own level is never dropped")
    }

    /// The frames of the current level, outermost first.
    pub fn path(&mut self) -> &mut [ActiveCall] {
        &mut self.top().frames
    }

    /// A call has stored its return address at `slot`.
    pub fn call(&mut self, slot: u64, return_to: u64) {
        self.top().frames.push(ActiveCall { slot, return_to, context: None, watch: None });
    }

    /// A signal handler begins.
    pub fn enter_handler(&mut self, stack: HandlerStack) {
        self.levels.push(Level { stack: Some(stack), frames: Vec::new() });
    }

    /// Marks the innermost call as one of a watched function, if its return address is where `rsp` points.
    pub fn mark_watched(&mut self, rsp: u64, watch: WatchId) {
        if let Some(frame) = self.top().frames.last_mut().filter(|frame| frame.slot == rsp) {
            frame.watch = Some(watch);
        }
    }

    /// The innermost frame, if the stack pointer has left it.
    pub fn left_frame(&mut self, rsp: u64) -> Option<&ActiveCall> {
        if !self.top().holds(rsp) {
            return None;
        }
        self.top().frames.last().filter(|frame| frame.slot < rsp)
    }

    /// Drops what is no longer active with this stack pointer.
    pub fn prune(&mut self, rsp: u64) {
        while self.levels.len() > 1 && !self.top().holds(rsp) {
            self.levels.pop();
        }
        let frames = &mut self.top().frames;
        while frames.last().is_some_and(|frame| frame.slot < rsp) {
            frames.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returns(stack: &mut ShadowStack) -> Vec<u64> {
        stack.path().iter().map(|frame| frame.return_to).collect()
    }

    #[test]
    fn frames_end_when_the_stack_pointer_passes_them() {
        let mut stack = ShadowStack::default();
        stack.call(1000, 1);
        stack.call(900, 2);
        stack.call(800, 3);
        stack.prune(700);
        assert_eq!(returns(&mut stack), [1, 2, 3]);
        // A longjmp out of two calls.
        stack.prune(901);
        assert_eq!(returns(&mut stack), [1]);
        stack.prune(1000);
        assert_eq!(returns(&mut stack), [1]);
        stack.prune(1008);
        assert!(returns(&mut stack).is_empty());
    }

    #[test]
    fn handlers_have_a_path_of_their_own() {
        let mut stack = ShadowStack::default();
        stack.call(1000, 1);
        stack.enter_handler(HandlerStack::Below(508));
        stack.call(400, 2);
        stack.prune(400);
        assert_eq!(returns(&mut stack), [2]);
        stack.prune(900);
        assert_eq!(returns(&mut stack), [1]);
    }

    #[test]
    fn handlers_on_an_alternate_stack_end_when_it_is_left() {
        let mut stack = ShadowStack::default();
        stack.call(1000, 1);
        stack.enter_handler(HandlerStack::Alternate(5000..6000));
        stack.call(5500, 2);
        stack.prune(5500);
        assert_eq!(returns(&mut stack), [2]);
        stack.prune(990);
        assert_eq!(returns(&mut stack), [1]);
    }
}
