//! The models against two slow, independent formulations of the same architecture, on random traces.
//!
//! - [`machine`] is operational: caches, write-combining buffers and flushes under way, explored exhaustively; what is in
//!   PM in any reachable state is compared, byte for byte, with the images that the crash states make.
//! - [`axioms`] is declarative: for each store, is there an event that settles it? Quadratic, but good
//!   for traces that are far too long to explore.

mod axioms;
mod machine;
mod program;
mod replay;

use std::collections::HashSet;

use persistency::domain::Detail;
use persistency::effect::{Effect, FlushVerdict};
use persistency::model::{Fences, ModelKind};
use persistency::states::Base;
use program::{Program, Rng, Shape};
use replay::Replay;

const SETTINGS: [(ModelKind, Fences); 4] = [
    (ModelKind::X86Adr, Fences::All),
    (ModelKind::X86Adr, Fences::Strict),
    (ModelKind::X86Eadr, Fences::All),
    (ModelKind::X86Eadr, Fences::Strict),
];

/// Traces per test; a debug build is some twenty times slower.
fn traces(release: u64) -> u64 {
    if cfg!(debug_assertions) { release / 50 } else { release }
}

/// The seed of trace `n`, spread so that the tests do not share traces.
fn seed(test: u64, n: u64) -> u64 {
    (test << 32) | n
}

fn compare_with_machine(test: u64, count: u64, shape: Shape) {
    let mut crash_points = 0u64;
    let mut states = 0u64;
    for n in 0..count {
        let (kind, fences) = SETTINGS[n as usize % SETTINGS.len()];
        let program = Program::random(&mut Rng(seed(test, n)), shape);
        let mut machine = machine::Machine::new(kind, fences);
        let mut replay = Replay::new(kind, fences);
        for (at, op) in program.ops.iter().enumerate() {
            machine.step(op);
            replay.step(at as u64, op);
            let expected: HashSet<_> = machine.crash_images();
            let images = replay.crash_images();
            let distinct: HashSet<_> = images.iter().copied().collect();
            let fail = || format!("trace {n} ({kind}, {fences:?}) after op {at}:\n{program:#?}");
            assert_eq!(distinct, expected, "the images differ: {}", fail());
            assert_eq!(replay.state_count(), images.len().into(), "the count is wrong: {}", fail());
            // Every store writes a value of its own, so different states are different images.
            assert_eq!(distinct.len(), images.len(), "two states are one image: {}", fail());
            let whole = replay.whole_images(Base::Guaranteed);
            assert_eq!(replay.whole_count(), whole.len().into(), "the count of whole states is wrong: {}", fail());
            assert_eq!(replay.whole_images(Base::Everything), whole, "the order of states matters: {}", fail());
            assert!(whole.is_subset(&distinct), "a whole state is none: {}", fail());
            crash_points += 1;
            states += images.len() as u64;
        }
    }
    println!("{count} traces, {crash_points} crash points, {states} crash states");
    assert!(states > crash_points * 3 / 2, "the traces are too tame to show anything");
}

#[test]
fn all_reachable_states_and_no_other() {
    compare_with_machine(1, traces(60_000), Shape { ops: 12, threads: 3 });
}

#[test]
fn all_reachable_states_of_short_traces_and_no_other() {
    compare_with_machine(2, traces(40_000), Shape { ops: 6, threads: 2 });
}

#[test]
fn long_traces_settle_what_the_axioms_say() {
    for n in 0..traces(2_000) {
        let (kind, fences) = SETTINGS[n as usize % SETTINGS.len()];
        let program = Program::random(&mut Rng(seed(3, n)), Shape { ops: 150, threads: 5 });
        let expected = axioms::pending(&program.ops, kind, fences);
        for detail in [Detail::Bytes, Detail::Stores, Detail::LastWriters] {
            let mut replay = Replay::with_detail(kind, fences, detail);
            for (at, op) in program.ops.iter().enumerate() {
                replay.step(at as u64, op);
                let found = replay.pending();
                assert_eq!(
                    found, expected[at],
                    "trace {n} ({kind}, {fences:?}, {detail:?}) after op {at}:\n{program:#?}"
                );
            }
        }
    }
}

/// The model must not wrong a program: a flush or fence that it calls wasted can be left out, and no crash point
/// from there on has another state.
#[test]
fn what_is_called_waste_changes_nothing() {
    let count = traces(10_000);
    let (mut flushes, mut fences_seen) = (0, 0);
    for n in 0..count {
        let (kind, fences) = SETTINGS[n as usize % SETTINGS.len()];
        let program = Program::random(&mut Rng(seed(4, n)), Shape { ops: 40, threads: 3 });
        let mut replay = Replay::new(kind, fences);
        let steps: Vec<_> = (0..).zip(&program.ops).map(|(at, op)| (replay.step(at, op), replay.pending())).collect();
        for at in 0..steps.len() {
            match steps[at].0 {
                Effect::Flush(flush) if flush.verdict != FlushVerdict::Useful => flushes += 1,
                Effect::Fence(fence) if fence.stores == 0 => fences_seen += 1,
                _ => continue,
            }
            let mut without = Replay::new(kind, fences);
            for (other, op) in program.ops.iter().enumerate().filter(|(other, _)| *other != at) {
                without.step(other as u64, op);
                let found = without.pending();
                assert_eq!(found, steps[other].1, "trace {n} ({kind}, {fences:?}) without {at}:\n{program:#?}");
            }
        }
    }
    assert!(flushes > count && fences_seen > count, "{flushes} flushes and {fences_seen} fences were wasted: too few");
}
