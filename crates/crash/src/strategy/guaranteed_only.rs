//! *guaranteed-only*: nothing is in PM but what is guaranteed. One state per point.

use persistency::states::{Base, CrashState};

use super::spec::{Reach, Strategy};
use crate::view::PointView;

#[derive(Debug, Default)]
pub struct GuaranteedOnly {
    done: bool,
}

impl Strategy for GuaranteedOnly {
    fn next(&mut self, _: &PointView<'_>) -> Option<CrashState> {
        let first = !std::mem::replace(&mut self.done, true);
        first.then(|| CrashState { base: Base::Guaranteed, lines: Vec::new() })
    }

    fn reach(&self) -> Reach {
        Reach::Done
    }
}
