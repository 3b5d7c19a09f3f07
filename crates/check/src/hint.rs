//! The likely-correctness condition that a failing state breaks, in a sentence: why a reader could have expected otherwise.

use crash::search::SearchOptions;
use crash::strategy::inferred::KnownConditions;
use crash::strategy::violation::{Broken, broken};
use crash::walk::{Walk, WalkError};
use infer::Rule;
use trace::TraceReader;
use trace::event::CodeAddr;
use trace::symbol::Symbolizer;

use cause::analyse::RootCause;

/// None without conditions, or if the state of the cause breaks none.
pub fn hint(reader: &TraceReader, options: &SearchOptions, cause: &RootCause) -> Result<Option<String>, WalkError> {
    let Some(conditions) = options.conditions.as_ref().and_then(KnownConditions::get) else { return Ok(None) };
    let mut walk = Walk::new(reader, options.rules)?;
    walk.advance_to(cause.point.at)?;
    let Some(found) = broken(&walk.view(), conditions, &cause.state) else { return Ok(None) };
    let mut symbols = Symbolizer::new(reader.tables());
    let mut name = |code: CodeAddr| {
        let frames = symbols.frames(code);
        let source = frames.iter().find_map(|frame| frame.source.as_ref());
        let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        source.map_or_else(
            || format!("the instruction at {:#x}", code.addr),
            |at| format!("{}:{}", file(&at.file), at.line),
        )
    };
    let (first, second) = (name(found.evidence.0), name(found.evidence.1));
    Ok(Some(sentence(&found, &first, &second)))
}

fn sentence(found: &Broken, first: &str, second: &str) -> String {
    let (rule, why) = match found.rule {
        Rule::Po1 => {
            ("PO1", format!("{second} stores what was computed from what {first} reads: that should be in PM before"))
        }
        Rule::Po2 => {
            ("PO2", format!("{second} stores only if what {first} reads says so: that should be in PM before"))
        }
        Rule::Po3 => (
            "PO3",
            format!(
                "{first} is reached only if what {second} reads says so: what it reads should be in PM before the other"
            ),
        ),
        Rule::Pa1 => (
            "PA1",
            format!("{first} and {second} both read what decides about other data: they should reach PM together"),
        ),
    };
    format!("the state breaks a condition inferred from the run ({rule}): {why}")
}
