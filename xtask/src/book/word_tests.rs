//! Tests of the words: the glossary lists each one once and the code uses it; retired words do not come back.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::site::Site;

/// Folders with pages and source.
const FOLDERS: [&str; 5] = ["docs", "crates", "bench", "targets", "xtask/src"];
const ROOT: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// What the word was, and what to write.
const RETIRED: [(&str, &str); 21] = [
    ("hunt", "check session"),
    ("scene", "crash position"),
    ("scenes", "crash positions"),
    ("rehearse", "make a reference run"),
    ("rehearsal", "reference run"),
    ("rehearsed", "ran without a crash"),
    ("exhibit", "evidence"),
    ("exhibits", "evidence"),
    ("keeper", "supervisor"),
    ("leash", "liveness pipe"),
    ("patience", "analysis deadline, or timeout"),
    ("horizon", "operations after the crash"),
    ("learnt", "found out"),
    ("learned instruction", "instrumented instruction"),
    ("learned instructions", "instrumented instructions"),
    ("plain mode", "native run"),
    ("the time did not suffice", "time budget exhausted"),
    ("first design", "say what the design is"),
    ("story", "store history, or what happened"),
    ("stretch", "byte range, or part of the trace"),
    ("stretches", "byte ranges, or parts of the trace"),
];

/// Files that may use one: here they are listed, and old names of options are still accepted.
const ALLOWED: [(&str, &str); 2] =
    [("crates/fencepost/src/commands/options/operation.rs", "horizon"), ("xtask/src/book/word_tests.rs", "")];

fn is_text(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| ["md", "rs", "c", "h", "cpp", "js", "html", "snap"].iter().any(|it| extension == *it))
}

fn files(site: &Site) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = ROOT.iter().map(PathBuf::from).collect();
    let mut waiting: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(site.root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let file = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                if entry.file_name() != "target" {
                    waiting.push(file);
                }
            } else if is_text(&file) {
                files.push(file);
            }
        }
    }
    files
}

/// Lower case, words separated by single blanks, with one at both ends. Names in code are words: `ReadTree`, `read_tree`.
fn words(text: &str) -> String {
    let mut words = String::from(" ");
    let mut lower = false;
    for c in text.chars() {
        if c.is_alphanumeric() {
            if c.is_uppercase() && lower {
                words.push(' ');
            }
            lower = c.is_lowercase();
            words.extend(c.to_lowercase());
        } else {
            lower = false;
            if !words.ends_with(' ') {
                words.push(' ');
            }
        }
    }
    words.push(' ');
    words
}

#[test]
fn names_in_code_are_words() {
    assert_eq!(words("fn read_tree(a: ReadTree) // the *read tree*"), " fn read tree a read tree the read tree  ");
}

#[test]
fn retired_words_do_not_come_back() {
    let site = Site::of_this_repository();
    let mut found = Vec::new();
    for file in files(&site) {
        let allowed =
            |word: &str| ALLOWED.iter().any(|(path, it)| file == Path::new(path) && (it.is_empty() || *it == word));
        for (number, line) in fs::read_to_string(site.root.join(&file)).unwrap_or_default().lines().enumerate() {
            let line = words(line);
            for (word, instead) in RETIRED.iter().filter(|(word, _)| !allowed(word)) {
                if line.contains(&format!(" {word} ")) {
                    found.push(format!("{}:{}: `{word}`; write: {instead}", file.display(), number + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn nothing_refers_to_what_readers_do_not_have() {
    let site = Site::of_this_repository();
    for file in files(&site).into_iter().filter(|file| !file.ends_with("word_tests.rs")) {
        let text = site.read(&file).unwrap_or_default();
        for private in ["DESIGN.md", "(issue ", "issue #", "the team's", "last session"] {
            assert!(!text.contains(private), "{} refers to `{private}`", file.display());
        }
    }
}

/// The words in bold before the first column ends.
fn glossary(site: &Site) -> Vec<String> {
    let page = site.read(Path::new("docs/glossary.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| **")?.split(" |").next());
    rows.flat_map(|row| row.trim_end_matches("**").split("** · **").map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn each_word_of_the_glossary_is_listed_once_and_used_in_the_code() {
    let site = Site::of_this_repository();
    let listed = glossary(&site);
    assert!(listed.len() > 40, "{listed:?}");
    let once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "a word is listed twice: {listed:?}");
    let is_source =
        |file: &PathBuf| file.starts_with("crates") && file.extension().is_some_and(|extension| extension == "rs");
    let source: Vec<String> = files(&site)
        .into_iter()
        .filter(is_source)
        .map(|file| words(&fs::read_to_string(site.root.join(file)).unwrap_or_default()))
        .collect();
    for word in &listed {
        let (one, several) = (format!(" {word} "), format!(" {word}s "));
        let used = source.iter().any(|text| text.contains(&one) || text.contains(&several));
        assert!(used, "no code uses `{word}`");
    }
}
