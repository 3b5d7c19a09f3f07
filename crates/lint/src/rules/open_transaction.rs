//! FP0404: a PMDK transaction that is still open when its thread, or its program, ends well. What was done in it is rolled back when the pool
//! is opened again, though the program took it for done.
//!
//! A program that ends with a failure in the middle of a transaction relies on just that, so only exit code 0 counts; of other threads
//! nobody knows whether they would have gone on.

use finding::finding::{Class, Role};
use finding::severity::Severity;
use trace::Tables;
use trace::event::{EventKind, ExitStatus};

use crate::pmdk::transactions::Transactions;
use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug)]
pub struct OpenTransaction;

static INFO: RuleInfo = RuleInfo::new(
    "FP0404",
    "open-transaction",
    Class::Durability,
    Severity::Error,
    "this transaction is still open when the program ends: what was done in it is rolled back",
);

impl Rule for OpenTransaction {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, tables: &Tables) -> Wants {
        if Transactions::recorded(tables) { Wants::CALLS.and(Wants::OTHERS) } else { Wants::NOTHING }
    }

    fn watches(&self) -> Vec<String> {
        Transactions::watches()
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        let ends = match moment.event.kind {
            EventKind::ThreadEnd => true,
            EventKind::ProcessExit { status } => status == ExitStatus::Code(0),
            _ => false,
        };
        if ends && let Some(began) = moment.transactions.open(moment.event.thread) {
            out.report(began, Role::Call);
        }
        Ok(())
    }
}
