//! The HTML report as text: its skeleton, and that nothing of a program's names gets out of it.

use super::sample::{NASTY, everything, html, run};

/// Without the style and the script, which have files of their own, and the data, which is long.
fn skeleton(page: &str) -> String {
    let mut rest = page;
    let mut text = String::new();
    for (open, close) in [("<style>", "</style>"), ("<script>\n", "</script>")] {
        let (before, after) = rest.split_once(open).unwrap();
        let (_, after) = after.split_once(close).unwrap();
        text = format!("{text}{before}{open}…{close}");
        rest = after;
    }
    text += rest;
    let lines = text.lines().map(str::trim_end).filter(|line| !line.trim().is_empty());
    lines.collect::<Vec<&str>>().join("\n")
}

#[test]
fn golden() {
    let (run, evidence) = everything();
    insta::assert_snapshot!(skeleton(&html(&run, &evidence)));
}

#[test]
fn golden_of_nothing() {
    insta::assert_snapshot!(skeleton(&html(&run(), &[])));
}

#[test]
fn names_are_text_everywhere() {
    let (run, evidence) = everything();
    let page = html(&run, &evidence);
    assert!(!page.contains(NASTY) && !page.contains("<script>window"), "a name is markup");
    // Once in the script that is ours, once around the data of the finding.
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(page.contains("\\u003c/script>\\u003cscript>window.broken"));
    assert!(page.contains("&#60;script&#62;window.broken") || page.contains("&lt;script&gt;window.broken"));
}

#[test]
fn a_report_needs_no_other_file() {
    let (run, evidence) = everything();
    let page = html(&run, &evidence);
    for remote in ["http:", "https:", " src=", "@import", "url(", "<link", "<iframe", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(remote), "{remote}");
    }
}

#[test]
fn the_page_itself_is_small() {
    let page = html(&run(), &[]);
    assert!(page.len() < 80_000, "{} bytes without any finding", page.len());
}
