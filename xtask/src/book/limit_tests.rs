//! Tests of docs/models-and-limits.md: each rule, assumption and limit names what shows it, and that is there.

use std::fs;
use std::path::Path;

use super::site::Site;

const PAGE: &str = "docs/models-and-limits.md";
const LITMUS: &str = "crates/persistency/tests/litmus/table.rs";

/// The last cells of the tables whose last column says what shows the row.
fn shown_by(page: &str) -> Vec<&str> {
    let cells = |line: &'_ str| -> Option<String> {
        let cell = line.trim().strip_prefix('|')?.strip_suffix('|')?.rsplit('|').next()?;
        Some(cell.trim().to_owned())
    };
    let mut inside = false;
    let mut found = Vec::new();
    for line in page.lines() {
        match cells(line) {
            None => inside = false,
            Some(head) if head == "shown by" || head == "tested by" => inside = true,
            Some(rule) if rule == "---" => {}
            Some(_) if inside => {
                let line = line.trim().trim_end_matches('|');
                found.push(line.rsplit('|').next().unwrap_or_default().trim());
            }
            Some(_) => {}
        }
    }
    found
}

fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('"').skip(1).step_by(2)
}

#[test]
fn each_rule_and_limit_names_what_shows_it() {
    let site = Site::of_this_repository();
    let page = site.read(Path::new(PAGE)).unwrap();
    let litmus = fs::read_to_string(site.root.join(LITMUS)).unwrap();
    let cells = shown_by(&page);
    assert!(cells.len() > 15, "{cells:#?}");
    for cell in cells {
        assert!(quoted(cell).next().is_some() || cell.contains("]("), "nothing shows a row of {PAGE}: {cell:?}");
    }
    let told = page.lines().filter(|line| line.starts_with('|')).flat_map(quoted);
    // `"eadr"` stands for all rows that begin so.
    for row in told.filter(|row| *row != "eadr") {
        assert!(litmus.contains(&format!("\"{row}\"")), "{LITMUS} has no row {row:?}");
    }
}

#[test]
fn every_row_that_can_be_missed_is_told() {
    let site = Site::of_this_repository();
    let page = site.read(Path::new(PAGE)).unwrap();
    let litmus = fs::read_to_string(site.root.join(LITMUS)).unwrap();
    let missed: Vec<&str> = quoted(&litmus).filter(|row| row.starts_with("can be missed: ")).collect();
    assert!(!missed.is_empty());
    for row in missed {
        assert!(page.contains(row), "{PAGE} does not tell of {row:?}");
    }
    let programs = fs::read_dir(site.root.join("targets/crash/limits")).unwrap();
    for program in programs {
        let name = program.unwrap().file_name().into_string().unwrap();
        assert!(page.contains(&format!("[{name}]")), "{PAGE} does not tell of targets/crash/limits/{name}");
    }
}

#[test]
fn tables_that_show_nothing_are_passed_over() {
    let page =
        "| a | b |\n| --- | --- |\n| c | d |\n\n| a | shown by |\n| --- | --- |\n| c | \"e\" |\n\ntext\n| x | y |\n";
    assert_eq!(shown_by(page), ["\"e\""]);
}
