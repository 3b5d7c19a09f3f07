//! The likely-correctness condition that a failing state breaks: why a reader could have expected otherwise.

use crash::checkpoints::PlainWalks;
use crash::search::SearchOptions;
use crash::strategy::inferred::KnownConditions;
use crash::strategy::violation::broken;
use crash::walk::WalkError;
use finding::note::{CodeLine, Condition, Note};
use infer::ConditionRule;
use trace::TraceReader;
use trace::event::CodeAddr;
use trace::symbol::Symbolizer;

use cause::analyse::RootCause;

/// None without conditions, or if the state of the cause breaks none.
pub fn hint(
    walks: &PlainWalks<'_>,
    reader: &TraceReader,
    options: &SearchOptions,
    cause: &RootCause,
) -> Result<Option<Note>, WalkError> {
    let Some(conditions) = options.conditions.as_ref().and_then(KnownConditions::get) else { return Ok(None) };
    let walk = walks.to(cause.point.at)?;
    let Some(found) = broken(&walk.view(), conditions, &cause.state) else { return Ok(None) };
    let mut symbols = Symbolizer::new(reader.tables());
    let mut line = |code: CodeAddr| {
        let frames = symbols.frames(code);
        let source = frames.iter().find_map(|frame| frame.source.as_ref());
        CodeLine {
            file: source.map(|source| source.file.clone()),
            line: source.map(|source| source.line),
            address: code.addr,
        }
    };
    let condition = match found.rule {
        ConditionRule::Po1 => Condition::Po1,
        ConditionRule::Po2 => Condition::Po2,
        ConditionRule::Po3 => Condition::Po3,
        ConditionRule::Pa1 => Condition::Pa1,
    };
    let (first, second) = (line(found.evidence.0), line(found.evidence.1));
    Ok(Some(Note::BrokenCondition { condition, first, second }))
}
