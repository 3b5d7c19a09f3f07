//! FP0401: a range that is added to the undo log of a PMDK transaction although it, or a part of it, is there already, or
//! although it was allocated in the same transaction (Agamotto §4.2, its second custom oracle).

use finding::finding::{Class, Role};
use finding::severity::Severity;
use trace::Tables;

use crate::pmdk::transactions::{Happening, Transactions};
use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug)]
pub struct RedundantLogging;

static INFO: RuleInfo = RuleInfo::new(
    "FP0401",
    "redundant-logging",
    Class::Performance,
    Severity::Performance,
    "this range is added to the transaction although it was added or allocated in it before",
);

impl Rule for RedundantLogging {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, tables: &Tables) -> Wants {
        if Transactions::recorded(tables) { Wants::CALLS } else { Wants::NOTHING }
    }

    fn watches(&self) -> Vec<String> {
        Transactions::watches()
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        if let Happening::Logged { earlier: Some(earlier) } = *moment.happening {
            let caller = |site| (Role::Call, site);
            out.report_with(moment.site, Role::Call, caller(earlier));
        }
        Ok(())
    }
}
