//! In which operations a cause shows: by their kind, and by the functions that others of that kind do not go through. So that a
//! finding says "insert that goes through `grow`".
//!
//! Witcher (§5.3) clusters by the path of basic blocks of the operation. The call paths of its PM stores are what every
//! recording has; they tell a resize from a plain insert, but not two branches of one function.

use std::collections::{BTreeMap, BTreeSet};

use finding::blame::{self, Libraries};
use finding::finding::Role;
use finding::note::{Note, OperationGroup};
use finding::site::Site;
use operation::equivalence::Equivalence;
use rustc_hash::FxHashMap;
use trace::event::EventId;
use trace::symbol::Symbolizer;
use trace::{ReadError, TraceReader};
use verdict::position::CrashPosition;

/// Events of an operation that are looked at.
const MOST_EVENTS: u64 = 4000;
/// Operations of a kind that are compared.
const ALIKE: usize = 24;
/// Functions that are named.
const NAMED: usize = 4;
/// Clusters that are named.
const CLUSTERS: usize = 4;

/// Looks at the operations of one trace.
pub struct Clusters<'a> {
    reader: &'a TraceReader,
    equivalence: &'a Equivalence,
    libraries: &'a Libraries,
    symbols: Symbolizer<'a>,
    functions: FxHashMap<usize, Vec<String>>,
    usual: FxHashMap<String, BTreeSet<String>>,
}

impl std::fmt::Debug for Clusters<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clusters").field("known", &self.functions.len()).finish_non_exhaustive()
    }
}

impl<'a> Clusters<'a> {
    pub fn new(reader: &'a TraceReader, equivalence: &'a Equivalence, libraries: &'a Libraries) -> Clusters<'a> {
        let (functions, usual) = Default::default();
        Clusters { reader, equivalence, libraries, symbols: Symbolizer::new(reader.tables()), functions, usual }
    }

    /// The operations in which crashes at these points fail; none if there were none.
    pub fn seen_in(&mut self, points: &[EventId]) -> Result<Option<Note>, ReadError> {
        let mut clusters: BTreeMap<(String, Vec<String>), BTreeSet<usize>> = BTreeMap::new();
        for &at in points {
            let (CrashPosition::During(number) | CrashPosition::After(number)) = self.equivalence.position(at) else {
                continue;
            };
            let kind = self.equivalence.workload.kind(number);
            let usual = self.usual(&kind)?;
            let own = self.functions(number)?;
            let through: Vec<String> = own.iter().filter(|name| !usual.contains(*name)).take(NAMED).cloned().collect();
            clusters.entry((kind, through)).or_default().insert(number);
        }
        let mut clusters: Vec<_> = clusters.into_iter().collect();
        clusters.sort_by_key(|(_, numbers)| std::cmp::Reverse(numbers.len()));
        let left_out = clusters.len().saturating_sub(CLUSTERS) as u64;
        let workload = &self.equivalence.workload;
        let group = |((word, through), numbers): ((String, Vec<String>), BTreeSet<usize>)| OperationGroup {
            word,
            through,
            times: numbers.len() as u64,
            first: numbers.first().map_or_else(String::new, |&number| workload.shown(number)),
        };
        let groups: Vec<OperationGroup> = clusters.into_iter().take(CLUSTERS).map(group).collect();
        Ok((!groups.is_empty()).then_some(Note::SeenIn { groups, left_out }))
    }

    /// The operation that made a store, if that was over when power failed; none otherwise.
    pub fn made_before(&self, store: EventId, crash: EventId) -> Option<Note> {
        let CrashPosition::During(number) = self.equivalence.position(store) else { return None };
        let under_way = self.equivalence.position(crash);
        (under_way != CrashPosition::During(number))
            .then(|| Note::LostStoreOf { operation: self.equivalence.name(number) })
    }

    /// The functions that every operation of a kind goes through.
    fn usual(&mut self, kind: &str) -> Result<BTreeSet<String>, ReadError> {
        if let Some(known) = self.usual.get(kind) {
            return Ok(known.clone());
        }
        let count = self.equivalence.boundaries.count().min(self.equivalence.workload.count());
        let alike: Vec<usize> = (0..count).filter(|&number| self.equivalence.workload.kind(number) == kind).collect();
        let mut usual: Option<BTreeSet<String>> = None;
        for &number in alike.iter().step_by(alike.len().div_ceil(ALIKE).max(1)) {
            let own: BTreeSet<String> = self.functions(number)?.into_iter().collect();
            // One that stores nothing has no path.
            if !own.is_empty() {
                usual = Some(usual.map_or(own.clone(), |usual| usual.intersection(&own).cloned().collect()));
            }
        }
        let usual = usual.unwrap_or_default();
        self.usual.insert(kind.to_owned(), usual.clone());
        Ok(usual)
    }

    /// The program's own functions on the call paths of an operation's events, outermost first.
    fn functions(&mut self, number: usize) -> Result<Vec<String>, ReadError> {
        if let Some(known) = self.functions.get(&number) {
            return Ok(known.clone());
        }
        let boundaries = &self.equivalence.boundaries;
        let (Some(begin), Some(end)) = (boundaries.begin(number), boundaries.end(number)) else {
            return Ok(Vec::new());
        };
        let end = EventId(end.0.min(begin.0.saturating_add(MOST_EVENTS)));
        let mut sites = BTreeSet::new();
        let mut events = self.reader.events_near(EventId(begin.0 + 1)..end);
        while let Some((_, event)) = events.next_with_id()? {
            sites.insert((event.context, event.pc));
        }
        let mut names: Vec<String> = Vec::new();
        for (context, pc) in sites {
            let path = blame::frames(Site { pc, context }, Role::Event, self.reader.tables(), &mut self.symbols);
            let own = path.into_iter().rev().filter(|frame| !self.libraries.own(frame));
            for name in own.filter_map(|frame| frame.function) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        self.functions.insert(number, names.clone());
        Ok(names)
    }
}
