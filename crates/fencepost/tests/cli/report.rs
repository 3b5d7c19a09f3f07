//! `--html` of `check` and `crash`, and `fencepost report`: the report of a run, at once and later.

use std::fs;

use crate::crash_support::Case;

fn page(case: &Case, name: &str) -> String {
    fs::read_to_string(case.sandbox.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Without the lines that hold data, which is compared elsewhere.
fn ids(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.split_once("data-id=\"")).map(|(_, rest)| &rest[..8]).collect()
}

#[test]
fn the_report_of_a_run_now_and_later() {
    let case = Case::new();
    let recovery = case.recovery("check");
    let checked = case.check(&["--recover", &recovery, "--html", "now.html"]);
    checked.expect(1, &["the report is in now.html"]);
    let now = page(&case, "now.html");
    for words in
        ["breaks this program", "add</code>", "not in PM", "fencepost replay ", "data-timeline", "what recovery"]
    {
        assert!(now.to_lowercase().contains(&words.to_lowercase()), "`{words}` is not in the report");
    }
    assert!(now.contains("/records.c") && now.contains("class=\"hit missing\""));

    case.run(&["report", "-o", "later.html"]).expect(0, &["the report is in later.html"]);
    assert_eq!(page(&case, "later.html"), now);

    // Without the file about the run, the findings are still there.
    fs::remove_file(case.sandbox.path(".fencepost/last-run.json")).unwrap();
    case.run(&["report"]).expect(0, &["fencepost-report.html"]);
    let alone = page(&case, "fencepost-report.html");
    assert_eq!(ids(&alone), ids(&now));
    assert!(alone.contains("how far it went is not known"));
}

#[test]
fn a_clean_run_makes_earlier_findings_history() {
    let case = Case::new();
    let recovery = case.recovery("check");
    case.check(&["--recover", &recovery]).expect(1, &[]);
    // A recovery that does not look.
    case.check(&["--recover", "true", "--html", "clean.html"]).expect(0, &[]);
    let clean = page(&case, "clean.html");
    assert!(clean.contains("Nothing found") && clean.contains("What was not") && ids(&clean).is_empty());
    case.run(&["report", "-o", "later.html"]).expect(0, &[]);
    assert!(page(&case, "later.html").contains("1 finding of earlier runs is not shown"));
    case.run(&["report", "--all", "-o", "all.html"]).expect(0, &[]);
    assert!(!ids(&page(&case, "all.html")).is_empty());
}

#[test]
fn what_users_get_wrong() {
    let case = Case::new();
    case.run(&["report"]).golden("nothing-to-report");
    let recovery = case.recovery("check");
    // Said before the program runs.
    case.check(&["--recover", &recovery, "--html", "no/such/report.html"]).golden("no-folder-for-the-report");
    case.check(&["--recover", &recovery, "--html", "."]).golden("report-is-a-folder");
    assert!(!case.sandbox.path(&case.pool).exists());
    fs::create_dir_all(case.sandbox.path(".fencepost")).unwrap();
    fs::write(case.sandbox.path(".fencepost/last-run.json"), "{").unwrap();
    case.run(&["report"]).golden("damaged-last-run");
    case.record("1");
    let crash = case.run(&["crash", "trace", "--recover", &recovery, "--html", "/dev/full"]);
    crash.golden("disk-full-while-reporting");
}
