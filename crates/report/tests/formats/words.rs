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

/// The crates that record, and those that pass on what others say: they read files of the kernel and protocols, whose lines begin with a word.
const BESIDE: [&str; 8] = ["trace", "record", "supervise", "persistency", "infer", "drive", "vm", "fleet"];

/// What takes text apart.
const PARSERS: [&str; 16] = [
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
    "rfind(",
    "splitn(",
    "rsplit(",
    "matches(",
    "eq(",
];

/// What holds words for people, or once did.
const SPOKEN: [&str; 6] = ["symptom", "note", "title", "message", "verdict", "rule"];

/// What holds lines of a file or of a protocol: their first word says what they are.
const LINES: [&str; 2] = ["line", "text"];

/// `"…"` or `'…'` at the beginning of an argument.
fn literal(argument: &str) -> Option<&str> {
    let quote = argument.chars().next().filter(|first| ['"', '\''].contains(first))?;
    argument[1..].split(quote).next()
}

/// Why a line of code takes a sentence apart; none if it does not. With `keywords`, text may begin or end with a word and a blank.
fn complaint(line: &str, keywords: bool) -> Option<&'static str> {
    let code = line.trim_start();
    if code.starts_with("//") {
        return None;
    }
    for parser in PARSERS {
        for (at, _) in code.match_indices(&format!(".{parser}")) {
            let (before, argument) = (&code[..at], &code[at + 1 + parser.len()..]);
            let literal = literal(argument);
            let receiver = before.rsplit([' ', '(', '|', '&', '!']).next().unwrap_or_default();
            let is_keyword = |text: &str| {
                keywords && !text.trim().contains(' ') || LINES.contains(&receiver) && !text.trim_end().contains(' ')
            };
            if literal.is_some_and(|text| text.trim() != "" && text.contains(' ') && !is_keyword(text)) {
                return Some("looks for a piece of a sentence");
            }
            let is_text = literal.is_some() || parser == "split_whitespace(";
            if is_text && SPOKEN.iter().any(|word| receiver.split('.').any(|part| part.starts_with(word))) {
                return Some("takes words for people apart");
            }
        }
    }
    // `title == "…"`, `"…" != note.text`.
    for (at, operator) in code.match_indices(" == ").chain(code.match_indices(" != ")) {
        let left = code[..at].rsplit([' ', '(', '|', '&', '!']).next().unwrap_or_default();
        let right = &code[at + operator.len()..];
        let name = right.split([' ', ')', '|', '&', ',', ';']).next().unwrap_or_default();
        let compared =
            [(left, literal(right)), (name, code[..at].strip_suffix('"').and_then(|left| left.rsplit('"').next()))];
        let is_spoken = |name: &str| SPOKEN.iter().any(|word| name.split('.').any(|part| part.starts_with(word)));
        if compared.iter().any(|(name, literal)| is_spoken(name) && literal.is_some_and(|text| text.contains(' '))) {
            return Some("compares words for people");
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
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, keywords) in PIPELINE.iter().map(|name| (name, false)).chain(BESIDE.iter().map(|name| (name, true))) {
        let mut files = Vec::new();
        sources(&crates.join(name).join("src"), &mut files);
        assert!(!files.is_empty(), "{name} has no files: has the tree moved?");
        count += files.len();
        for path in files {
            let text = fs::read_to_string(&path).expect("text");
            let own = text.split("#[cfg(test)]").next().unwrap_or_default();
            for (number, line) in own.lines().enumerate() {
                if let Some(why) = complaint(line, keywords) {
                    wrong.push(format!("{}:{}: {why}: {}", path.display(), number + 1, line.trim()));
                }
            }
        }
    }
    assert!(count > 300, "only {count} files");
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
        r#"if finding.title == "a store is never flushed" {"#,
        r#"let is_hang = "the recovery hangs" == symptom;"#,
        r#"let (head, rest) = note.split_once(' ')?;"#,
        r#"title.rfind(": ")"#,
    ] {
        assert!(complaint(line, false).is_some(), "{line}");
    }
    for line in [
        r#"file.strip_prefix(self.folder)"#,
        r#"// note.starts_with("what recovery did")"#,
        r#"frame.module.starts_with("libc.so")"#,
        r#"name.split("::").next()"#,
        r#"if let Some(name) = line.strip_prefix("workload ") {"#,
    ] {
        assert_eq!(complaint(line, false), None, "{line}");
    }
    assert_eq!(complaint(r#"words.strip_prefix("bits ")"#, true), None);
    assert!(complaint(r#"words.contains("was not flushed")"#, true).is_some());
}
