//! What the explorer proposes, on paths made by hand.

use std::time::Duration;

use solve::explore::{Explorer, Strategy};
use solve::expr::Arena;
use solve::follow::Followed;
use solve::path::{Path, PathStep, PathStepKind};
use solve::solver::{Embedded, Stages};

const PC: u64 = 0x1000;

/// A run with this input, whose one branch asks whether byte `at` is `value`.
fn followed(input: &[u8], at: u32, value: u8) -> Followed {
    let mut arena = Arena::of(input);
    let (byte, number) = (arena.input(at), arena.constant(8, value.into()));
    let is = arena.eq(byte, number);
    let mut path = Path::default();
    let kind = PathStepKind::Branch { taken: false, target: PC + 0x100, next: PC + 2 };
    path.push(PathStep { condition: arena.not(is), pc: PC, kind, frames: 0 });
    Followed {
        arena,
        path,
        blocks: vec![(PC, 2)],
        mapped: Vec::new(),
        ways: Vec::new(),
        more_threads: 0,
        code_changed: 0,
    }
}

fn explorer(strategy: Strategy) -> Explorer {
    let stages = Stages::new(vec![Box::new(Embedded::default())], Duration::from_secs(5));
    Explorer::new(strategy, stages, 1, Vec::new())
}

#[test]
fn the_same_branch_under_another_condition_is_tried_too() {
    for strategy in [Strategy::PmAware, Strategy::Breadth, Strategy::Random] {
        let mut explorer = explorer(strategy);
        explorer.ran(b"xx".to_vec(), followed(b"xx", 0, b'a'), &[], None, 0);
        let first = explorer.next(|| true).expect("one side is left");
        assert_eq!(first.input, b"ax");
        // A vector compare met another byte first: the same branch, the same side, another condition.
        explorer.ran(b"ax".to_vec(), followed(b"ax", 1, b'b'), &[], Some(&first), 0);
        let second = explorer.next(|| true).expect("its condition is another");
        assert_eq!(second.input, b"ab");
        assert_eq!(explorer.missed, 1, "the first did not take its side");
        // The same path again brings nothing.
        explorer.ran(b"ab".to_vec(), followed(b"ab", 1, b'b'), &[], Some(&second), 0);
        assert!(explorer.next(|| true).is_none());
    }
}

#[test]
fn a_jump_through_a_table_is_turned_to_each_of_its_targets() {
    let mut explorer = explorer(Strategy::PmAware);
    let mut arena = Arena::of(b"\0");
    let byte = arena.input(0);
    let mut value = arena.constant(64, 0x2000);
    for (index, target) in [(5, 0x3000), (6, 0x4000)] {
        let index = arena.constant(8, index);
        let is = arena.eq(byte, index);
        let target = arena.constant(64, target);
        value = arena.ite(is, target, value);
    }
    let taken = arena.constant(64, 0x2000);
    let condition = arena.eq(value, taken);
    let mut path = Path::default();
    path.push(PathStep { condition, pc: PC, kind: PathStepKind::Jump { target: 0x2000, value }, frames: 0 });
    let rest = followed(b"\0", 0, 1);
    explorer.ran(vec![0], Followed { arena, path, ..rest }, &[], None, 0);
    let mut sides: Vec<(u64, Vec<u8>)> =
        std::iter::from_fn(|| explorer.next(|| true)).map(|proposal| (proposal.side, proposal.input)).collect();
    sides.sort();
    assert_eq!(sides, [(0x3000, vec![5]), (0x4000, vec![6])]);
    assert_eq!(explorer.open_jumps, 0);
}
