//! FP02xx and FP05xx: certain waste, and notes.

use finding::severity::Severity;
use trace::event::*;

use crate::program::Program;

#[test]
fn fp0201_nothing_was_stored_since_the_last_flush() {
    Program::new().store(1, 0).persist(2, 0).persist(4, 0).finds(&[("FP0201", 4)]);
    // Before the fence, too.
    Program::new().store(1, 0).clwb(2, 0).clwb(3, 0).sfence(4).finds(&[("FP0201", 3)]);
    Program::new().store(1, 0).persist(2, 0).store(4, 0).persist(5, 0).is_clean();
    // A line that was never stored to.
    Program::new().clwb(1, 0).sfence(2).finds(&[("FP0201", 1)]);
}

#[test]
fn fp0201_another_threads_flush_is_needed_for_its_own_fence() {
    let mut program = Program::new();
    program.store(1, 0).clwb(2, 0).thread(1).persist(3, 0).thread(0).sfence(5).is_clean();
}

#[test]
fn fp0202_a_flush_of_ordinary_memory() {
    let stack = EventKind::Flush { kind: FlushKind::Clwb, target: FlushTarget::Volatile(0x7fff_0000) };
    Program::new().kind(1, stack).sfence(2).finds(&[("FP0202", 1)]);
}

#[test]
fn fp0203_only_non_temporal_stores_are_pending() {
    Program::new().stream(1, 0).clwb(2, 0).sfence(3).finds(&[("FP0203", 2)]);
    Program::new().stream(1, 0).sfence(2).is_clean();
    Program::new().stream(1, 0).store(2, 8).clwb(3, 0).sfence(4).is_clean();
}

#[test]
fn fp0204_a_fence_with_nothing_to_wait_for() {
    Program::new().store(1, 0).persist(2, 0).sfence(4).finds(&[("FP0204", 4)]);
    Program::new().stream(1, 0).sfence(2).is_clean();
}

#[test]
fn fp0204_what_synchronises_is_no_waste() {
    let mut program = Program::new();
    program.store(1, 0).persist(2, 0);
    program.kind(5, EventKind::Fence { kind: FenceKind::Locked });
    program.rmw(6, 64).persist(7, 64).is_clean();
}

#[test]
fn fp0205_an_mfence_that_completes_nothing_is_noted() {
    let mfence = EventKind::Fence { kind: FenceKind::Mfence };
    let mut program = Program::new();
    program.store(1, 0).persist(2, 0).kind(4, mfence).finds(&[("FP0205", 4)]);
}

#[test]
fn fp0204_the_waste_of_a_useless_flush_is_reported_once() {
    Program::new().clwb(1, 0).sfence(2).finds(&[("FP0201", 1)]);
}

#[test]
fn fp0501_clflush_is_noted_if_asked_for() {
    Program::with("FP0501", Severity::Note).store(1, 0).clflush(2, 0).finds(&[("FP0501", 2)]);
    Program::with("FP0501", Severity::Note).store(1, 0).persist(2, 0).is_clean();
    Program::new().store(1, 0).clflush(2, 0).is_clean();
}

#[test]
fn fp0502_a_large_copy_through_the_cache() {
    let copy = |program: &mut Program, lines: u64| {
        for line in 0..lines {
            program.bytes(1, line * 64, &[7; 64]);
        }
        for line in 0..lines {
            program.clwb(2, line * 64);
        }
        program.sfence(3);
    };
    let mut large = Program::with("large-copy", Severity::Note);
    copy(&mut large, 64);
    large.finds(&[("FP0502", 2)]);
    let mut small = Program::with("large-copy", Severity::Note);
    copy(&mut small, 63);
    small.is_clean();
}
