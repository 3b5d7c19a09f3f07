//! A program that writes its answers to a file: they are printed when it has ended, and the driver ends as it did.

use std::ffi::OsString;
use std::io::{self, Write};
use std::{env, fs};

use crate::address::unique;
use crate::command::{how, start};
use crate::error::{DriveError, system};
use crate::input::Input;
use crate::template::replaced;

/// Stands for a file of the driver's own choice: runs at the same time then do not meet.
pub const PLACE: &str = "{answers}";

pub fn run(file: &str, command: &[OsString]) -> Result<(), DriveError> {
    Input::begin()?;
    let name = unique().map_err(system("choose a file for the answers"))?;
    let own = env::temp_dir().join(format!("fencepost-{name}.answers")).display().to_string();
    let file = file.replace(PLACE, &own);
    let words: Vec<OsString> = command.iter().map(|word| replaced(word, PLACE, own.as_bytes())).collect();
    // Answers of another run are none of this one's; there may be none.
    let _ = fs::remove_file(&file);
    let status = start(&words, io::stderr().into())?;
    // A program that failed early has written none.
    let answers = fs::read(&file).unwrap_or_default();
    if file == own {
        let _ = fs::remove_file(&file);
    }
    let mut out = io::stdout().lock();
    out.write_all(&answers).and_then(|()| out.flush()).map_err(system("print the answers"))?;
    let program = || words[0].to_string_lossy().into_owned();
    if status.success() { Ok(()) } else { Err(DriveError::Failed { program: program(), how: how(status), status }) }
}
