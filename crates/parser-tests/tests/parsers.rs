//! Everything that reads a file or an answer, given altered ones: it may refuse them, but not panic.
//!
//! Traces are altered where their format is known (`crates/trace/tests/file/damage.rs`), the configuration beside its parser
//! (`crates/fencepost/src/config/file.rs`). What the probe writes is not here: both ends are built together (`wire`).

use std::fs;
use std::path::Path;

use parser_tests::hammer::{corpus, hammer};

/// The corpus of this name, altered, as text. Bytes that are not text are replaced: the readers take strings.
fn text(name: &str, parse: impl Fn(&str)) {
    bytes(name, |input| parse(&String::from_utf8_lossy(input)));
}

fn bytes(name: &str, parse: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    hammer(name, &corpus(&folder), &parse);
}

/// As a file: its path.
fn file(name: &str, parse: impl Fn(&Path)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("input");
    bytes(name, |input| {
        fs::write(&path, input).expect("written");
        parse(&path);
    });
}

#[test]
fn grammars() {
    text("grammar", |input| {
        if let Ok(grammar) = operation::grammar::Grammar::parse(input) {
            operation::generate::generate(&grammar, 20, 1);
        }
    });
}

#[test]
fn files_of_operations() {
    bytes("ops", |input| {
        let half = input.len() / 2;
        if let Ok(workload) = operation::workload::Workload::new(&input[..half], &input[half..]) {
            let _ = workload.with_windows("===");
        }
        let _ = operation::workload::Workload::unread(3, Some(input));
    });
}

#[test]
fn baselines() {
    text("baseline", |input| drop(report::baseline::Baseline::parse(input)));
}

#[test]
fn suppressions() {
    text("suppressions", |input| drop(finding::suppress::Suppressions::parse(input, Path::new("suppressions"))));
}

#[test]
fn workloads_of_system_calls() {
    text("fs-workload", |input| drop(::fs::workload::Workload::parse_all(input)));
}

/// What is read is written as it was, so that trees compare.
#[test]
fn trees_of_file_systems() {
    text("fs-tree", |input| {
        if let Ok(tree) = ::fs::tree::Tree::parse(input) {
            assert_eq!(::fs::tree::Tree::parse(&tree.to_string()).as_ref(), Ok(&tree), "{tree}");
        }
    });
}

#[test]
fn answers_of_solvers() {
    text("smt", |input| drop(solve::smt::parse(input)));
}

#[test]
fn entries_of_a_corpus() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("queue")).expect("made");
    fs::write(folder.path().join("queue/000000"), "i 1 2\n").expect("written");
    bytes("cases", |input| {
        fs::write(folder.path().join("cases.jsonl"), input).expect("written");
        fs::write(folder.path().join("fuzz.json"), input).expect("written");
        let _ = fuzz::corpus::Corpus::load(folder.path());
        let _ = fuzz::corpus::Corpus::about(folder.path());
    });
}

#[test]
fn bundles() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("4633296f");
    fs::create_dir(&place).expect("made");
    bytes("bundle", |input| {
        fs::write(place.join("finding.json"), input).expect("written");
        let _ = evidence::bundle::Bundle::read(folder.path(), "4633296f");
    });
    let id = finding::finding::FindingId("4633296f".into());
    bytes("evidence", |input| {
        fs::write(place.join("evidence.json"), input).expect("written");
        let _ = evidence::file::read(folder.path(), &id);
    });
}

#[test]
fn conditions() {
    file("conditions", |path| drop(infer::Conditions::load(path)));
}

#[test]
fn words_of_options() {
    text("words", |input| {
        let _ = drive::template::words(input);
        let _ = drive::template::with_place(input);
        let _ = oracle::command_line::command_line(input, "/".into(), Vec::new());
        let _ = crash::strategy::StrategySpec::list(input);
        let _ = input.parse::<crash::rounds::Shard>();
        let mut settings = lint::registry::Settings::default();
        let _ = settings.parse_level(input);
        let _ = settings.parse_setting(input);
        let _ = solve::input::Shape::default().add_lines(&[input.to_owned()]);
    });
}
