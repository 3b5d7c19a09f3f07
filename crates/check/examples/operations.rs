//! Operations from a program: a harness makes them up, Fencepost has them answered after every crash.
//!
//! ```text
//! cargo run --release -p check --example operations -- ./server-that-reads-lines pool
//! ```

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use check::Request;
use check::operations::Operations;
use check::request::Observer;
use check::run::CheckOutcome;
use check::session::Phase;
use operation::workload::Workload;

/// Prints how far the search is.
#[derive(Debug)]
pub struct Loud;

impl Observer for Loud {
    fn phase(&self, phase: Phase) {
        if let Phase::Reference { next, operations } = phase {
            eprintln!("operation {next} of {operations}");
        }
    }
}

/// Gives `command` these lines, one operation each, and these queries at the end of every run. After a crash inside an operation, it must
/// answer the rest as if that had happened, or as if it had not.
pub fn check(command: &[OsString], operations: &str, queries: &str) -> Result<CheckOutcome, Box<dyn Error>> {
    let mut request = Request::new(command.iter().cloned());
    request.operations = Some(Operations::Fed(Workload::new(operations.as_bytes(), queries.as_bytes())?));
    request.observer = &Loud;
    // Misuse is not what this harness is about.
    request.rules = Vec::new();
    Ok(check::run(request)?)
}

fn main() -> ExitCode {
    let command: Vec<OsString> = std::env::args_os().skip(1).collect();
    let operations: String = (0..20).map(|number| format!("put key{number} value{number}\n")).collect();
    let queries: String = (0..20).map(|number| format!("get key{number}\n")).collect();
    match check(&command, &operations, &queries) {
        Ok(outcome) => {
            outcome.checked.findings.iter().for_each(|finding| println!("{} {}", finding.id.0, finding.rule));
            ExitCode::from(u8::from(!outcome.checked.findings.is_empty()))
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
