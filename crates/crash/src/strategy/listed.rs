//! States that are known from the beginning, up to a limit: what was read does not matter.

use persistency::states::CrashState;

use super::spec::{Reach, Strategy};
use crate::view::PointView;

pub struct Listed {
    states: Box<dyn Iterator<Item = CrashState>>,
    left: u64,
    capped: bool,
}

impl Listed {
    /// At most `cap` of the states; `capped` says that some were left out of the list already.
    pub fn new(states: impl Iterator<Item = CrashState> + 'static, cap: u64, capped: bool) -> Listed {
        Listed { states: Box::new(states), left: cap, capped }
    }
}

impl std::fmt::Debug for Listed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listed").field("left", &self.left).finish_non_exhaustive()
    }
}

impl Strategy for Listed {
    fn next(&mut self, _: &PointView<'_>) -> Option<CrashState> {
        let state = self.states.next()?;
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => {
                self.capped = true;
                return None;
            }
        }
        Some(state)
    }

    fn reach(&self) -> Reach {
        if self.capped { Reach::Capped } else { Reach::Done }
    }
}
