//! Before a check with a grammar: chooses, among generated operations, those that make many PM transitions.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fuzz::execute::{Delivery, Executor, Subject};
use fuzz::inputs::Inputs;
use fuzz::inputs::operations::Operations;
use fuzz::select::select;
use operation::generate::{Generated, generate};
use recover::command::Command;
use recover::limits::Limits;

use super::fuzz::discover::pools;
use super::options::operation::{OperationOptions, grammar};
use crate::render;

/// Of the budget of the check.
const SHARE: u32 = 10;
/// With no end to the check.
const LONGEST: Duration = Duration::from_secs(10);

/// Chooses operations, if there is a grammar to choose from; keeps them in `options` and in files of `folder`. Whatever goes wrong, the
/// check goes on with the operations that it would have had, and tells itself what is wrong.
pub fn choose(options: &OperationOptions, words: &[OsString], pm: &[String], budget: Option<Duration>, folder: &Path) {
    let Some(path) = &options.grammar else { return };
    let (Ok(grammar), Some(command)) = (grammar(path), Command::here(words)) else { return };
    let plain = generate(&grammar, options.count, options.seed);
    let limits =
        Limits { wall: Duration::from_secs(5), cpu: Duration::from_secs(11), memory: 1 << 30, ..Limits::default() };
    let mut subject = Subject { command, delivery: Delivery::Operations, pools: Vec::new(), limits };
    let deadline = Instant::now() + budget.map_or(LONGEST, |budget| (budget / SHARE).min(LONGEST));
    let Ok((found, _)) = pools(&subject, plain.operations.as_bytes(), pm) else { return };
    if found.paths.is_empty() {
        return;
    }
    subject.pools = found.paths;
    let Ok(mut executor) = Executor::new(subject) else { return };
    let inputs = Operations::new(grammar);
    let root = Arc::new(found.root);
    let chosen = select(&mut executor, &root, &inputs, plain.operations.as_bytes(), options.seed, deadline);
    let Ok(Some(chosen)) = chosen else { return };
    let readback = inputs.readback(&[&chosen.operations]);
    let kinds = inputs.kinds(&chosen.operations);
    let saved = fs::create_dir_all(folder).and_then(|()| {
        fs::write(folder.join("chosen.ops"), &chosen.operations)?;
        fs::write(folder.join("chosen.readback"), &readback)
    });
    let place = match saved {
        Ok(()) => format!(
            "they are in {0}/chosen.ops (`--ops {0}/chosen.ops --readback {0}/chosen.readback` takes them again)",
            folder.display()
        ),
        Err(error) => format!("they could not be written to {}: {error}", folder.display()),
    };
    render::note(format_args!(
        "of {} workloads, {} operations were chosen that make {} PM transitions (the first workload: {}); {place}; --no-select turns \
         this off",
        chosen.tried,
        inputs.parts(&chosen.operations).len(),
        chosen.pm_transitions,
        chosen.plain
    ));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    options.choose(Generated { operations: text(chosen.operations), readback: text(readback), kinds });
}
