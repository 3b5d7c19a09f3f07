//! The grammar of a workload: what operations look like.
//!
//! ```toml
//! [operations]
//! insert = "i {newkey} {value}"
//! delete = "d {key}"
//!
//! [weights]            # how often; 1 if nothing is said
//! insert = 3
//!
//! [readback]
//! queries = ["g {key}", "n"]
//! order = "any"        # of the lines of an answer; "fixed" if it matters
//! separator = ","      # between the items of an answer on one line; spaces if nothing is said
//!
//! [keys]
//! range = 1000         # keys are numbers below this
//!
//! [values]
//! range = 100          # {value} is a number below this; {value:100} is a text of 100 letters
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A place in a template that differs from operation to operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hole {
    /// A key that no operation before has used.
    NewKey,
    /// One that has been.
    Key,
    /// Either.
    AnyKey,
    /// A number.
    Value,
    /// A text of so many letters.
    Text(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    Hole(Hole),
}

/// One kind of operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationKind {
    pub name: String,
    pub template: Vec<Piece>,
    pub weight: u32,
}

impl OperationKind {
    pub fn needs(&self, hole: Hole) -> bool {
        self.template.contains(&Piece::Hole(hole))
    }
}

/// Does the order of the lines of an answer matter?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineOrder {
    /// A listing may come in any order.
    Any,
    /// Another order is another answer.
    Fixed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grammar {
    pub kinds: Vec<OperationKind>,
    pub queries: Vec<Vec<Piece>>,
    /// Of the lines of their answers.
    pub order: Option<LineOrder>,
    /// Between the items of a listing on one line.
    pub separator: Option<String>,
    /// Keys are below this.
    pub keys: u64,
    /// Values are below this.
    pub values: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrammarError {
    #[error("the grammar cannot be understood: {0}")]
    Syntax(String),
    #[error(
        "the grammar has no operations; write for example\n\n  [operations]\n  insert = \"i {{newkey}} {{value}}\"\n"
    )]
    NoOperations,
    #[error(
        "`{name}` has `{{{hole}}}`, which means nothing; there are {{newkey}}, {{key}}, {{anykey}}, {{value}} and {{value:LETTERS}}"
    )]
    UnknownHole { name: String, hole: String },
    #[error("`{name}` has `{{{hole}}}`: a text has 1 to {LONGEST_TEXT} letters, as in {{value:100}}")]
    TextLength { name: String, hole: String },
    #[error("`{name}` has a `{{` that is never closed")]
    OpenHole { name: String },
    #[error("[weights] names `{0}`, but there is no such operation")]
    UnknownWeight(String),
    #[error(
        "no operation can ever run: each needs a used key ({{key}}), and none makes one ({{newkey}} or {{anykey}})"
    )]
    NoFirstKey,
    #[error("all weights are 0")]
    NoWeight,
    #[error("a query of the readback has {{newkey}} or {{value}}; queries can only have {{key}}")]
    QueryHole,
    #[error("`{0}` is more than one line; an operation is one line")]
    Lines(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    operations: BTreeMap<String, String>,
    #[serde(default)]
    weights: BTreeMap<String, u32>,
    #[serde(default, alias = "tail")]
    readback: Readback,
    #[serde(default)]
    keys: Keys,
    #[serde(default)]
    values: Keys,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Readback {
    #[serde(default)]
    queries: Vec<String>,
    order: Option<LineOrder>,
    separator: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    range: Option<u64>,
}

/// Operations are lines; programs read them into buffers.
const LONGEST_TEXT: u32 = 65_536;

/// Unless the grammar says otherwise.
const KEYS: u64 = 1_000_000;
const VALUES: u64 = 1_000_000_000;

impl Grammar {
    /// From a file of its own.
    pub fn parse(text: &str) -> Result<Grammar, GrammarError> {
        let file: File = toml::from_str(text).map_err(|error| GrammarError::Syntax(error.to_string()))?;
        Grammar::build(file)
    }

    /// From a part of a larger file.
    pub fn from_value(value: toml::Value) -> Result<Grammar, GrammarError> {
        let file: File = value.try_into().map_err(|error: toml::de::Error| GrammarError::Syntax(error.to_string()))?;
        Grammar::build(file)
    }

    fn build(file: File) -> Result<Grammar, GrammarError> {
        if let Some(unknown) = file.weights.keys().find(|name| !file.operations.contains_key(*name)) {
            return Err(GrammarError::UnknownWeight(unknown.clone()));
        }
        let mut kinds = Vec::new();
        for (name, text) in &file.operations {
            let weight = file.weights.get(name).copied().unwrap_or(1);
            kinds.push(OperationKind { name: name.clone(), template: template(name, text)?, weight });
        }
        let queries = file
            .readback
            .queries
            .iter()
            .map(|text| template("readback", text))
            .collect::<Result<Vec<_>, GrammarError>>()?;
        let bad = |piece: &Piece| matches!(piece, Piece::Hole(Hole::NewKey | Hole::Value | Hole::Text(_)));
        if queries.iter().flatten().any(bad) {
            return Err(GrammarError::QueryHole);
        }
        if kinds.is_empty() {
            return Err(GrammarError::NoOperations);
        }
        if kinds.iter().all(|kind| kind.weight == 0) {
            return Err(GrammarError::NoWeight);
        }
        if kinds.iter().filter(|kind| kind.weight > 0).all(|kind| kind.needs(Hole::Key)) {
            return Err(GrammarError::NoFirstKey);
        }
        let (keys, values) = (file.keys.range.unwrap_or(KEYS).max(1), file.values.range.unwrap_or(VALUES).max(1));
        let Readback { order, separator, .. } = file.readback;
        Ok(Grammar { kinds, queries, order, separator, keys, values })
    }
}

fn template(name: &str, text: &str) -> Result<Vec<Piece>, GrammarError> {
    if text.contains('\n') {
        return Err(GrammarError::Lines(name.into()));
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        if open > 0 {
            pieces.push(Piece::Text(rest[..open].into()));
        }
        let Some(close) = rest[open..].find('}') else { return Err(GrammarError::OpenHole { name: name.into() }) };
        let hole = match &rest[open + 1..open + close] {
            "newkey" => Hole::NewKey,
            "key" => Hole::Key,
            "anykey" => Hole::AnyKey,
            "value" => Hole::Value,
            hole if hole.starts_with("value:") => match hole["value:".len()..].parse() {
                Ok(letters @ 1..=LONGEST_TEXT) => Hole::Text(letters),
                _ => return Err(GrammarError::TextLength { name: name.into(), hole: hole.into() }),
            },
            hole => return Err(GrammarError::UnknownHole { name: name.into(), hole: hole.into() }),
        };
        pieces.push(Piece::Hole(hole));
        rest = &rest[open + close + 1..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.into()));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> GrammarError {
        Grammar::parse(text).unwrap_err()
    }

    #[test]
    fn templates_are_taken_apart() {
        let grammar =
            Grammar::parse("[operations]\nput = \"i {newkey}={value};\"\n[readback]\nqueries = [\"g {key}\"]").unwrap();
        let text = |text: &str| Piece::Text(text.into());
        let put = [text("i "), Piece::Hole(Hole::NewKey), text("="), Piece::Hole(Hole::Value), text(";")];
        assert_eq!(grammar.kinds[0].template, put);
        assert_eq!(grammar.queries, [vec![text("g "), Piece::Hole(Hole::Key)]]);
        assert_eq!(grammar.order, None);
        let any = Grammar::parse("[operations]\na = \"x\"\n[readback]\nqueries = [\"l\"]\norder = \"any\"").unwrap();
        assert_eq!((any.order, any.separator), (Some(LineOrder::Any), None));
        let commas = "[operations]\na = \"x\"\n[readback]\nqueries = [\"l\"]\nseparator = \",\"";
        assert_eq!(Grammar::parse(commas).unwrap().separator.as_deref(), Some(","));
        assert!(matches!(error("[operations]\na = \"x\"\n[readback]\norder = \"some\""), GrammarError::Syntax(_)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(matches!(error("[operation]\n"), GrammarError::Syntax(_)));
        assert_eq!(error(""), GrammarError::NoOperations);
        let hole = GrammarError::UnknownHole { name: "a".into(), hole: "k".into() };
        assert_eq!(error("[operations]\na = \"{k}\""), hole);
        assert_eq!(error("[operations]\na = \"x {key\""), GrammarError::OpenHole { name: "a".into() });
        assert_eq!(error("[operations]\na = \"x\"\n[weights]\nb = 1"), GrammarError::UnknownWeight("b".into()));
        assert_eq!(error("[operations]\na = \"d {key}\""), GrammarError::NoFirstKey);
        assert_eq!(error("[operations]\na = \"x\"\n[weights]\na = 0"), GrammarError::NoWeight);
        assert_eq!(error("[operations]\na = \"x\"\n[readback]\nqueries = [\"{value}\"]"), GrammarError::QueryHole);
        assert_eq!(error("[operations]\na = \"x\\ny\""), GrammarError::Lines("a".into()));
    }

    #[test]
    fn a_value_with_a_length_is_a_text() {
        let grammar = Grammar::parse("[operations]\nput = \"i {newkey} {value:100}\"").unwrap();
        assert_eq!(grammar.kinds[0].template.last(), Some(&Piece::Hole(Hole::Text(100))));
        for wrong in ["value:0", "value:x", "value:70000", "value:"] {
            let text = format!("[operations]\nput = \"i {{newkey}} {{{wrong}}}\"");
            assert_eq!(error(&text), GrammarError::TextLength { name: "put".into(), hole: wrong.into() });
        }
    }
}
