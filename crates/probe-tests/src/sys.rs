//! The one system call of the parts under test: a lock that waits gives up the processor.

pub mod nr {
    pub const SCHED_YIELD: u64 = 24;
}

macro_rules! sys {
    ($number:expr) => {{
        assert_eq!($number, crate::sys::nr::SCHED_YIELD);
        crate::threads::yield_now();
    }};
}

pub(crate) use sys;
