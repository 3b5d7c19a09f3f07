//! The rules that tell a right recovery from a wrong one.

use std::collections::BTreeSet;

use recover::report::RunReport;
use verdict::end::{End, Frame};
use verdict::symptom::Party;
use verdict::verdict::Verdict;

use crate::pattern::{self, Pattern};
use crate::symptom::Finder;

/// Judges recoveries. A recovery that hangs, dies by a signal or takes more than its limits is always wrong.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// Exit codes of a right recovery.
    pub exit_ok: BTreeSet<i32>,
    /// No line of its output may match one of these.
    pub patterns: Vec<Pattern>,
}

impl Default for Oracle {
    /// Exit code 0, and no complaint of a sanitizer.
    fn default() -> Self {
        Oracle { exit_ok: BTreeSet::from([0]), patterns: pattern::sanitizers() }
    }
}

impl Oracle {
    pub fn judge(&self, recovery: &RunReport) -> Verdict {
        self.judge_named(recovery, None, &|_| None)
    }

    /// With a checker that ran on the recovered pool, if recovery got so far, and names for the functions of a call path.
    /// The names are no part of a symptom's key, so that verdicts with and without them agree.
    pub fn judge_named(
        &self,
        recovery: &RunReport,
        checker: Option<&RunReport>,
        names: &dyn Fn(&Frame) -> Option<String>,
    ) -> Verdict {
        let find = |who, run| Finder { who, run, names }.find(&self.exit_ok, &self.patterns);
        match find(Party::Recovery, recovery).or_else(|| find(Party::Checker, checker?)) {
            Some(symptom) => Verdict::fail(symptom),
            None => Verdict::Pass,
        }
    }

    /// Recovery went well as far as it can be told without a checker: then one is worth its run.
    pub fn wants_checker(&self, recovery: &RunReport) -> bool {
        matches!(recovery.end, End::Exited(_)) && self.judge(recovery).is_pass()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use verdict::end::Limit;

    use verdict::symptom::{CodePlace, Failure, Symptom};

    use super::*;

    fn run(end: End, stdout: &str, stderr: &str) -> RunReport {
        RunReport {
            end,
            stdout: stdout.into(),
            stderr: stderr.into(),
            boundaries: Vec::new(),
            output_cut: false,
            cpu: Duration::ZERO,
            wall: Duration::from_millis(12),
            reads: None,
            dirtied: Vec::new(),
            pools_replaced: false,
            tree_changed: false,
            outside: Vec::new(),
        }
    }

    fn key(end: End, stdout: &str, stderr: &str) -> String {
        key_of(&Oracle::default().judge(&run(end, stdout, stderr)))
    }

    fn key_of(verdict: &Verdict) -> String {
        verdict.symptom().expect("a failure").key().to_string()
    }

    fn signalled(signal: i32, path: &[(&str, u64)]) -> End {
        let path = path.iter().map(|&(module, address)| Frame { module: module.into(), address }).collect();
        End::Signalled { signal, path }
    }

    #[test]
    fn a_quiet_success_passes() {
        let verdict = Oracle::default().judge(&run(End::Exited(0), "42 keys\n", "warning: slow\n"));
        assert_eq!(verdict, Verdict::Pass);
    }

    #[test]
    fn other_exit_codes_can_be_right() {
        let oracle = Oracle { exit_ok: BTreeSet::from([0, 3]), ..Oracle::default() };
        assert!(oracle.judge(&run(End::Exited(3), "", "")).is_pass());
        assert!(!oracle.judge(&run(End::Exited(4), "", "")).is_pass());
    }

    #[test]
    fn an_exit_code_comes_with_the_first_complaint_and_without_its_numbers() {
        let one = key(End::Exited(1), "", "\nkv: key 17 at 0x7f00deadbeef is lost (pid 4711)\nmore\n");
        let two = key(End::Exited(1), "", "kv: key 8 at 0x10 is lost (pid 9)\n");
        assert_eq!(one, "exit 1: kv: key # at # is lost (pid #)");
        assert_eq!(one, two);
        assert_ne!(one, key(End::Exited(2), "", "kv: key 8 at 0x10 is lost (pid 9)\n"));
        assert_eq!(key(End::Exited(1), "", ""), "exit 1");
    }

    #[test]
    fn a_signal_comes_with_the_innermost_place_that_is_the_programs_own() {
        assert_eq!(key(signalled(libc::SIGSEGV, &[]), "", ""), "signal 11");
        let path = [("/lib/x86_64-linux-gnu/libc.so.6", 0x80), ("/usr/lib/libstdc++.so.6", 0x90), ("/opt/kv", 0x1234)];
        assert_eq!(key(signalled(libc::SIGABRT, &path), "", ""), "signal 6 in kv+0x1234");
        assert_eq!(key(signalled(libc::SIGSEGV, &path[..1]), "", ""), "signal 11 in libc.so.6+0x80");
    }

    #[test]
    fn names_are_for_people_only() {
        let report = run(signalled(libc::SIGSEGV, &[("/opt/kv", 0x1234), ("/opt/kv", 0x2000)]), "", "");
        let oracle = Oracle::default();
        let named = oracle.judge_named(&report, None, &|frame| (frame.address == 0x1234).then(|| "lookup".into()));
        assert!(named.agrees(&oracle.judge(&report)));
        let place = CodePlace { module: "kv".into(), address: 0x1234, function: Some("lookup".into()) };
        let how = Failure::Signal { signal: libc::SIGSEGV, place: Some(place) };
        assert_eq!(named, Verdict::fail(Symptom::Failed { by: Party::Recovery, how }));
    }

    #[test]
    fn hangs_and_limits() {
        assert_eq!(key(End::Hung, "", ""), "hang");
        assert_eq!(key(End::OverLimit(Limit::Memory), "", ""), "limit memory");
        assert_eq!(key(End::OverLimit(Limit::Processes), "x", "y"), "limit processes");
    }

    #[test]
    fn a_sanitizer_is_heard_whatever_the_exit() {
        let line = "==4711==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010 at pc 0x55";
        let expected = "output: ==#==ERROR: AddressSanitizer: heap-use-after-free on address # at pc #";
        for end in [End::Exited(0), End::Exited(1), signalled(libc::SIGABRT, &[])] {
            assert_eq!(key(end, "", &format!("start\n{line}\n")), expected);
        }
        assert_eq!(
            key(End::Exited(0), "", "kv.c:12:7: runtime error: shift exponent 64 is too large\n"),
            "output: kv.c:#:#: runtime error: shift exponent # is too large"
        );
    }

    #[test]
    fn own_patterns_look_at_both_streams() {
        let oracle = Oracle { patterns: vec![Pattern::new("(?i)corrupt").unwrap()], ..Oracle::default() };
        for (stdout, stderr) in [("tree is CORRUPT\n", ""), ("", "tree is CORRUPT\n")] {
            let verdict = oracle.judge(&run(End::Exited(0), stdout, stderr));
            assert_eq!(key_of(&verdict), "output: tree is CORRUPT");
        }
        assert!(oracle.judge(&run(End::Exited(0), "fine\n", "")).is_pass());
    }

    #[test]
    fn a_checker_is_asked_last() {
        let oracle = Oracle::default();
        let (good, bad) = (run(End::Exited(0), "", ""), run(End::Exited(1), "", "key 3 lost"));
        let judge = |recovery, checker| key_of(&oracle.judge_named(recovery, checker, &|_| None));
        assert_eq!(judge(&good, Some(&bad)), "checker exit 1: key # lost");
        assert_eq!(judge(&bad, Some(&good)), "exit 1: key # lost");
        assert!(oracle.judge_named(&good, Some(&good), &|_| None).is_pass());
        assert!(oracle.wants_checker(&good) && !oracle.wants_checker(&bad));
        assert!(!oracle.wants_checker(&run(End::Hung, "", "")));
    }
}
