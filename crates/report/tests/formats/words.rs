//! Nothing between the probe and the report is recognised by the words of a sentence: what is needed later is a type.

use std::fs;
use std::path::{Path, PathBuf};

/// The crates through which a failure goes from a run to its report.
const PIPELINE: [&str; 16] = [
    "verdict",
    "crash",
    "recover",
    "oracle",
    "operation",
    "runner",
    "cause",
    "evidence",
    "check",
    "finding",
    "report",
    "lint",
    "fuzz",
    "solve",
    "fs",
    "fuse",
];

/// What takes text apart.
const PARSERS: [&str; 11] = [
    "starts_with(",
    "ends_with(",
    "strip_prefix(",
    "strip_suffix(",
    "trim_start_matches(",
    "contains(",
    "split(",
    "split_once(",
    "rsplit_once(",
    "split_whitespace(",
    "find(",
];

/// What holds words for people, or once did.
const SPOKEN: [&str; 6] = ["symptom", "note", "title", "message", "verdict", "rule"];

/// What holds lines of a file or of a protocol: their first word says what they are.
const LINES: [&str; 2] = ["line", "text"];

/// Why a line of code takes a sentence apart; none if it does not.
fn complaint(line: &str) -> Option<&'static str> {
    let code = line.trim_start();
    if code.starts_with("//") {
        return None;
    }
    for parser in PARSERS {
        for (at, _) in code.match_indices(&format!(".{parser}")) {
            let (before, argument) = (&code[..at], &code[at + 1 + parser.len()..]);
            let literal = argument.strip_prefix('"').and_then(|rest| rest.split('"').next());
            let receiver = before.rsplit([' ', '(', '|', '&', '!']).next().unwrap_or_default();
            let is_keyword = |text: &str| LINES.contains(&receiver) && !text.trim_end().contains(' ');
            if literal.is_some_and(|text| text.contains(' ') && !is_keyword(text)) {
                return Some("looks for a piece of a sentence");
            }
            let is_text = literal.is_some() || parser == "split_whitespace(";
            if is_text && SPOKEN.iter().any(|word| receiver.split('.').any(|part| part.starts_with(word))) {
                return Some("takes words for people apart");
            }
        }
    }
    None
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_crate_of_the_pipeline_parses_a_sentence() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of all crates");
    let mut files = Vec::new();
    PIPELINE.iter().for_each(|name| sources(&crates.join(name).join("src"), &mut files));
    assert!(files.len() > 100, "only {} files: has the tree moved?", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("text");
        let own = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in own.lines().enumerate() {
            if let Some(why) = complaint(line) {
                wrong.push(format!("{}:{}: {why}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "make a type of it, and leave the words to `report::words`:\n{}", wrong.join("\n"));
}

/// What this code base had before there were types.
#[test]
fn sentences_that_are_taken_apart_are_noticed() {
    for line in [
        r#"cause.verdict.symptom.key.starts_with("hang")"#,
        r#"let kind = verdict.symptom.key.split_whitespace().next().unwrap_or_default();"#,
        r#"note.starts_with("what recovery did: ")"#,
        r#"let head = title.split_once(": ").map_or(title, |(head, _)| head);"#,
        r#"let how = end.symptom.text.strip_prefix("recovery ").unwrap_or(&end.symptom.text).to_owned();"#,
        r#"if told.contains("said nothing") {"#,
        r#"!finding.rule.starts_with("FP06")"#,
        r#"let how = line.strip_prefix("recovery ended with ")"#,
    ] {
        assert!(complaint(line).is_some(), "{line}");
    }
    for line in [
        r#"file.strip_prefix(self.folder)"#,
        r#"// note.starts_with("what recovery did")"#,
        r#"frame.module.starts_with("libc.so")"#,
        r#"name.split("::").next()"#,
        r#"if let Some(name) = line.strip_prefix("workload ") {"#,
    ] {
        assert_eq!(complaint(line), None, "{line}");
    }
}
