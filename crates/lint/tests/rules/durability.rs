//! FP0101, FP0102, FP0103 and FP0301: what never became durable.

use finding::finding::Title;
use finding::note::Note;
use finding::severity::Severity;
use persistency::model::{Fences, ModelKind};
use trace::event::*;

use crate::program::{BASE, LIBRARY, POOL, Program, place};

#[test]
fn fp0101_a_store_after_the_last_flush_of_its_line() {
    Program::new().store(1, 0).persist(2, 0).store(4, 8).finds(&[("FP0101", 4)]);
    Program::new().store(1, 0).persist(2, 0).store(4, 8).persist(5, 0).is_clean();
}

#[test]
fn fp0101_a_fence_without_a_flush_does_not_help() {
    let mut program = Program::new();
    program.store(1, 0).persist(2, 0).store(4, 8).store(5, 64).persist(6, 64).finds(&[("FP0101", 4)]);
}

#[test]
fn fp0101_only_the_newest_store_to_the_bytes_counts() {
    Program::new().store(1, 0).persist(2, 0).store(4, 8).store(5, 8).finds(&[("FP0101", 5)]);
}

#[test]
fn fp0101_what_the_file_system_makes_durable_is_durable() {
    let sync = EventKind::Fsync { pool: PoolId(0), data_only: false };
    Program::new().store(1, 0).persist(2, 0).store(4, 8).kind(5, sync.clone()).is_clean();
    // `fsync` after `munmap` counts as well.
    let unmap = EventKind::Unmap { place: place(0), len: 1 << 20, address: BASE };
    Program::new().store(1, 0).persist(2, 0).store(4, 8).kind(5, unmap.clone()).kind(6, sync).is_clean();
    Program::new().store(1, 0).persist(2, 0).store(4, 8).kind(5, unmap).finds(&[("FP0101", 4)]);
}

#[test]
fn fp0101_a_store_that_was_cut_off_is_not_lost() {
    let cut = EventKind::Resize { pool: PoolId(0), len: 0 };
    Program::new().store(1, 0).persist(2, 0).store(4, 8).kind(5, cut).is_clean();
}

#[test]
fn fp0102_a_flush_without_a_fence() {
    Program::new().store(1, 0).clwb(2, 0).finds(&[("FP0102", 2)]);
    Program::new().store(1, 0).clwb(2, 0).sfence(3).is_clean();
    // `clflush` waits by itself.
    Program::new().store(1, 0).clflush(2, 0).is_clean();
}

#[test]
fn fp0102_a_fence_of_another_thread_does_not_count() {
    let mut program = Program::new();
    program.store(1, 0).clwb(2, 0).thread(1).store(3, 64).clwb(4, 64).sfence(5);
    program.finds(&[("FP0102", 2)]);
}

#[test]
fn fp0102_a_thread_ends_before_it_fences() {
    let mut program = Program::new();
    program.thread(1).store(1, 0).clwb(2, 0).kind(3, EventKind::ThreadEnd);
    program.finds(&[("FP0102", 2)]);
    // Another thread flushes the line again and fences.
    program.thread(0).persist(4, 0).is_clean();
}

#[test]
fn fp0102_locked_instructions_are_fences_unless_strict() {
    Program::new().store(1, 0).clwb(2, 0).kind(3, EventKind::Fence { kind: FenceKind::Locked }).is_clean();
    let mut program = Program::new();
    program.fences = Fences::Strict;
    program.store(1, 0).clwb(2, 0).kind(3, EventKind::Fence { kind: FenceKind::Locked }).finds(&[("FP0102", 2)]);
}

#[test]
fn fp0103_a_non_temporal_store_without_a_fence() {
    Program::new().stream(1, 0).finds(&[("FP0103", 1)]);
    Program::new().stream(1, 0).sfence(2).is_clean();
    // The cached store before it on the line lacks the same fence: one cause, one finding.
    Program::new().store(1, 0).stream(2, 8).finds(&[("FP0103", 2)]);
}

#[test]
fn fp0301_data_whose_line_is_never_flushed() {
    Program::new().store(1, 0).persist(2, 0).store(4, 64).finds(&[("FP0301", 4)]);
    Program::new().store(1, 0).persist(2, 0).store(4, 64).persist(5, 64).is_clean();
}

/// Files of locks are recognised by their names. That the data is not needed, the trace cannot tell.
#[test]
fn fp0301_names_the_file_and_does_not_say_what_the_data_is_for() {
    let found = Program::new().store(1, 0).findings();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].rule.as_str(), found[0].severity), ("FP0301", Severity::Warning));
    assert_eq!(found[0].notes, [Note::InFile { name: POOL.to_owned() }]);
    let Title::Rule(words) = &found[0].title else { panic!("{found:?}") };
    let claims = ["transient", "volatile", "DRAM", "need"];
    assert!(words.contains("never flushed") && !claims.iter().any(|claim| words.contains(claim)), "{words}");
}

#[test]
fn eadr_leaves_non_temporal_stores_only() {
    let mut program = Program::new();
    program.model = ModelKind::X86Eadr;
    program.store(1, 0).persist(2, 0).store(4, 8).store(5, 128).stream(6, 256).clwb(7, 512).clwb(8, 512);
    program.finds(&[("FP0103", 6)]);
}

#[test]
fn a_trace_is_read_again_only_for_losses_that_would_be_reported() {
    // A loss of the program, of each kind.
    assert!(Program::new().store(1, 0).reports_losses());
    assert!(Program::new().store(1, 0).persist(2, 0).store(1, 8).reports_losses());
    assert!(Program::new().store(1, 0).clwb(2, 0).reports_losses());
    assert!(Program::new().stream(1, 0).reports_losses());
    // Nothing is lost.
    assert!(!Program::new().store(1, 0).persist(2, 0).reports_losses());
    // What libpmemobj keeps for itself is dismissed by its name.
    assert!(!Program::new().store(LIBRARY, 0).reports_losses());
    assert!(Program::new().store(LIBRARY, 0).store(1, 64).reports_losses());
}

#[test]
fn a_store_that_others_overwrote_may_be_what_is_lost() {
    // If the library's stores changed nothing, it is the program's store that a power failure loses, however many there were.
    for times in [1, 1000] {
        let mut program = Program::new();
        program.store(1, 0);
        for _ in 0..times {
            program.store(LIBRARY, 0);
        }
        assert!(program.reports_losses(), "{times}");
        assert!(!program.persist(2, 0).store(LIBRARY, 0).reports_losses(), "{times}");
    }
}
