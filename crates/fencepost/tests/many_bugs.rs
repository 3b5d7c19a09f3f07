//! Programs with several bugs at once, made on the spot: each bug is found exactly once, with a failure of its own as evidence, and one
//! more bug beside a baseline of the others is the only new finding.

#[expect(dead_code, reason = "each test binary uses its own part")]
mod cli_support;

use std::fmt::Write as _;
use std::process::Command;

use cli_support::Sandbox;
use serde_json::Value;

/// What is wrong with a slot of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// Its value is never flushed.
    NeverFlushed,
    /// Its value is flushed, but no fence comes before the mark that it is valid.
    NoFence,
    /// The mark is durable before the value is stored.
    MarkFirst,
    /// Two words that must be equal, made durable one after the other.
    Halves,
}

const KINDS: [Bug; 5] = [Bug::NeverFlushed, Bug::NoFence, Bug::MarkFirst, Bug::Halves, Bug::None];

/// Numbers are taken out of complaints, so slots are named by letters.
fn name(slot: usize) -> String {
    let letter = |n: usize| char::from(b'a' + n as u8);
    format!("{}{}", letter(slot / 26), letter(slot % 26))
}

/// One function per slot, all on lines of their own that do not move when a bug is put in.
fn source(bugs: &[Bug]) -> String {
    let mut text = String::from(
        "#include <fcntl.h>\n#include <immintrin.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <sys/mman.h>\n#include <unistd.h>\n\
         typedef struct { uint64_t v, pad[7], ok, pad2[7]; } slot;\nstatic slot *s;\n",
    );
    for (number, bug) in bugs.iter().enumerate() {
        let steps = match bug {
            Bug::None => {
                ["s->v = 7;", "_mm_clwb(&s->v);", "_mm_sfence();", "s->ok = 7;", "_mm_clwb(&s->ok);", "_mm_sfence();"]
            }
            Bug::NeverFlushed => ["s->v = 7;", "", "", "s->ok = 7;", "_mm_clwb(&s->ok);", "_mm_sfence();"],
            Bug::NoFence => ["s->v = 7;", "_mm_clwb(&s->v);", "", "s->ok = 7;", "_mm_clwb(&s->ok);", "_mm_sfence();"],
            Bug::MarkFirst => {
                ["s->ok = 7;", "_mm_clwb(&s->ok);", "_mm_sfence();", "s->v = 7;", "_mm_clwb(&s->v);", "_mm_sfence();"]
            }
            Bug::Halves => {
                ["s->v = 7;", "_mm_clwb(&s->v);", "_mm_sfence();", "s->ok = 8;", "_mm_clwb(&s->ok);", "_mm_sfence();"]
            }
        };
        writeln!(text, "__attribute__((noinline)) static void fill_{}(slot *s) {{", name(number)).unwrap();
        for step in steps {
            writeln!(text, "    {step}").unwrap();
        }
        text.push_str("}\n");
    }
    text.push_str("static int check(void) {\n");
    for (number, bug) in bugs.iter().enumerate() {
        // Halves: one without the other is wrong, whichever it is.
        let wrong = match bug {
            Bug::Halves => format!("(s[{number}].v == 7) != (s[{number}].ok == 8)"),
            _ => format!("s[{number}].ok == 7 && s[{number}].v != 7"),
        };
        writeln!(text, "    if ({wrong}) {{ fprintf(stderr, \"slot {} is wrong\\n\"); return 1; }}", name(number))
            .unwrap();
    }
    text.push_str(
        "    return 0;\n}\nint main(int argc, char **argv) {\n    int fd = open(argv[1], O_RDWR | O_CREAT, 0666);\n\
         if (fd < 0 || ftruncate(fd, 65536)) return 9;\n    s = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);\n\
         if (argc > 2) return check();\n",
    );
    for number in 0..bugs.len() {
        writeln!(text, "    fill_{0}(s + {number});", name(number)).unwrap();
    }
    text.push_str("    return 0;\n}\n");
    text
}

struct Program {
    sandbox: Sandbox,
}

impl Program {
    fn new() -> Program {
        Program { sandbox: Sandbox::new() }
    }

    /// Findings of a default check: of each its function and whether it is known, and the whole text.
    fn check(&self, bugs: &[Bug], options: &[&str]) -> Vec<(String, bool, String)> {
        std::fs::write(self.sandbox.path("many.c"), source(bugs)).expect("writable");
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g", "-mclwb", "-o"]).arg(self.sandbox.path("many")).arg(self.sandbox.path("many.c"));
        assert!(cc.status().expect("cc is installed").success());
        let _ = std::fs::remove_file(self.sandbox.path("pool"));
        let mut arguments = vec!["check", "--no-lint", "--message-format", "json", "--recover", "./many pool check"];
        arguments.extend(options);
        arguments.extend(["--", "./many", "pool"]);
        let ran = self.sandbox.run_limited(&arguments);
        let values = ran.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let findings = values.filter(|value| value["type"] == "finding");
        findings
            .map(|finding| {
                let function = finding["locations"][0]["function"].as_str().unwrap_or_default().to_owned();
                (function, finding["baseline"] == "known", finding.to_string())
            })
            .collect()
    }
}

/// Every bug once, and its evidence is a failure of its own slot.
#[track_caller]
fn assert_each_once(bugs: &[Bug], found: &[(String, bool, String)]) {
    let mut functions: Vec<&str> = found.iter().map(|(function, ..)| function.as_str()).collect();
    functions.sort_unstable();
    let wrong = bugs.iter().enumerate().filter(|(_, bug)| **bug != Bug::None);
    let expected: Vec<String> = wrong.map(|(number, _)| format!("fill_{}", name(number))).collect();
    assert_eq!(functions, expected, "{bugs:?}");
    for (function, _, text) in found {
        let own = format!("slot {} is wrong", &function["fill_".len()..]);
        assert!(text.contains(&own), "{function} is shown with another failure: {text}");
    }
}

#[test]
fn lost_stores_do_not_hide_each_other() {
    let program = Program::new();
    for count in [5, 18, 30] {
        let bugs = vec![Bug::NeverFlushed; count];
        assert_each_once(&bugs, &program.check(&bugs, &[]));
    }
}

#[test]
fn bugs_of_all_classes_are_found_together() {
    let program = Program::new();
    for shift in 0..3 {
        let bugs: Vec<Bug> = (0..15).map(|number| KINDS[(number * 3 + shift) % KINDS.len()]).collect();
        assert_each_once(&bugs, &program.check(&bugs, &[]));
    }
}

#[test]
fn one_more_bug_is_the_only_new_finding() {
    let program = Program::new();
    let mut bugs: Vec<Bug> = (0..12).map(|number| KINDS[number % 4]).collect();
    for added in [3, 6, 9] {
        let more = std::mem::replace(&mut bugs[added], Bug::None);
        let before = program.check(&bugs, &["--write-baseline", "known.json"]);
        assert_eq!(before.len(), 11);
        bugs[added] = more;
        let after = program.check(&bugs, &["--baseline", "known.json"]);
        let new: Vec<&str> =
            after.iter().filter(|(_, known, _)| !known).map(|(function, ..)| function.as_str()).collect();
        assert_eq!(new, [format!("fill_{}", name(added))], "{added}");
    }
}

#[test]
fn a_program_without_bugs_stays_clean() {
    assert_eq!(Program::new().check(&[Bug::None; 12], &[]), []);
}
