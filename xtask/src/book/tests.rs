//! Tests of the documentation: every link leads somewhere, every page can be found.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::links::{Link, links, relative};
use super::page::headings;
use super::site::{Site, is_page};
use super::summary::{SummaryEntry, entries, side_bar};

/// Folders with Markdown; the root's own files come with them.
const FOLDERS: [&str; 4] = ["docs", "bench", "targets", "crates/lint/explain"];
const ROOT: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"];

/// All Markdown files in a folder and below.
fn pages_in(site: &Site, folder: &str) -> BTreeSet<PathBuf> {
    let mut pages = BTreeSet::new();
    let mut waiting = vec![PathBuf::from(folder)];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(site.root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let file = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                waiting.push(file);
            } else if is_page(&file) {
                pages.insert(file);
            }
        }
    }
    pages
}

fn all_pages(site: &Site) -> BTreeSet<PathBuf> {
    let folders = FOLDERS.iter().flat_map(|folder| pages_in(site, folder));
    folders.chain(ROOT.iter().map(PathBuf::from)).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let site = Site::of_this_repository();
    let mut broken = Vec::new();
    for page in all_pages(&site) {
        let text = site.read(&page).unwrap();
        for link in links(&page, &text) {
            let told = || format!("{}: {}", page.display(), link.target.display());
            let Some(file) = site.file_of(&link) else {
                // A folder without a README is something to look at, too.
                if !site.root.join(&link.target).exists() {
                    broken.push(told());
                }
                continue;
            };
            let named = |anchor: &String| headings(&site.read(&file).unwrap()).iter().any(|it| it.anchor == *anchor);
            if link.anchor.as_ref().is_some_and(|anchor| !named(anchor)) {
                broken.push(format!("{}#{}", told(), link.anchor.unwrap_or_default()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_page_is_in_the_side_bar_once() {
    let site = Site::of_this_repository();
    let mut listed = Vec::new();
    for entry in site.summary().unwrap() {
        if let SummaryEntry::Page { file, title, .. } = entry {
            assert!(!title.is_empty(), "{} has no title in docs/SUMMARY.md", file.display());
            listed.push(file);
        }
    }
    let once: BTreeSet<PathBuf> = listed.iter().cloned().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice: {listed:#?}");
    let mut docs = pages_in(&site, "docs");
    docs.remove(Path::new("docs/SUMMARY.md"));
    let missing: Vec<_> = docs.difference(&once).collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:#?}");
}

#[test]
fn every_rule_is_in_the_list_of_rules() {
    let site = Site::of_this_repository();
    let page = Path::new("docs/all-rules.md");
    let linked: BTreeSet<PathBuf> =
        links(page, &site.read(page).unwrap()).into_iter().map(|link| link.target).collect();
    let missing: Vec<_> = pages_in(&site, "crates/lint/explain").difference(&linked).cloned().collect();
    assert!(missing.is_empty(), "not in {}: {missing:#?}", page.display());
}

/// The book by itself, away from the repository.
#[test]
fn the_links_of_the_book_work() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let written = Site::of_this_repository().write(out).unwrap();
    assert!(written.pages.len() > 30, "{written:#?}");
    let mut broken = Vec::new();
    for page in &written.pages {
        let html = fs::read_to_string(out.join(page)).unwrap();
        let ways = html.split(" href=\"").skip(1).chain(html.split(" src=\"").skip(1));
        for way in ways.filter_map(|rest| rest.split('"').next()) {
            let Some(Link { target, anchor }) = Link::new(page, way) else { continue };
            let there = fs::read_to_string(out.join(&target));
            let exists = out.join(&target).is_file();
            let named = anchor.is_none_or(|anchor| there.is_ok_and(|html| html.contains(&format!("id=\"{anchor}\""))));
            if !exists || !named {
                broken.push(format!("{}: {way}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn links_are_resolved_by_name() {
    let page = Path::new("docs/design/a.md");
    let link = |written| Link::new(page, written).map(|link| (link.target, link.anchor));
    assert_eq!(link("../b.md#c"), Some((PathBuf::from("docs/b.md"), Some("c".to_owned()))));
    assert_eq!(link("#d"), Some((page.to_owned(), Some("d".to_owned()))));
    assert_eq!(link("../../README.md"), Some((PathBuf::from("README.md"), None)));
    assert_eq!(link("https://example.org/x.md"), None);
    assert_eq!(relative(page, Path::new("docs/b.html")), "../b.html");
    assert_eq!(relative(Path::new("README.md"), Path::new("docs/b.html")), "docs/b.html");
}

#[test]
fn headings_are_named_as_on_github() {
    let names: Vec<String> =
        headings("# A `b` (c)!\n## Exit codes\n## Exit codes\n").into_iter().map(|it| it.anchor).collect();
    assert_eq!(names, ["a-b-c", "exit-codes", "exit-codes-1"]);
}

#[test]
fn the_side_bar_has_parts_and_marks_the_page() {
    let text = "# First\n- [One](a.md)\n  - [Two & more](b/c.md)\n# Second\n- [Three](../d.md)\n";
    let entries = entries(Path::new("docs/SUMMARY.md"), text);
    let bar = side_bar(&entries, Path::new("docs/b/c.md"));
    insta::assert_snapshot!(bar, @r##"
    <h2>First</h2>
    <ul>
    <li><a href="../a.html">One</a>
    <ul>
    <li><a href="c.html" aria-current="page">Two &amp; more</a>
    </ul>
    </ul>
    <h2>Second</h2>
    <ul>
    <li><a href="../../d.html">Three</a>
    </ul>
    "##);
}
