//! What recoveries say: how a run ended, what it read, whether that was right, how a failure shows, and where among the
//! operations the crash came. Plain data between those who run recoveries, those who judge them and those who choose images;
//! the words for it are in `report`.

pub mod contradiction;
pub mod crash_point;
pub mod end;
pub mod position;
pub mod read;
pub mod symptom;
pub mod verdict;
