//! The virtual clock, time-stamp counter and random source that both recorders show to a target.
//!
//! The same program must see the same values under every backend, query by query, or the streams could not be
//! compared. State lives in a few words (`Control::virtual_ns`, `virtual_queries`, `virtual_tsc`, `random_state` for the
//! probe); the functions here are pure: state in, value and next state out, so that callers can use a compare-and-swap loop.
//!
//! | query | answer | state afterwards |
//! | --- | --- | --- |
//! | a wall clock (`CLOCK_REALTIME` and kin, `gettimeofday`, `time`) | [`VIRTUAL_EPOCH_NS`] + ns | ns + [`query_ns`] |
//! | any other clock | [`VIRTUAL_BOOT_NS`] + ns | ns + [`query_ns`] |
//! | a sleep with a relative time | 0, at once | ns + the time asked for |
//! | a sleep until a time of a clock | 0, at once | ns such that the clock shows that time, if it lies ahead |
//! | a wait whose time limit runs out | as the kernel's, after the real time | ns + the limit |
//! | a wait that something else ends | as the kernel's | ns + the real time of long waits, in steps ([`WAIT_STEP_NS`]) |
//! | `rdtsc`, `rdtscp` | tsc | tsc + [`TSC_PER_QUERY`] |
//! | `getrandom`, `rdrand`, `rdseed` | SplitMix64 words, little-endian | one step per word or part of a word |

/// 2026-01-01 00:00:00 UTC.
pub const VIRTUAL_EPOCH_NS: u64 = 1_767_225_600 * NS_PER_SECOND;
/// What the monotonic clocks show at the start: a machine that has been up for a while.
pub const VIRTUAL_BOOT_NS: u64 = 1000 * NS_PER_SECOND;
pub const NS_PER_SECOND: u64 = 1_000_000_000;
/// Every query takes this long, so that loops which wait for time to pass end.
pub const NS_PER_QUERY: u64 = 1000;
/// A program that has asked this often without any wait asks until a time has come: it does something in between, and must not take
/// many times as long as natively.
pub const PATIENT_QUERIES: u64 = 1000;
pub const NS_PER_LATER_QUERY: u64 = 20_000;

/// Processor time that a thread uses between two queries counts only from here on, and in powers of two of this: most programs then see
/// the same times in every run, and those that measure how long a computation takes still get an answer.
pub const COMPUTED_NS: u64 = 256_000_000;
/// The same for the clocks of processor time, which are asked for nothing else.
pub const COMPUTED_CPU_NS: u64 = 16_000_000;

/// A wait that something else than its limit ends counts if it was at least this long,
pub const WAIT_COUNTS_NS: u64 = 10_000_000;
/// and all such waits together move the clock in these steps.
pub const WAIT_STEP_NS: u64 = 100_000_000;

/// First state of the time-stamp counter.
pub const VIRTUAL_TSC_START: u64 = 1 << 40;
pub const TSC_PER_QUERY: u64 = 10_000;

/// First state of the random source.
pub const RANDOM_SEED: u64 = 0x6665_6e63_6570_6f73;
/// Seed of the 16 bytes that `AT_RANDOM` points to, in every process and after every exec.
pub const AT_RANDOM_SEED: u64 = 0x7365_6564_2d61_7578;

/// `CLOCK_*` numbers that show the wall clock; every other one is a monotonic or CPU-time clock.
pub const fn is_wall_clock(clock: i32) -> bool {
    // CLOCK_REALTIME, CLOCK_REALTIME_COARSE, CLOCK_REALTIME_ALARM, CLOCK_TAI.
    matches!(clock, 0 | 5 | 8 | 11)
}

/// What `clock` shows after `virtual_ns`, in nanoseconds.
pub const fn clock_ns(clock: i32, virtual_ns: u64) -> u64 {
    if is_wall_clock(clock) { VIRTUAL_EPOCH_NS + virtual_ns } else { VIRTUAL_BOOT_NS + virtual_ns }
}

/// How long a query takes that `queries` others came before, since the last wait.
pub const fn query_ns(queries: u64) -> u64 {
    if queries < PATIENT_QUERIES { NS_PER_QUERY } else { NS_PER_LATER_QUERY }
}

/// By how much a computation of `cpu_ns` between two queries moves the clock that is asked.
pub const fn computed_ns(clock: i32, cpu_ns: u64) -> u64 {
    // CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID.
    let unit = if matches!(clock, 2 | 3) { COMPUTED_CPU_NS } else { COMPUTED_NS };
    match cpu_ns / unit {
        0 => 0,
        units => unit << units.ilog2(),
    }
}

/// State after a sleep of `ns`.
pub const fn after_sleep(virtual_ns: u64, ns: u64) -> u64 {
    virtual_ns.saturating_add(ns)
}

/// State after a sleep until `clock` shows `until_ns`.
pub const fn after_sleep_until(virtual_ns: u64, clock: i32, until_ns: u64) -> u64 {
    let now = clock_ns(clock, virtual_ns);
    if until_ns > now { after_sleep(virtual_ns, until_ns - now) } else { virtual_ns }
}

/// State after a `rdtsc`.
pub const fn after_rdtsc(virtual_tsc: u64) -> u64 {
    virtual_tsc.wrapping_add(TSC_PER_QUERY)
}

/// `CLOCK`'s value as `(seconds, nanoseconds)`.
pub const fn split(ns: u64) -> (u64, u64) {
    (ns / NS_PER_SECOND, ns % NS_PER_SECOND)
}

/// One SplitMix64 step (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014):
/// the word and the next state.
pub const fn random_word(state: u64) -> (u64, u64) {
    let next = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = next;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31), next)
}

/// Fills `bytes` and returns the next state; takes `bytes.len().div_ceil(8)` words.
pub fn fill_random(state: u64, bytes: &mut [u8]) -> u64 {
    let mut state = state;
    for chunk in bytes.chunks_mut(8) {
        let (word, next) = random_word(state);
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        state = next;
    }
    state
}

/// The 16 bytes behind `AT_RANDOM`.
pub fn at_random() -> [u8; 16] {
    let mut bytes = [0; 16];
    fill_random(AT_RANDOM_SEED, &mut bytes);
    bytes
}
