//! The probe's locks, and how both ends of the ring sleep, under schedules that shuttle chooses: thousands per test, the same in every run.
//!
//! Shuttle knows sequentially consistent memory only, so this is about the order of steps; `src/shared_state.rs` lets real threads contend.
//! No wait has a time limit here, though those of the probe and of the host have: a wake-up that is lost is a deadlock, which shuttle reports.
//! Each property has a test that breaks it on purpose, so that we know that these schedules would show it.

use std::sync::{Mutex, PoisonError};

use shuttle::scheduler::{PctScheduler, RandomScheduler};

#[path = "../../src/held.rs"]
mod held;
#[path = "../../../probe/src/lock.rs"]
#[expect(dead_code, reason = "the tests use a part of it")]
mod lock;
#[path = "../../src/sys.rs"]
mod sys;

mod locks;
mod sleeping;

/// What the locks are made of.
mod atomic {
    pub use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

/// Threads whose schedule a test chooses.
mod threads {
    pub use shuttle::thread::yield_now;
    pub use shuttle::thread_local;
}

/// The locks have one static, which is shuttle's here: two explorations at the same time would meet there.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs it under so many random schedules, and under as many that change threads rarely.
fn explore(schedules: usize, program: fn()) {
    // Tests that must panic do so while they hold it.
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut config = shuttle::Config::new();
    // About orderings weaker than sequential consistency, see above.
    config.silence_warnings = true;
    shuttle::Runner::new(RandomScheduler::new_from_seed(1, schedules), config.clone()).run(program);
    shuttle::Runner::new(PctScheduler::new_from_seed(1, 3, schedules), config).run(program);
}
