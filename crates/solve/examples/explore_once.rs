//! Explores a program and prints what it found, without the oracles:
//! `cargo run --release -p solve --example explore_once -- FREE_BYTES SECONDS COMMAND...`

use std::time::Duration;

use solve::explore::{Explorer, Strategy};
use solve::input::Shape;
use solve::run::Runner;
use solve::session::{Limits, Session};
use solve::solver::{Embedded, Stages};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let bytes: usize = arguments.next().and_then(|n| n.to_str()?.parse().ok()).ok_or("how many bytes?")?;
    let seconds: u64 = arguments.next().and_then(|n| n.to_str()?.parse().ok()).ok_or("how many seconds?")?;
    let command: Vec<_> = arguments.collect();
    let folder = tempfile::tempdir()?;
    let mut shape = Shape::default();
    shape.add_arguments(&command)?;
    shape.add_free(&vec![b'1'; bytes]);
    let runner = Runner::new(&command, shape, &[], &[], folder.path(), Duration::from_secs(20))?;
    let stages = Stages::new(vec![Box::new(Embedded::default())], Duration::from_secs(2));
    let explorer = Explorer::new(Strategy::PmAware, stages, 1, Vec::new());
    let limits = Limits { time: Duration::from_secs(seconds), runs: u64::MAX };
    let mut session = Session::new(runner, explorer, limits, None);
    let mut pm = 0;
    let ended = session.run(|found| {
        pm += found.news.pm;
        let input = String::from_utf8_lossy(found.input);
        eprintln!("{:4} {:?} {pm:3} PM  {:?} {input:?}", found.number, found.stage, found.news);
        true
    })?;
    eprintln!("{ended:?} {:?}\n{:?}\n{:?}", session.totals, session.explorer.stages(), session.concrete);
    Ok(())
}
