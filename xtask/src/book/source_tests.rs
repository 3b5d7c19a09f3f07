//! Tests of what the documentation says about the source: files that it names exist, and so do the functions at each hop of the two ways.
//! And of the source itself: some type names occur once.

use std::fs;
use std::path::{Path, PathBuf};

use super::site::Site;

/// `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`.
fn expanded(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?)));
    match parts {
        Some((head, (choices, tail))) => choices.split(',').map(|choice| format!("{head}{choice}{tail}")).collect(),
        None => vec![path.to_owned()],
    }
}

/// Everything in backticks that is a path below `crates/`.
fn named_paths(text: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let paths = quoted.filter(|text| text.starts_with("crates/") && !text.contains(' '));
    paths.flat_map(expanded).collect()
}

#[test]
fn files_that_the_way_through_the_source_names_exist() {
    let site = Site::of_this_repository();
    let text = fs::read_to_string(site.root.join("ARCHITECTURE.md")).unwrap();
    let paths = named_paths(&text);
    assert!(paths.len() > 40, "{paths:?}");
    let missing: Vec<&String> = paths.iter().filter(|path| !site.root.join(path).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names {missing:#?}");
}

/// One line of a way: where, and what to find there.
#[derive(Debug)]
struct Hop {
    files: Vec<PathBuf>,
    names: Vec<String>,
}

/// The hops of the picture that follows this heading. A line in the left column says in which crate the next ones are.
fn hops(text: &str, heading: &str) -> Vec<Hop> {
    let section = text.split(heading).nth(1).and_then(|rest| rest.split("```text").nth(1));
    let picture = section.and_then(|rest| rest.split("```").next()).expect("a picture");
    let mut folder = PathBuf::new();
    let mut found = Vec::new();
    for line in picture.lines() {
        if let Some(inside) = line.split_once("(crates/").and_then(|(_, rest)| rest.split_once(')')) {
            folder = Path::new("crates").join(inside.0);
            if !inside.0.contains('/') {
                folder.push("src");
            }
        }
        // Columns are at least two blanks apart.
        let columns: Vec<&str> = line.split("  ").map(str::trim).filter(|column| !column.is_empty()).collect();
        let is_place = |column: &&str| column.starts_with("crates/") || column.ends_with(".rs");
        let Some(at) = columns.iter().position(is_place) else { continue };
        let files = columns[at]
            .split(", ")
            .map(|place| if place.starts_with("crates/") { PathBuf::from(place) } else { folder.join(place) });
        let names = columns.get(at + 1).unwrap_or_else(|| panic!("no function at {line:?}"));
        found.push(Hop { files: files.collect(), names: names.split(", ").map(str::to_owned).collect() });
    }
    found
}

fn sources(path: &Path, text: &mut String) {
    if path.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries.iter().for_each(|entry| sources(entry, text));
    } else if path.extension().is_some_and(|end| end == "rs") {
        *text += &fs::read_to_string(path).unwrap();
    }
}

/// `Type::function`, `function`, or a type.
fn is_defined(name: &str, source: &str) -> bool {
    let defines = |keyword: &str, name: &str| {
        source.match_indices(&format!("{keyword} {name}")).any(|(at, found)| {
            let next = source[at + found.len()..].chars().next();
            next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
        })
    };
    let is_type = |name: &str| ["struct", "enum", "trait", "type"].iter().any(|keyword| defines(keyword, name));
    match name.rsplit_once("::") {
        Some((of, function)) => {
            defines("fn", function) && (is_type(of) || defines("impl", of) || source.contains(&format!(" {of}")))
        }
        None => defines("fn", name) || is_type(name),
    }
}

#[test]
fn every_hop_of_both_ways_is_there() {
    let site = Site::of_this_repository();
    let text = fs::read_to_string(site.root.join("ARCHITECTURE.md")).unwrap();
    for (heading, least) in [("## A store's way", 8), ("## A crash state's way", 12)] {
        let hops = hops(&text, heading);
        assert!(hops.len() >= least, "{heading}: {hops:#?}");
        for hop in hops {
            let mut source = String::new();
            for file in &hop.files {
                assert!(site.root.join(file).exists(), "{heading}: there is no {}", file.display());
                sources(&site.root.join(file), &mut source);
            }
            for name in &hop.names {
                assert!(is_defined(name, &source), "{heading}: no `{name}` in {:?}", hop.files);
            }
        }
    }
}

#[test]
fn the_exercises_name_at_most_three_files_that_exist() {
    let site = Site::of_this_repository();
    let text = fs::read_to_string(site.root.join("CONTRIBUTING.md")).unwrap();
    let table = text.split("## Five exercises").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("exercises");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| a")).collect();
    assert_eq!(rows.len(), 5, "{rows:#?}");
    for row in rows {
        let touched = row.split('|').nth(2).unwrap_or_default();
        let is_path = |text: &&str| !text.contains(' ') && (text.ends_with(".rs") || text.ends_with('/'));
        let files: Vec<&str> = touched.split('`').skip(1).step_by(2).filter(is_path).collect();
        assert!((2..=3).contains(&files.len()), "{row}");
        // Names without a crate belong to that of the first.
        let own: PathBuf = Path::new(files[0]).iter().take(3).collect();
        for file in files {
            let path = if file.starts_with("crates/") { PathBuf::from(file) } else { own.join(file) };
            // The new one is not there yet; its folder is.
            let path = if file.contains("NAME") { path.parent().unwrap().to_owned() } else { path };
            assert!(site.root.join(&path).exists(), "{row}\nthere is no {}", path.display());
        }
    }
}

/// The test binaries that commands name, each with its crate.
fn named_tests(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for command in text.split("cargo test").skip(1) {
        let command = command.split(['`', '\n']).next().unwrap_or_default();
        let words: Vec<&str> = command.split_whitespace().collect();
        let after = |option: &str| words.iter().position(|word| *word == option).and_then(|at| words.get(at + 1));
        if let (Some(krate), Some(test)) = (after("-p"), after("--test")) {
            found.push(((*krate).to_owned(), (*test).to_owned()));
        }
    }
    found
}

/// Pages with commands and paths, and what is in them.
fn pages(site: &Site) -> Vec<(PathBuf, String)> {
    let mut pages = vec![site.root.join("README.md"), site.root.join("CONTRIBUTING.md")];
    let mut folders: Vec<PathBuf> = ["docs", "docs/contributing", "docs/design"].map(PathBuf::from).to_vec();
    folders.extend(fs::read_dir(site.root.join("targets")).unwrap().map(|entry| entry.unwrap().path()));
    for folder in folders.iter().map(|folder| site.root.join(folder)).filter(|folder| folder.is_dir()) {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn files_that_pages_name_exist() {
    let site = Site::of_this_repository();
    // What somebody who adds something chooses.
    let is_new = |path: &String| ["NAME", "your_", "FPxxxx", "*"].iter().any(|new| path.contains(new));
    let mut count = 0;
    for (page, text) in pages(&site) {
        for path in named_paths(&text).into_iter().filter(|path| !is_new(path)) {
            let file = path.split("::").next().unwrap_or_default();
            assert!(site.root.join(file).exists(), "{} names {path}, which is not there", page.display());
            count += 1;
        }
    }
    assert!(count > 80, "{count}");
}

#[test]
fn tests_that_pages_name_exist() {
    let site = Site::of_this_repository();
    let named: Vec<(String, String)> = pages(&site).iter().flat_map(|(_, text)| named_tests(text)).collect();
    assert!(named.len() > 8, "{named:?}");
    for (krate, test) in named {
        let folder = site.root.join("crates").join(&krate).join("tests");
        let exists = folder.join(format!("{test}.rs")).exists() || folder.join(&test).join("main.rs").exists();
        assert!(exists, "a page names the test `{test}` of `{krate}`, which is not there");
    }
    let text = "`cargo test --release -p a --test b -- c` and `cargo test -p d`\ncargo test -p e --test f\n";
    let expected = [("a".to_owned(), "b".to_owned()), ("e".to_owned(), "f".to_owned())];
    assert_eq!(named_tests(text), expected);
}

/// Each was the name of several types once. More precise ones, such as `SolverStage`, are better.
const ONCE: [&str; 14] = [
    "Campaign", "Entry", "Fate", "Frame", "Kind", "Line", "Outcome", "Plan", "Rule", "Slot", "Stage", "Step",
    "Verdict", "Workload",
];

fn definitions(name: &str, source: &str) -> usize {
    let defines = |line: &&str| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        let keyword = words.find(|word| !["pub", "crate", "super", "in"].contains(word));
        keyword.is_some_and(|word| ["struct", "enum", "trait", "union", "type"].contains(&word))
            && words.next() == Some(name)
    };
    source.lines().filter(defines).count()
}

#[test]
fn common_type_names_are_defined_once() {
    let site = Site::of_this_repository();
    let mut source = String::new();
    for krate in fs::read_dir(site.root.join("crates")).unwrap() {
        sources(&krate.unwrap().path().join("src"), &mut source);
    }
    sources(&site.root.join("xtask/src"), &mut source);
    assert_eq!(definitions("CheckSession", &source), 1, "has the tree moved?");
    for name in ONCE {
        let count = definitions(name, &source);
        assert!(count <= 1, "{count} types are called `{name}`: give them names that say what they are");
    }
    let several = "pub(crate) struct Step {\npub enum Step<'a> {\nstruct Steps;\n/// A step.\nlet step = Step;";
    assert_eq!(definitions("Step", several), 2);
}

/// Blocks of documentation that `cargo test` runs.
fn examples(source: &str) -> usize {
    let blocks = source.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("//!").or(line.strip_prefix("///"))?.trim_start().strip_prefix("```")
    });
    blocks.step_by(2).filter(|language| matches!(*language, "" | "rust" | "no_run" | "should_panic")).count()
}

/// Looking for examples takes a second per crate, and most have none.
#[test]
fn crates_with_examples_have_them_tested() {
    let site = Site::of_this_repository();
    let mut with_examples = 0;
    for krate in fs::read_dir(site.root.join("crates")).unwrap().map(|krate| krate.unwrap().path()) {
        let mut source = String::new();
        sources(&krate.join("src"), &mut source);
        let count = examples(&source);
        let manifest = fs::read_to_string(krate.join("Cargo.toml")).unwrap();
        let is_tested = !manifest.contains("doctest = false");
        assert!(count == 0 || is_tested, "{} has {count} examples; remove `doctest = false`", krate.display());
        with_examples += usize::from(count > 0);
    }
    assert!(with_examples >= 3, "only {with_examples} crates have examples");
    assert_eq!(examples("//! ```text\n//! ```\n/// ```\n/// f();\n/// ```\n    /// ```no_run\n    /// ```\n"), 2);
}

#[test]
fn what_is_not_there_is_noticed() {
    assert!(is_defined("Tracker::apply", "pub struct Tracker;\nimpl Tracker { pub fn apply(&self) {} }"));
    assert!(!is_defined("Tracker::apply", "pub struct Tracker;\nimpl Tracker { pub fn apply_all(&self) {} }"));
    assert!(!is_defined("Tracker", "fn track() {}"));
    assert_eq!(expanded("crates/a/{b,c}.rs"), ["crates/a/b.rs", "crates/a/c.rs"]);
    let hops = hops("## Way\n```text\n in (crates/a/src/b)\n   this is done        c.rs   f\n```\n", "## Way");
    assert_eq!((hops[0].files[0].as_path(), hops[0].names[0].as_str()), (Path::new("crates/a/src/b/c.rs"), "f"));
}
