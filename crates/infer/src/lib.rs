//! Infers dependence between accesses to PM, and from it the conditions that a correct program is likely to keep (Witcher §4.2).
//!
//! ```text
//!   flow of a run ─► Inference   threads, processes, blocks          (inference)
//!                       │ compile     instructions to micro-operations, once per block  (compile, operands, op)
//!                       ▼ Machine     labels through registers and memory  (machine, registers, shadow, labels)
//!                       │   Control   which branches decide what runs      (control, postdominators, code)
//!                       ▼ Hints       pairs of places, rules PO1, PO2, PO3, PA1  (hints, mapped)
//!                    Conditions       indexed by place, saved beside a trace     (conditions, file)
//!                       ▲ Names       of other runs, recoveries for example       (names, stored)
//! ```
//!
//! Source: X. Fu et al., "Witcher", SOSP 2021, Table 2 and §4.2. The paper builds a program dependence graph from LLVM and reduces it to
//! the nodes that access PM. Here every value carries what the reduced graph would have edges to: the loads from PM
//! that reach it through data only, and those that reach it with a control edge on the way.
//!
//! Deviations, what they can add and what they can miss:
//! - **A binary, not LLVM.** All outputs of an instruction depend on all its inputs, with exceptions for moves, exchanges,
//!   the stack and constant idioms; parts of registers are coarse ([`registers`]). Adds conditions.
//! - **Operands that are not logged** carry nothing ([`machine`]). Misses conditions.
//! - **Control dependence** is that of the executed instructions, from static and observed control flow ([`postdominators`], [`control`]).
//!   Function calls through pointers that came from PM are no branches. Both as in the paper, but for code that is not readable.
//! - **Sets of labels have a cap** ([`labels`]), orders and places too ([`hints`]). Misses conditions; both are counted.
//! - **Orders that no state of this run can break**, because one of the places is never stored to, are left out. Misses nothing.
//! - **Places** are the bytes of an access, as in the paper; that an access of eight bytes and one of four of them are about the
//!   same variable is found out by overlap where conditions are used.
//! - **Threads** share memory: what one stores and another loads carries on, in the order in which the flow is told.

pub mod code;
mod compile;
pub mod conditions;
pub mod control;
pub mod file;
pub mod hints;
pub mod inference;
pub mod labels;
pub mod machine;
pub mod mapped;
pub mod names;
pub mod op;
mod operands;
pub mod postdominators;
pub mod registers;
pub mod shadow;
pub mod stored;

pub use conditions::{ConditionRule, Conditions, Guardian, Order, Span, SpanNo};
pub use file::{ConditionsError, beside};
pub use inference::Inference;
