//! Conditions of one run, in the words of another: traces number pools and modules in the order in which they meet them.
//!
//! Recoveries read what the run only writes, a log for example. What they show about places that the run stores to is as good as what
//! the run itself shows.

use rustc_hash::FxHashMap;
use trace::event::{CodeAddr, ModuleId, PoolId};

use crate::conditions::{Conditions, Guardian, Order, Span};
use crate::stored::Stored;

/// How another run calls pools and modules.
#[derive(Clone, Debug)]
pub struct Names<'s> {
    /// Those that it has, by their number in this run.
    pub pools: FxHashMap<PoolId, PoolId>,
    /// By their number in this run. The other ones become module 0, which is no code.
    pub modules: FxHashMap<ModuleId, ModuleId>,
    /// Where the other run stored to, in its own words.
    pub stored: &'s Stored,
}

impl Names<'_> {
    pub(crate) fn is_stored(&self, span: Span) -> bool {
        self.span(span).is_some_and(|span| self.stored.any(span))
    }

    fn span(&self, span: Span) -> Option<Span> {
        Some(Span { pool: *self.pools.get(&span.pool)?, ..span })
    }

    fn code(&self, at: CodeAddr) -> CodeAddr {
        CodeAddr { module: self.modules.get(&at.module).copied().unwrap_or_default(), ..at }
    }

    fn evidence(&self, (first, second): (CodeAddr, CodeAddr)) -> (CodeAddr, CodeAddr) {
        (self.code(first), self.code(second))
    }
}

impl Conditions {
    /// In these words. What is about pools without a name is left out.
    pub(crate) fn renamed(&self, names: &Names<'_>) -> Conditions {
        let orders = self.orders().filter_map(|order| {
            let (first, second) = (names.span(order.first)?, names.span(order.second)?);
            Some(Order { first, second, evidence: names.evidence(order.evidence), ..order })
        });
        let guardians = self.guardians().filter_map(|guardian| {
            Some(Guardian { span: names.span(guardian.span)?, evidence: names.evidence(guardian.evidence) })
        });
        Conditions::new(orders.collect(), guardians.collect(), self.counts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hints::Hints;
    use crate::labels::{LabelSets, SetId};

    #[test]
    fn what_a_recovery_reads_is_told_in_the_words_of_the_run() {
        let (mark, log, never) = (0, 64, 128);
        let span = |pool, offset| Span { pool: PoolId(pool), offset, len: 8 };
        let at = |module, addr| CodeAddr { module: ModuleId(module), addr };
        let (mut sets, mut hints) = (LabelSets::default(), Hints::default());
        // Recovery reads the log if its mark says so, and stores nothing.
        let guarded = hints.loaded(&mut sets, span(0, mark), at(1, 10), SetId::EMPTY);
        hints.loaded(&mut sets, span(0, log), at(2, 20), guarded);
        hints.loaded(&mut sets, span(0, never), at(2, 30), guarded);
        assert!(hints.conditions(&sets).is_empty(), "no state of the recovery itself can break them");

        let mut stored = Stored::default();
        stored.mark(span(7, mark));
        stored.mark(span(7, log));
        let names = Names {
            pools: FxHashMap::from_iter([(PoolId(0), PoolId(7))]),
            modules: FxHashMap::from_iter([(ModuleId(1), ModuleId(4))]),
            stored: &stored,
        };
        let told = hints.conditions_about(&sets, |place| names.is_stored(place)).renamed(&names);
        let orders: Vec<Order> = told.orders().collect();
        assert_eq!(orders.len(), 1, "{orders:?}");
        assert_eq!((orders[0].first, orders[0].second), (span(7, log), span(7, mark)));
        assert_eq!(orders[0].evidence, (at(0, 20), at(4, 10)));
        assert_eq!(told.guardians().map(|guardian| guardian.span).collect::<Vec<_>>(), [span(7, mark)]);

        let own = Conditions::default().with([told.clone(), told]);
        assert_eq!((own.orders().len(), own.guardians().len()), (1, 1));
        let strange = Names { pools: FxHashMap::default(), ..names };
        assert!(hints.conditions_about(&sets, |place| strange.is_stored(place)).renamed(&strange).is_empty());
    }
}
