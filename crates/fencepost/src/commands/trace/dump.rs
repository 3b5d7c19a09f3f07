//! `fencepost trace dump`: prints the events as text.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use trace::event::{ContextId, EventId, ThreadId};
use trace::{DumpError, DumpOptions, Which};

use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost trace dump fencepost.fptrace | less
  fencepost trace dump --range 1000..1100 --symbols --call-paths fencepost.fptrace
  fencepost trace dump --thread 2 fencepost.fptrace";

/// Print the events of a recording, one per line.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Dump {
    /// The trace.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    which: Selection,
    /// Name functions and source lines.
    #[arg(short, long)]
    symbols: bool,
    /// Show each event's call path below it.
    #[arg(short, long)]
    call_paths: bool,
}

#[derive(Args, Debug)]
#[group(multiple = false)]
struct Selection {
    /// Only these events: `FIRST..END`; either can be left out.
    #[arg(long, value_name = "RANGE", value_parser = range)]
    range: Option<std::ops::Range<u64>>,
    /// Only the events of this thread.
    #[arg(long, value_name = "NUMBER")]
    thread: Option<u32>,
    /// Only the events with this call path.
    #[arg(long, value_name = "NUMBER")]
    context: Option<u32>,
    /// Only the events of this operation.
    #[arg(long, value_name = "NUMBER")]
    operation: Option<u64>,
}

fn range(text: &str) -> Result<std::ops::Range<u64>, String> {
    let (first, end) = text.split_once("..").ok_or("write it as FIRST..END, as in 100..200")?;
    let number = |text: &str, default| {
        if text.is_empty() { Ok(default) } else { text.parse::<u64>().map_err(|e| format!("`{text}`: {e}")) }
    };
    Ok(number(first, 0)?..number(end, u64::MAX)?)
}

impl Dump {
    pub fn run(&self) -> Exit {
        let which = match &self.which {
            Selection { range: Some(range), .. } => Which::Range(EventId(range.start)..EventId(range.end)),
            Selection { thread: Some(thread), .. } => Which::Thread(ThreadId(*thread)),
            Selection { context: Some(context), .. } => Which::Context(ContextId(*context)),
            Selection { operation: Some(operation), .. } => Which::Operation(*operation),
            _ => Which::All,
        };
        let options = DumpOptions { which, symbols: self.symbols, call_paths: self.call_paths };
        let mut out = BufWriter::new(io::stdout().lock());
        let dumped = trace::dump(&self.file, &options, &mut out);
        match dumped.and_then(|()| out.flush().map_err(DumpError::Write)) {
            Ok(()) => Exit::Clean,
            Err(DumpError::Write(error)) => render::ended(Err(error)),
            Err(error) => {
                render::error(error);
                Exit::Usage
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn ranges_may_be_open() {
        assert_eq!(range("3..7"), Ok(3..7));
        assert_eq!(range("..7"), Ok(0..7));
        assert_eq!(range("3.."), Ok(3..u64::MAX));
        assert!(range("3").is_err());
        assert!(range("a..b").is_err());
    }
}
