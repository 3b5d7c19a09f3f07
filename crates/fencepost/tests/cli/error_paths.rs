//! `docs/design/error-paths.md` lists what can go wrong, with the test that provokes it: the tests are there, every golden message is
//! listed, and its exit code is the one of the page.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A row of a table of the page.
struct Row {
    /// `tests/errors/NAME.snap`; none if there is no message.
    golden: Option<String>,
    exit: String,
    file: String,
    test: String,
}

fn rows() -> Vec<Row> {
    let page = fs::read_to_string(repository().join("docs/design/error-paths.md")).expect("the page");
    let mut rows = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| ") && line.contains("`::`")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, golden, exit, test] = cells[..] else { panic!("four cells: {line}") };
        let (file, test) = test.split_once("`::`").expect("a file and a test");
        let bare = |text: &str| text.trim_matches('`').to_owned();
        assert!(
            golden.starts_with('`') || golden.starts_with("no message: "),
            "a golden file, or why there is none: {line}"
        );
        let golden = golden.starts_with('`').then(|| bare(golden));
        rows.push(Row { golden, exit: exit.to_owned(), file: bare(file), test: bare(test) });
    }
    rows
}

#[test]
fn every_path_has_its_test() {
    let rows = rows();
    assert!(rows.len() > 60, "{} rows", rows.len());
    for Row { file, test, .. } in rows {
        let text = fs::read_to_string(repository().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(&format!("fn {test}(")), "{file} has no test `{test}`");
    }
}

#[test]
fn every_golden_message_is_listed_with_its_exit_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let files = fs::read_dir(&folder).expect("readable").flatten().map(|entry| entry.file_name());
    let files: BTreeSet<String> =
        files.filter_map(|name| Some(name.to_str()?.strip_suffix(".snap")?.to_owned())).collect();
    let rows = rows();
    let listed: BTreeSet<String> = rows.iter().filter_map(|row| row.golden.clone()).collect();
    assert_eq!(listed, files);
    for Row { golden, exit, .. } in rows.iter() {
        let Some(golden) = golden else { continue };
        let text = fs::read_to_string(folder.join(format!("{golden}.snap"))).expect("readable");
        assert!(text.contains(&format!("\nexit code {exit}\n")), "{golden} does not end with {exit}: {text}");
    }
}
