//! What a program finds on its stack when it starts: made the same in every run.

use wire::virtual_time;

use super::error::StepError;
use super::ptrace::{self, Tid};
use crate::recorder::RecordOptions;

const AT_IGNORE: u64 = 1;
const AT_RANDOM: u64 = 25;
const AT_SYSINFO_EHDR: u64 = 33;

/// Right after exec: hides the vDSO (its clocks would bypass us) and fixes the random bytes.
pub fn prepare(tid: Tid, options: &RecordOptions) -> Result<(), StepError> {
    let mut at = ptrace::registers(tid)?.rsp;
    let mut next = || -> Result<(u64, u64), StepError> {
        let word = ptrace::read_u64(tid, at)?;
        at += 8;
        Ok((at - 8, word))
    };
    let (_, argc) = next()?;
    for _ in 0..=argc {
        next()?;
    }
    while next()?.1 != 0 {}
    loop {
        let (place, tag) = next()?;
        let (_, value) = next()?;
        match tag {
            0 => return Ok(()),
            AT_SYSINFO_EHDR if !options.real_time => ptrace::write(tid, place, &AT_IGNORE.to_le_bytes())?,
            AT_RANDOM if !options.real_random => ptrace::write(tid, value, &virtual_time::at_random())?,
            _ => {}
        }
    }
}
