//! Every call that gets a pointer is made by a program that runs recorded and with `--loads` (the conformance suite), and as a recovery (the tests of
//! `recover`).

use std::collections::BTreeMap;
use std::path::Path;

use syscalls::TABLE;

/// Programs that make calls with everything in a pool.
const PROGRAMS: [&str; 2] = ["targets/conformance/syscalls/each_call.c", "targets/conformance/syscalls/other_calls.c"];

/// Calls that no test makes with a pointer into a pool, and why.
const NOT_TRIED: [(&str, &str); 9] = [
    ("clone", "refused by name: the kernel would write thread ids into the pool"),
    ("set_tid_address", "refused by name: the kernel keeps the pointer"),
    ("set_robust_list", "refused by name: the kernel keeps the pointer"),
    ("rseq", "refused by name: the kernel keeps the pointer"),
    ("modify_ldt", "refused by name: 16- and 32-bit code"),
    ("io_uring_setup", "the recorder says that there is no such call"),
    ("io_uring_enter", "the recorder says that there is no such call"),
    ("io_uring_register", "the recorder says that there is no such call"),
    ("reboot", "a slip would be fatal"),
];

/// Names of calls in the source of a program, and their numbers where it gives them.
fn calls(source: &str) -> BTreeMap<String, Option<u16>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word = |text: &str| -> String { text.chars().take_while(|&c| is_name(c)).collect() };
    let mut calls: BTreeMap<String, Option<u16>> =
        source.split("SYS_").skip(1).map(|rest| (word(rest), None)).collect();
    // `ALIKE("acct", 163, …)`
    for rest in ["ALIKE(\"", "OPENS(\""].iter().flat_map(|macro_name| source.split(macro_name).skip(1)) {
        let number = rest.split(',').nth(1).and_then(|number| number.trim().parse().ok());
        assert!(number.is_some(), "{}", word(rest));
        calls.insert(word(rest), number);
    }
    // `syscall(441 /* epoll_pwait2 */, …)`
    for rest in source.split("syscall(").skip(1) {
        if let Some((number, rest)) = rest.split_once(" /* ")
            && let Ok(number) = number.parse()
        {
            calls.insert(word(rest), Some(number));
        }
    }
    calls
}

#[test]
fn every_call_with_a_pointer_is_made_by_a_program_or_listed_with_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tried = BTreeMap::new();
    for program in PROGRAMS {
        tried.extend(calls(&std::fs::read_to_string(root.join(program)).expect("a program of the tests")));
    }
    let mut told = Vec::new();
    for entry in TABLE {
        let listed = NOT_TRIED.iter().any(|(name, _)| *name == entry.name);
        match tried.get(entry.name) {
            Some(&Some(number)) if number != entry.number => told.push(format!("{}: number {number}?", entry.name)),
            Some(_) if listed => told.push(format!("{} is tried after all", entry.name)),
            None if !listed && !entry.uses.is_empty() => told.push(format!("{} is not tried", entry.name)),
            _ => {}
        }
    }
    assert_eq!(told, Vec::<String>::new());
}
