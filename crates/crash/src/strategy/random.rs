//! *random*: a seeded sample. Each dirty line gets some prefix of its stores, all equally likely.
//!
//! Points with few lines give the same state again and again; those are drawn, and count towards the number, but are
//! decided once.

use persistency::point::Content;
use persistency::states::{Base, CrashState};

use super::spec::{Reach, Strategy};
use crate::view::PointView;

#[derive(Debug)]
pub struct Random {
    state: u64,
    left: u64,
}

impl Random {
    pub fn new(seed: u64, index: u64, states: u64) -> Self {
        let mut random = Random { state: seed, left: states };
        random.state = random.draw() ^ index;
        random
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Strategy for Random {
    fn next(&mut self, view: &PointView<'_>) -> Option<CrashState> {
        self.left = self.left.checked_sub(1)?;
        let mut lines = Vec::with_capacity(view.lines().len());
        for line in view.lines() {
            // The high half of a product instead of a remainder: no short cycles in the low bits.
            let kept = (u128::from(self.draw()) * u128::from(line.pending() + 1)) >> 64;
            if kept > 0 {
                lines.push((line.id(), Content::whole(u32::try_from(kept).unwrap_or(u32::MAX))));
            }
        }
        Some(CrashState { base: Base::Guaranteed, lines })
    }

    fn reach(&self) -> Reach {
        Reach::Done
    }
}
