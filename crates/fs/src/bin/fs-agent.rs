//! `fs-agent DIRECTORY`: runs operations from standard input against a directory. See `fs::agent`.

use std::io;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(root) = std::env::args_os().nth(1) else {
        eprintln!("usage: fs-agent DIRECTORY < OPERATIONS");
        return ExitCode::from(2);
    };
    match fs::agent::run(Path::new(&root), &mut io::stdin().lock(), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fs-agent: {error}");
            ExitCode::FAILURE
        }
    }
}
