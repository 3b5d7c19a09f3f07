//! The executor as a program: reads lines and answers each with lines. It needs only system calls, so it can be the only
//! process of a small virtual machine.
//!
//! ```text
//!   creat foo        ok                      an operation, and its answer
//!   walk             dir . mode=755 … ok     the whole tree, then `ok`
//!   usable           ok, or `unusable create ENOSPC A`
//! ```

use std::io::{self, BufRead, Write};
use std::path::Path;

use crate::execute::Executor;
use crate::op::Op;
use crate::usable::{Growth, usable_with};
use crate::walk::walk;

/// Before what cannot be done with a recovered tree.
pub const UNUSABLE: &str = "unusable ";

/// Answers lines until there are no more. Lines that are no operation are answered with `?`, and why.
pub fn run(root: &Path, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<()> {
    let mut executor = Executor::new(root);
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let word = line.trim();
        match word {
            "" => {}
            "walk" => writeln!(output, "{}ok", walk(root))?,
            _ if Growth::of_line(word).is_some() => {
                executor.close_all();
                match usable_with(root, Growth::of_line(word).unwrap_or_default()) {
                    Ok(()) => writeln!(output, "ok")?,
                    Err(unusable) => writeln!(output, "{UNUSABLE}{unusable}")?,
                }
            }
            _ => match word.parse::<Op>() {
                Ok(op) => writeln!(output, "{}", executor.run(&op))?,
                Err(error) => writeln!(output, "? {error}")?,
            },
        }
        output.flush()?;
        line.clear();
    }
    Ok(())
}
