//! Tests that cannot run on a machine say so, and fail where nothing may be missing.

use std::env;
use std::fmt::Display;

/// Set by `./test`: everything that tests need is installed, so a test that cannot run is a failure.
pub const MUST_RUN: &str = "FENCEPOST_TESTS_MUST_RUN";

/// Says why a test is skipped, as `return targets::skip("there is no gdb")`. Panics where everything must run.
pub fn skip(why: impl Display) {
    let must_run = env::var_os(MUST_RUN).is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!must_run, "{why}; {MUST_RUN} is set, so this test must run");
    // Past the harness, which keeps the output of tests that pass to itself.
    let thread = std::thread::current();
    let _ = std::io::Write::write_fmt(
        &mut std::io::stderr(),
        format_args!("skipped: {}: {why}\n", thread.name().unwrap_or("a test")),
    );
}
