//! The result of a recovery run: how it ended, what it read, whether it was right, the symptom of a failure, and the crash
//! position among the operations. Plain data between those who run recoveries, those who judge them and those who choose images;
//! the words for it are in `report`.

pub mod contradiction;
pub mod crash_point;
pub mod end;
pub mod position;
pub mod read;
pub mod symptom;
pub mod verdict;
