//! How results look, on standard output, and messages to the user, on standard error.

use std::fmt::Display;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use crate::exit::Exit;

const BOLD: Style = Style::new().bold();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const NOTE: Style = AnsiColor::Cyan.on_default().bold();

fn line(style: Style, word: &str, text: impl Display) {
    // Standard error is not buffered: one write, so that lines of several processes do not mix.
    let line = format!("{style}{word}{style:#}{BOLD}:{BOLD:#} {text}\n");
    // If standard error is gone or full, nobody can be told.
    let _ = anstream::stderr().write_all(line.as_bytes());
}

/// Something failed.
pub fn error(text: impl Display) {
    line(ERROR, "error", text);
}

/// Something is probably not as the user wants it.
pub fn warning(text: impl Display) {
    line(WARNING, "warning", text);
}

/// Good to know.
pub fn note(text: impl Display) {
    line(NOTE, "note", text);
}

/// What the user can do.
pub fn help(text: impl Display) {
    line(NOTE, "help", text);
}

/// Prints a line of the result.
pub fn result(text: impl Display) -> io::Result<()> {
    writeln!(anstream::stdout(), "{text}")
}

/// The end of a command whose results were printed: a reader that closed the pipe has seen what it wanted.
pub fn ended(printed: io::Result<()>) -> Exit {
    match printed {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            error(format_args!("cannot write to standard output: {e}"));
            Exit::Usage
        }
        _ => Exit::Clean,
    }
}

/// A number of bytes: `1.5 MiB`.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = number as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{number} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(160 << 20), "160.0 MiB");
    }
}
