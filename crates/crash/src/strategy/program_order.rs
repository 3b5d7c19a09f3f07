//! *program-order*: everything that was stored so far is in PM (Mumak §4.1). One state per point.

use persistency::states::{Base, CrashState};

use super::spec::{Reach, Strategy};
use crate::view::PointView;

#[derive(Debug, Default)]
pub struct ProgramOrder {
    done: bool,
}

impl Strategy for ProgramOrder {
    fn next(&mut self, _: &PointView<'_>) -> Option<CrashState> {
        let first = !std::mem::replace(&mut self.done, true);
        first.then(|| CrashState { base: Base::Everything, lines: Vec::new() })
    }

    fn reach(&self) -> Reach {
        Reach::Done
    }
}
