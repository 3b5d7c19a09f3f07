//! A harness of one's own on top of Fencepost: checks a program and prints what it found.
//!
//! ```text
//! cc -O1 -g targets/demo/kv.c -o /tmp/kv
//! cargo run --release -p check --example harness -- /tmp/kv /tmp/kv.pool
//! ```

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use check::Request;
use check::run::CheckOutcome;
use finding::finding::Finding;
use record::request::Stream;

/// Runs `PROGRAM POOL demo` once, and `PROGRAM POOL verify` after every power failure that could have cut it short.
pub fn check(program: &Path, pool: &Path) -> Result<CheckOutcome, Box<dyn Error>> {
    let folder = pool.parent().ok_or("the pool is in no folder")?;
    let mut request = Request::new([program.as_os_str(), pool.as_os_str(), "demo".as_ref()]);
    request.recording.stdout = Stream::Null;
    request.settings.recover = Some(format!("{} {} verify", program.display(), pool.display()));
    request.settings.budget = Some(Duration::from_secs(30));
    request.settings.bundles = folder.join("findings");
    Ok(check::run(request)?)
}

/// A finding in a line. `report` has the words that Fencepost uses itself, in all formats.
pub fn line(finding: &Finding) -> String {
    let guilty = finding.guilty();
    let place = match (&guilty.file, guilty.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        _ => format!("{}+{:#x}", guilty.module, guilty.address),
    };
    format!("{} {} at {place}", finding.id.0, finding.rule)
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(program), Some(pool)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: harness PROGRAM POOL");
        return ExitCode::from(2);
    };
    match check(program.as_ref(), pool.as_ref()) {
        Ok(outcome) => {
            outcome.findings().for_each(|finding| println!("{}", line(finding)));
            let coverage = &outcome.checked.coverage;
            println!("{} crash points, {} states", coverage.points_finished, coverage.states_decided);
            ExitCode::from(u8::from(outcome.findings().next().is_some()))
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
