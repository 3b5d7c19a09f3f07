//! The analysis against a slow one that is plainly right, on random programs.

mod naive;
mod program;

use infer::{ConditionRule, Inference, Span};
use record::flow::{BlockId, FlowSink};
use trace::event::{CodeAddr, ModuleId, Place, PoolId, PoolOffset, ProcessId, ThreadId};

use naive::{Naive, POOL_AT, POOL_BYTES};
use program::Program;

type Found = (ConditionRule, Span, Span);

fn code(pc: u64) -> CodeAddr {
    CodeAddr { module: ModuleId(0), addr: pc }
}

/// What the analysis finds, then what it should.
fn run(seed: u64) -> [(Vec<Found>, Vec<Span>); 2] {
    let program = Program::random(seed);
    let mut inference = Inference::with_most_labels(usize::MAX);
    let (process, thread) = (ProcessId(0), ThreadId(0));
    inference.process_started(process, thread, None, false);
    let place = Place { pool: PoolId(0), offset: PoolOffset(0) };
    inference.mapped(process, POOL_AT, POOL_BYTES, place);
    for (number, block) in program.blocks.iter().enumerate() {
        inference.define(BlockId(number as u32), process, block.pc, code(block.pc), &block.bytes);
    }
    let mut naive = Naive::new(&program);
    for (block, words) in program.walk(seed ^ 0x5eed) {
        inference.executed(thread, BlockId(block as u32), &words);
        naive.executed(block, &words);
    }
    inference.finished();
    let conditions = inference.conditions();
    let mut orders: Vec<Found> = conditions.orders().map(|order| (order.rule, order.first, order.second)).collect();
    orders.sort_unstable();
    let guardians = conditions.guardians().map(|guardian| guardian.span).collect();
    [(orders, guardians), naive.conditions()]
}

#[test]
fn random_programs_give_the_same_conditions() {
    let (mut orders, mut guardians) = ([0; 3], 0);
    for seed in 0..120 {
        let [(found, guards), (expected, expected_guards)] = run(seed);
        let missing: Vec<_> = expected.iter().filter(|order| !found.contains(order)).collect();
        let more: Vec<_> = found.iter().filter(|order| !expected.contains(order)).collect();
        assert!(missing.is_empty() && more.is_empty(), "seed {seed}: missing {missing:x?}, more {more:x?}");
        assert_eq!(guards, expected_guards, "seed {seed}");
        for (rule, ..) in found {
            orders[rule as usize] += 1;
        }
        guardians += guards.len();
    }
    // The programs are not so small that nothing could go wrong.
    assert!(orders.iter().all(|&count| count > 600) && guardians > 150, "{orders:?} {guardians}");
}

#[test]
fn the_same_run_gives_the_same_conditions() {
    assert_eq!(run(3)[0], run(3)[0]);
}
