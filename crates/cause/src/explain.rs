//! Root causes as findings: named, and grouped by the code to blame.

use std::collections::BTreeMap;
use std::path::Path;

use finding::blame::{self, Libraries};
use finding::failure::{BrokenPromise, CrashFailure, NamedStore, PoolBytes, Remedy, Repair};
use finding::finding::{CallPath, Class, Finding, FindingId, Location, Role, Thread, Title};
use finding::note::Note;
use finding::pmdk;
use finding::severity::Severity;
use trace::Tables;
use trace::symbol::Symbolizer;
use verdict::crash_point::CrashPoint;
use verdict::end::Frame;
use verdict::symptom::Symptom;

use crate::analyse::RootCause;
use crate::classify::Completes;
use crate::lvalue;
use crate::orders;
use crate::repair;
use crate::store_history::StoreInfo;

/// Other sides that are named.
const NAMED: usize = 4;

/// A finding, and the root causes that it stands for (by number), the best example first.
#[derive(Clone, Debug)]
pub struct Explained {
    pub finding: Finding,
    pub causes: Vec<usize>,
}

/// The rule that findings of a class belong to; `fencepost explain` has a page on each.
pub fn rule(class: Class) -> &'static str {
    match class {
        Class::Durability => "FP0601",
        Class::Ordering => "FP0602",
        Class::Atomicity => "FP0603",
        _ => "FP0604",
    }
}

/// Names the causes and joins those with the same guilty code. `crash_paths` has, by cause, where recovery was when it
/// broke down.
pub fn explain(
    causes: &[RootCause],
    crash_paths: &[Vec<Frame>],
    tables: &Tables,
    libraries: &Libraries,
) -> Vec<Explained> {
    let mut symbols = Symbolizer::new(tables);
    let mut all: Vec<Explained> = Vec::new();
    // Which finding a key belongs to.
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    let mut named: Vec<(usize, RootCause, Named)> = Vec::new();
    for (number, cause) in causes.iter().enumerate() {
        let crash_path = crash_paths.get(number).map_or(&[][..], Vec::as_slice);
        let mut cause = cause.clone();
        let named_cause = Named::of(&cause, crash_path, tables, &mut symbols, libraries);
        let is_one_line = || {
            let sides = named_cause.missing.first().zip(named_cause.present.first());
            sides.is_some_and(|(missing, present)| same_line(&missing.location, &present.location))
        };
        if named_cause.is_within_call && cause.class == Class::Ordering || cause.program_order_is_wrong && is_one_line()
        {
            // Inside one call of a library: its caller cannot put that in order.
            cause.class = Class::Atomicity;
            cause.program_order_is_wrong = false;
        }
        named.push((number, cause, named_cause));
    }
    // A store that is never made durable comes too late as well: one finding, about the worse. Updates of which it is known what completes them
    // come before those of which it is not.
    named
        .sort_by_key(|(_, cause, named)| (cause.class != Class::Durability, is_unknown(cause) || named.is_within_call));
    for (number, cause, named) in named {
        let keys = named.keys(&cause);
        let known = keys.iter().find_map(|key| groups.get(key).copied());
        let lost = if known.is_none() { named.lost(&cause, &all) } else { None };
        let group = known.or(lost).unwrap_or(all.len());
        // That one of its stores is lost does not make the same update whole where nothing is lost.
        keys.into_iter().chain(named.open_keys(&cause)).filter(|_| lost.is_none()).for_each(|key| {
            groups.entry(key).or_insert(group);
        });
        match all.get_mut(group) {
            Some(Explained { finding, causes }) => {
                finding.count += cause.explains;
                causes.push(number);
                named.missing.into_iter().for_each(|store| add_missing(finding, store));
                named.paths.into_iter().for_each(|path| add_path(finding, path));
            }
            None => all.push(Explained { finding: named.finding(&cause), causes: vec![number] }),
        }
    }
    orders::join(&mut all, causes);
    all.sort_by_key(|explained| (explained.finding.rule.clone(), explained.finding.first));
    tell_apart(&mut all);
    all
}

/// Of what an update lacks, only what came next is known.
pub(crate) fn is_unknown(cause: &RootCause) -> bool {
    cause.in_program_order && cause.completes == Completes::Unknown
}

/// Two updates may begin with one store and end with different ones: the second gets an id of both.
fn tell_apart(all: &mut [Explained]) {
    let mut known: Vec<FindingId> = Vec::new();
    for Explained { finding, .. } in all {
        let other = finding.locations.iter().find(|location| matches!(location.role, Role::Next | Role::Missing));
        if let (true, Some(other)) = (known.contains(&finding.id), other) {
            finding.id = FindingId::of_pair(&finding.rule, finding.guilty(), other);
        }
        known.push(finding.id.clone());
    }
}

/// Another store that one and the same fence would have ordered.
fn add_missing(finding: &mut Finding, store: NamedStore) {
    let location = &store.location;
    let missing = finding.locations.iter().filter(|known| known.role == Role::Missing).count();
    let is_new = location.role == Role::Missing && !finding.locations.iter().any(|known| same_line(known, location));
    if is_new && (1..NAMED).contains(&missing) {
        finding.locations.insert(missing, location.clone());
        if let Some(failure) = &mut finding.failure {
            failure.missing.push(store);
        }
    }
}

pub(crate) fn add_path(finding: &mut Finding, path: CallPath) {
    match finding.paths.iter_mut().find(|known| known.frames == path.frames) {
        Some(known) => known.count += path.count,
        None => finding.paths.push(path),
    }
}

/// A cause with names.
struct Named {
    missing: Vec<NamedStore>,
    present: Vec<NamedStore>,
    recovery: Vec<Location>,
    paths: Vec<CallPath>,
    repair: Option<Repair>,
    /// A fence right before this is all that is missing: it was tried.
    fence_before: Option<NamedStore>,
    /// Where the missing stores are flushed, in the function that stores them; the fence is missing after that.
    flushed_at: Option<Location>,
    /// All of its stores are made by libpmemobj for itself, on behalf of one line of the program: the end of a transaction, for example.
    is_within_call: bool,
}

impl Named {
    fn of(
        cause: &RootCause,
        crash_path: &[Frame],
        tables: &Tables,
        symbols: &mut Symbolizer<'_>,
        libraries: &Libraries,
    ) -> Named {
        let mut paths = Vec::new();
        let mut is_library = true;
        let mut side = |stores: &[StoreInfo], role: Role, with_path: bool| {
            let mut named: Vec<NamedStore> = Vec::new();
            for store in stores {
                let frames = blame::frames(store.site, role, tables, symbols);
                let place = blame::guilty(&frames, libraries);
                is_library &= pmdk::on_own_account(&frames[..place]);
                let guilty = frames[place].clone();
                if named.iter().any(|known| same_line(&known.location, &guilty)) || named.len() >= NAMED {
                    continue;
                }
                let runs = blame::thread_function(&frames, libraries);
                named.push(named_store(store, guilty, runs, tables));
                if with_path && paths.is_empty() {
                    paths.push(CallPath { count: cause.explains, frames });
                }
            }
            named
        };
        let executed = !cause.in_program_order;
        let role = if executed { Role::Missing } else { Role::Next };
        let missing = side(&cause.missing, role, executed);
        let present = side(&cause.present, Role::Present, true);
        let line = present.first().map(|store| &store.location);
        let is_same = |store: &NamedStore| line.is_some_and(|line| same_line(line, &store.location));
        let is_within_call = is_library && !missing.is_empty() && missing.iter().chain(&present).all(is_same);
        let before = cause.repair.filter(|repair| repair.remedy == Remedy::Fence).and_then(|repair| repair.before);
        let fence_before = before.map(|store| {
            let location = blamed(store, Role::Present, tables, symbols, libraries);
            named_store(&store, location, None, tables)
        });
        let repair = cause.repair.map(|repair| with_names(repair, tables, symbols, libraries));
        let recovery = recovery_frames(crash_path, symbols, libraries);
        let function = missing.first().and_then(|store| store.location.function.clone());
        let flushed_at = cause.flushed_at.and_then(|site| {
            let frames = blame::frames(site, Role::Flush, tables, symbols);
            let own = frames.iter().position(|frame| frame.function.is_some() && frame.function == function)?;
            // A function that it calls, such as a commit, flushes and has the next store, too: the fence belongs there.
            let inner = fence_before.as_ref().and_then(|store| store.location.function.clone());
            let is_inner = inner.is_some() && frames[..own].iter().any(|frame| frame.function == inner);
            (!is_inner).then(|| frames[own].clone())
        });
        let repair = repair.filter(|_| !is_within_call);
        Named { missing, present, recovery, paths, repair, fence_before, flushed_at, is_within_call }
    }

    /// The guilty line first.
    fn locations(&self, class: Class) -> Vec<Location> {
        let of = |stores: &[NamedStore]| stores.iter().map(|store| store.location.clone()).collect::<Vec<Location>>();
        let (missing, present, recovery) = (of(&self.missing), of(&self.present), self.recovery.clone());
        match class {
            Class::Recovery => [recovery, present, missing],
            Class::Atomicity => [present, missing, recovery],
            _ => [missing, present, recovery],
        }
        .concat()
    }

    /// The finding about a store that is never made durable, if this one is about the same store: whatever it is to be in one
    /// piece with is half done without it.
    fn lost(&self, cause: &RootCause, all: &[Explained]) -> Option<usize> {
        let sides: Vec<&NamedStore> = self.missing.iter().chain(&self.present).collect();
        all.iter().position(|Explained { finding, .. }| {
            // In program order everything that was executed is in PM: the loss of a store is not what fails there.
            cause.class == Class::Atomicity
                && !cause.in_program_order
                && finding.class == Class::Durability
                && sides.iter().any(|store| same_line(&store.location, finding.guilty()))
        })
    }

    /// What has one root cause: for lost stores the line of the store, or the fence that would have ordered several; for
    /// torn updates the functions on both sides, or the store that is all that they lack. Causes with a key in common are one.
    fn keys(&self, cause: &RootCause) -> Vec<String> {
        let locations = self.locations(cause.class);
        let Some(guilty) = locations.first() else {
            return vec![format!("{} {}", rule(cause.class), cause.point.at.0)];
        };
        if is_hang(cause) {
            // Where a loop was when its time was over is chance.
            return vec![format!("{} hang", rule(cause.class))];
        }
        if is_order_of_lines(cause) {
            // However the lines come into another order: it is the same listing.
            return vec![RULE_OF_LISTINGS.to_owned()];
        }
        let is_lost = match cause.class {
            Class::Durability => true,
            Class::Ordering => !cause.program_order_is_wrong,
            _ => false,
        };
        if cause.class == Class::Atomicity {
            return self.update_keys(cause);
        }
        let kinds = match (cause.class, is_lost, cause.lacks_fence()) {
            // What the same line stores and flushes, but without a fence, is another bug.
            (Class::Durability, _, false) => &["lost"][..],
            (Class::Ordering, true, true) => &["unfenced"],
            // It may be either.
            (_, true, _) => &["lost", "unfenced"],
            _ => &[rule(cause.class)],
        };
        let mut keys: Vec<String> = kinds.iter().map(|kind| format!("{kind} {guilty}")).collect();
        match (is_lost, &self.flushed_at, &self.fence_before) {
            // Where it is flushed, its fence belongs: what else needs a fence before the same store has its own.
            (true, Some(flush), _) => keys.push(format!("fence after {flush}")),
            (true, None, Some(before)) => keys.push(format!("fence before {}", before.location)),
            _ => {}
        }
        keys
    }

    /// Keys of an update that can be torn.
    fn update_keys(&self, cause: &RootCause) -> Vec<String> {
        let mut sides = [&self.present, &self.missing].map(|stores| stores.first().map(place_of));
        if is_unknown(cause) || self.is_within_call {
            let at = self.present.first().map(at_line);
            if at.is_some() && at == self.missing.first().map(at_line) {
                // Between two steps of a loop, or of a call: whatever else its function updates is another matter.
                return at.into_iter().collect();
            }
            // What comes next need not be what it lacks.
            return at.into_iter().chain([format!("update of {:?}", sides[0])]).collect();
        }
        // Which of the two is missing depends on where power failed.
        sides.sort();
        let mut keys = vec![format!("update {sides:?}")];
        if let (Completes::Alone, Some(last)) = (cause.completes, self.missing.first()) {
            keys.push(format!("update that lacks only {}", last.location));
        }
        keys
    }

    /// Keys by which only updates of which less is known find this one.
    fn open_keys(&self, cause: &RootCause) -> Vec<String> {
        if cause.class != Class::Atomicity || is_order_of_lines(cause) || is_unknown(cause) || self.is_within_call {
            return Vec::new();
        }
        let lines = self.present.first().into_iter().chain(self.missing.first()).map(at_line);
        lines.chain([format!("update of {:?}", self.present.first().map(place_of))]).collect()
    }

    fn finding(self, cause: &RootCause) -> Finding {
        let mut locations = self.locations(cause.class);
        if locations.is_empty() {
            // Nothing has a name, not even a module: the pool was written from outside.
            locations.push(Location {
                role: Role::Event,
                file: None,
                line: None,
                function: None,
                module: String::new(),
                address: cause.point.at.0,
            });
        }
        let title = if is_order_of_lines(cause) {
            Title::Rule("a listing comes in another order after a power failure".to_owned())
        } else {
            self.title(cause)
        };
        let thread = guilty_thread(&self, cause.class);
        // A loop is caught here or there; the store that leads to it is the same in every run.
        let known_by =
            self.present.first().or(self.missing.first()).filter(|_| is_hang(cause)).map(|store| &store.location);
        Finding {
            id: FindingId::new(rule_of(cause), known_by.unwrap_or(&locations[0])),
            rule: rule_of(cause).to_owned(),
            class: cause.class,
            severity: if is_order_of_lines(cause) { Severity::Warning } else { Severity::Error },
            title,
            locations,
            count: cause.explains,
            paths: self.paths,
            first: cause.point.at,
            thread,
            also: Vec::new(),
            failure: cause.verdict.symptom().map(|symptom| {
                Box::new(CrashFailure {
                    symptom: symptom.clone(),
                    // The session knows the operations.
                    crash_point: CrashPoint { event: cause.point.at, operation: None, kind: cause.point.key.kind },
                    dirty_lines: cause.dirty_lines as u64,
                    missing: self.missing,
                    present: self.present,
                    repair: self.repair,
                    recovery_from: None,
                })
            }),
            notes: not_separated(cause).into_iter().collect(),
            replay: None,
        }
    }

    fn title(&self, cause: &RootCause) -> Title {
        Title::Broken { promise: Box::new(self.broken(cause)), during_recovery: false }
    }

    /// What the cause breaks.
    fn broken(&self, cause: &RootCause) -> BrokenPromise {
        let (missing, present) = (self.missing.first().cloned(), self.present.first().cloned());
        match (cause.class, &present) {
            (Class::Durability, _) if cause.by_accident => BrokenPromise::DurableOnPurpose { store: missing },
            (Class::Durability, _) => BrokenPromise::Durable { store: missing },
            (Class::Ordering, _) if cause.program_order_is_wrong => {
                BrokenPromise::StoredAfter { store: present, needed: missing }
            }
            (Class::Ordering, None) => BrokenPromise::DurableInTime { store: missing },
            // Of several that are there, the one before which the fence belongs.
            (Class::Ordering, Some(_)) => {
                BrokenPromise::Ordered { first: missing, second: self.fence_before.clone().or(present) }
            }
            (Class::Atomicity, _) if one_store(cause) => BrokenPromise::Whole { store: present },
            (Class::Atomicity, _) => BrokenPromise::Together { one: present, other: missing },
            (_, Some(after)) if is_hang(cause) => BrokenPromise::Ends { after: after.clone() },
            _ => BrokenPromise::Survives { at: self.recovery.first().cloned() },
        }
    }
}

/// The rule of listings whose order differs; `fencepost explain` has a page on it.
const RULE_OF_LISTINGS: &str = "FP0606";

fn rule_of(cause: &RootCause) -> &'static str {
    if is_order_of_lines(cause) { RULE_OF_LISTINGS } else { rule(cause.class) }
}

fn is_order_of_lines(cause: &RootCause) -> bool {
    matches!(cause.verdict.symptom(), Some(Symptom::OtherOrder { .. }))
}

/// Whose store the guilty one is.
fn guilty_thread(named: &Named, class: Class) -> Option<Thread> {
    let (first, second) = match class {
        Class::Atomicity | Class::Recovery => (&named.present, &named.missing),
        _ => (&named.missing, &named.present),
    };
    let store = first.first().or(second.first())?;
    Some(Thread { id: store.thread, runs: store.thread_runs.clone() })
}

/// If the failure shows only while several stores are missing, none of them alone was shown to be the culprit.
fn not_separated(cause: &RootCause) -> Option<Note> {
    let lost = matches!(cause.class, Class::Durability | Class::Ordering) && !cause.in_program_order;
    (lost && cause.missing.len() > 1).then_some(Note::NotSeparated { stores: cause.missing.len() as u64 })
}

fn is_hang(cause: &RootCause) -> bool {
    cause.class == Class::Recovery && cause.verdict.symptom().is_some_and(Symptom::is_hang)
}

/// What is missing and what is there are parts of one store.
fn one_store(cause: &RootCause) -> bool {
    let there = |lost: &StoreInfo| cause.present.iter().any(|store| store.event == lost.event);
    !cause.missing.is_empty() && cause.missing.iter().all(there)
}

/// A store, with what it stores to if the source says so.
fn named_store(store: &StoreInfo, location: Location, thread_runs: Option<String>, tables: &Tables) -> NamedStore {
    let name = stored_to(&location, tables);
    let bytes = Some(bytes_of(store, tables));
    NamedStore { location, name, event: store.event, thread: store.thread, thread_runs, bytes }
}

fn stored_to(location: &Location, tables: &Tables) -> Option<String> {
    let (file, line) = location.file.as_deref().zip(location.line)?;
    lvalue::of_line(file, line, Path::new(&tables.meta.cwd))
}

fn bytes_of(store: &StoreInfo, tables: &Tables) -> PoolBytes {
    let path = &tables.pools[store.place.pool.0 as usize].info.path;
    let pool = path.rsplit('/').next().unwrap_or_default().to_owned();
    PoolBytes { pool, offset: store.place.offset, len: store.len }
}

/// A key of updates that begin or end with this store.
fn at_line(store: &NamedStore) -> String {
    format!("update at {}", store.location)
}

/// The function that a store is in; where it has no name, its line.
fn place_of(store: &NamedStore) -> String {
    store.location.function.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| store.location.to_string())
}

pub(crate) fn same_line(a: &Location, b: &Location) -> bool {
    (&a.file, a.line, &a.function) == (&b.file, b.line, &b.function) && (a.file.is_some() || a.address == b.address)
}

fn with_names(repair: repair::Repair, tables: &Tables, symbols: &mut Symbolizer<'_>, libraries: &Libraries) -> Repair {
    let mut at = |store: StoreInfo| blamed(store, Role::Store, tables, symbols, libraries);
    let after = at(repair.after);
    Repair {
        insert: repair.remedy,
        name: stored_to(&after, tables),
        bytes: Some(bytes_of(&repair.after, tables)),
        after,
        before: repair.before.map(at),
    }
}

/// The line of the program to which a store is put down.
fn blamed(
    store: StoreInfo,
    role: Role,
    tables: &Tables,
    symbols: &mut Symbolizer<'_>,
    libraries: &Libraries,
) -> Location {
    let frames = blame::frames(store.site, role, tables, symbols);
    frames[blame::guilty(&frames, libraries)].clone()
}

/// The frames of a crash inside recovery that are the program's own, innermost first; at least one if there are any.
pub fn recovery_frames(path: &[Frame], symbols: &mut Symbolizer<'_>, libraries: &Libraries) -> Vec<Location> {
    let mut frames = Vec::new();
    for (depth, frame) in path.iter().enumerate() {
        let module = frame.module.rsplit('/').next().unwrap_or_default().to_owned();
        let named = symbols.frames_in_file(&frame.module, frame.address, depth > 0);
        if named.is_empty() {
            frames.push(Location {
                role: Role::Recovery,
                file: None,
                line: None,
                function: None,
                module,
                address: frame.address,
            });
            continue;
        }
        for name in named.iter() {
            frames.push(Location {
                role: Role::Recovery,
                file: name.source.as_ref().map(|source| source.file.clone()),
                line: name.source.as_ref().map(|source| source.line),
                function: name.function.clone(),
                module: module.clone(),
                address: frame.address,
            });
        }
    }
    let mut own: Vec<Location> = frames.iter().filter(|frame| !libraries.own(frame)).cloned().collect();
    own.dedup_by(|outer, inner| {
        let is_same = inner.file.is_some() && (&inner.file, inner.line) == (&outer.file, outer.line);
        if is_same {
            // A closure, or a function that is inlined into the line, is told by where it stands.
            inner.function.clone_from(&outer.function);
        }
        is_same
    });
    own.truncate(NAMED);
    if own.is_empty() { frames.into_iter().take(1).collect() } else { own }
}
