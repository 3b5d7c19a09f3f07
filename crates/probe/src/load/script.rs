//! Scripts: the `#!` line, as `fs/binfmt_script.c` reads it.

use alloc::string::String;
use alloc::vec::Vec;

use crate::sys::{nr, raw};

/// The kernel looks at this many bytes (`BINPRM_BUF_SIZE`).
const LINE: usize = 256;
/// The kernel gives up after this many interpreters in a row.
pub const MAX_DEPTH: usize = 5;

#[derive(Debug)]
pub struct Script {
    pub interpreter: Vec<u8>,
    pub argument: Option<Vec<u8>>,
}

/// The interpreter that a file names, if it is a script.
pub fn read(fd: i32) -> Result<Option<Script>, String> {
    let mut head = [0u8; LINE];
    // SAFETY: the kernel writes at most `head.len()` bytes into `head`.
    let got = unsafe { raw!(nr::PREAD64, fd, head.as_mut_ptr(), head.len(), 0) };
    if got < 2 || &head[..2] != b"#!" {
        return Ok(None);
    }
    let text = &head[2..got as usize];
    let line = text.split(|b| *b == b'\n' || *b == 0).next().unwrap_or_default();
    let blank = |b: &u8| *b == b' ' || *b == b'\t';
    let line = line.trim_ascii();
    let end = line.iter().position(blank).unwrap_or(line.len());
    let interpreter = line[..end].to_vec();
    if interpreter.is_empty() {
        return Err(String::from("is a script that names no interpreter"));
    }
    let rest = line[end..].trim_ascii();
    Ok(Some(Script { interpreter, argument: (!rest.is_empty()).then(|| rest.to_vec()) }))
}
