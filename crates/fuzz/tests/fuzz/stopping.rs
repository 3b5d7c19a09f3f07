//! Runs that share their beginning, and are forked behind it, do what runs from the beginning do: the same maps, and the same pools.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fuzz::execute::{Delivery, Executor, Subject, Until};
use fuzz::image::Image;
use fuzz::inputs::Inputs;
use fuzz::inputs::operations::Operations;
use fuzz::random::Random;
use operation::grammar::Grammar;
use recover::command::{Command, Input};
use recover::limits::Limits;
use recover::pages::Content;
use targets::crash::{TWIN, rare};
use targets::pmdk;

fn executor(name: &str, space: &Path) -> (Executor, Operations) {
    let target = rare().unwrap().into_iter().find(|target| target.name == name).expect("it is in targets/fuzz");
    let program = target.build(TWIN, &Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz")).unwrap();
    let pool = space.join("pool");
    let words: Vec<OsString> = target.run_command(&program, &pool).into_iter().map(Into::into).collect();
    let grammar = std::fs::read_to_string(target.grammar.unwrap()).unwrap();
    (executor_of(&words, pool, space), Operations::new(Grammar::parse(&grammar).unwrap()))
}

fn executor_of(words: &[OsString], pool: PathBuf, space: &Path) -> Executor {
    let command = Command {
        program: words[0].clone().into(),
        args: words[1..].to_vec(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        dir: space.to_owned(),
        stdin: Input::Empty,
    };
    let subject = Subject { command, delivery: Delivery::Operations, pools: vec![pool], limits: Limits::default() };
    Executor::new(subject).unwrap()
}

#[test]
fn sharing_a_beginning_changes_nothing() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let space = tempfile::tempdir().unwrap();
    for name in ["c/ring", "c/table"] {
        let (mut shared, inputs) = executor(name, space.path());
        let (mut plain, _) = executor(name, space.path());
        let mut random = Random::new(11);
        let mut start = Image::none(1);
        let mut input = inputs.first(&mut random);
        for round in 0..6 {
            let parts = inputs.parts(&input);
            let kept = parts[random.index(parts.len())].start;
            for _ in 0..4 {
                let mutant = inputs.mutate_after(&input, kept, &input, &mut random);
                assert!(mutant.starts_with(&input[..kept]));
                let forked = shared.run_after(&mutant, kept, &start, Until::End).unwrap();
                let whole = plain.run(&mutant, &start).unwrap();
                assert_eq!(forked.report.end, whole.report.end, "{name}, round {round}");
                assert_eq!(forked.trail, whole.trail, "{name}, round {round}, {kept} of {} bytes", mutant.len());
                // And the forks have left nothing behind for a run from the beginning.
                if random.once_in(3) {
                    let again = shared.run(&mutant, &start).unwrap();
                    assert_eq!(again.trail, whole.trail, "{name}, round {round}");
                    assert_eq!(shared.left().unwrap().id(), plain.left().unwrap().id(), "{name}, round {round}");
                }
                input = mutant;
            }
            start = plain.left().unwrap();
        }
        assert!(shared.shared > 0, "{name}: nothing was ever forked behind its beginning");
    }
}

/// Pools that cannot be opened, such as some crash images, are no reason to fork no run behind its beginning any more.
#[test]
fn runs_that_end_before_they_stop_concern_only_their_beginning() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let space = tempfile::tempdir().unwrap();
    let program = pmdk::build_mapcli(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz")).unwrap();
    let pool = space.path().join("pool");
    let words = [&program, Path::new("btree"), &pool, Path::new("1")].map(|word| word.as_os_str().to_owned());
    let mut shared = executor_of(&words, pool, space.path());
    for number in 1..=30 {
        let bad = Image::new(vec![Some(Content::of_bytes(&[number; 8192]))]);
        for _ in 0..2 {
            shared.run_after(b"i 1\n", 0, &bad, Until::End).unwrap();
        }
    }
    assert_eq!(shared.shared, 0, "what is no pool can be opened");
    for _ in 0..40 {
        shared.run_after(b"i 1\n", 0, &Image::none(1), Until::End).unwrap();
    }
    assert!(shared.shared > 0);
}

/// Counters go from 255 to 1.
fn is_part_of(cut: &[u8], whole: &[u8]) -> bool {
    cut.iter().zip(whole).all(|(cut, whole)| cut <= whole || *whole != 0)
}

#[test]
fn a_run_that_ends_with_its_input_has_done_all_of_that() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let space = tempfile::tempdir().unwrap();
    for name in ["c/table", "pmdk/rehash"] {
        let (mut executor, inputs) = executor(name, space.path());
        let mut random = Random::new(5);
        let start = Image::none(1);
        let mut input = inputs.first(&mut random);
        for round in 0..6 {
            let cut = executor.run_after(&input, 0, &start, Until::InputRead).unwrap();
            let cut_maps = executor.maps().to_vec();
            let whole = executor.run_after(&input, 0, &start, Until::End).unwrap();
            let maps = executor.maps().to_vec();
            assert_eq!(cut.report.end, whole.report.end, "{name}, round {round}");
            assert_eq!(cut.report.stdout, whole.report.stdout, "{name}, round {round}: all operations are answered");
            assert!(is_part_of(&cut_maps, &maps), "{name}, round {round}: it has done what the whole run did not");
            assert_ne!(cut_maps, maps, "{name}, round {round}: nothing was left out");
            // One that is cut leaves nothing behind for those that are not.
            let again = executor.run(&input, &start).unwrap();
            assert_eq!(again.trail, whole.trail, "{name}, round {round}");
            input = inputs.mutate(&input, &input, &mut random);
        }
    }
}
