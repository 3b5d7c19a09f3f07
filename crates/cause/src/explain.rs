//! Root causes as findings: named, grouped by the code to blame, in sentences.

use std::collections::BTreeMap;
use std::path::Path;

use finding::blame::{self, Libraries};
use finding::finding::{CallPath, Class, Finding, FindingId, Location, Role};
use finding::severity::Severity;
use trace::Tables;
use trace::symbol::Symbolizer;
use verdict::end::Frame;

use crate::analyse::RootCause;
use crate::lvalue;
use crate::repair::{Remedy, Repair};
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
    let mut order: Vec<usize> = (0..causes.len()).collect();
    // A store that is never made durable comes too late as well: one finding, about the worse.
    order.sort_by_key(|&number| causes[number].class != Class::Durability);
    for number in order {
        let mut cause = causes[number].clone();
        let crash_path = crash_paths.get(number).map_or(&[][..], Vec::as_slice);
        let named = Named::of(&cause, crash_path, tables, &mut symbols, libraries);
        let sides = named.missing.first().zip(named.present.first());
        if cause.program_order_is_wrong && sides.is_some_and(|(missing, present)| same_line(missing, present)) {
            // Inside one call of a library: its caller cannot put that in order.
            cause.class = Class::Atomicity;
            cause.program_order_is_wrong = false;
        }
        let keys = named.keys(&cause);
        let folder = Path::new(&tables.meta.cwd);
        let known = keys.iter().find_map(|key| groups.get(key).copied()).or_else(|| named.lost(&cause, &all));
        let group = known.unwrap_or(all.len());
        keys.into_iter().for_each(|key| {
            groups.entry(key).or_insert(group);
        });
        match all.get_mut(group) {
            Some(Explained { finding, causes }) => {
                finding.count += cause.explains;
                causes.push(number);
                named.missing.into_iter().for_each(|location| add_location(finding, location));
                named.paths.into_iter().for_each(|path| add_path(finding, path));
            }
            None => all.push(Explained { finding: named.finding(&cause, folder), causes: vec![number] }),
        }
    }
    all.sort_by_key(|explained| (explained.finding.rule.clone(), explained.finding.first));
    all
}

/// Another store that one and the same fence would have ordered.
fn add_location(finding: &mut Finding, location: Location) {
    let missing = finding.locations.iter().filter(|known| known.role == Role::Missing).count();
    let is_new = location.role == Role::Missing && !finding.locations.iter().any(|known| same_line(known, &location));
    if is_new && (1..NAMED).contains(&missing) {
        finding.locations.insert(missing, location);
    }
}

fn add_path(finding: &mut Finding, path: CallPath) {
    match finding.paths.iter_mut().find(|known| known.frames == path.frames) {
        Some(known) => known.count += path.count,
        None => finding.paths.push(path),
    }
}

/// A cause with names.
struct Named {
    missing: Vec<Location>,
    present: Vec<Location>,
    recovery: Vec<Location>,
    paths: Vec<CallPath>,
    repair: Option<String>,
    /// A fence right before this is all that is missing: it was tried.
    fence_before: Option<Location>,
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
        let mut side = |stores: &[StoreInfo], role: Role, with_path: bool| {
            let mut named: Vec<Location> = Vec::new();
            for store in stores {
                let frames = blame::frames(store.site, role, tables, symbols);
                let guilty = frames[blame::guilty(&frames, libraries)].clone();
                if named.iter().any(|known| same_line(known, &guilty)) || named.len() >= NAMED {
                    continue;
                }
                named.push(guilty);
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
        let before = cause.repair.filter(|repair| repair.remedy == Remedy::Fence).and_then(|repair| repair.before);
        let fence_before = before.map(|store| blamed(store, Role::Present, tables, symbols, libraries));
        let repair = cause.repair.map(|repair| remedy(repair, tables, symbols, libraries));
        let recovery = recovery_frames(crash_path, symbols, libraries);
        Named { missing, present, recovery, paths, repair, fence_before }
    }

    /// The guilty line first.
    fn locations(&self, class: Class) -> Vec<Location> {
        let sides: [&[Location]; 3] = match class {
            Class::Recovery => [&self.recovery, &self.present, &self.missing],
            Class::Atomicity => [&self.present, &self.missing, &self.recovery],
            _ => [&self.missing, &self.present, &self.recovery],
        };
        sides.into_iter().flatten().cloned().collect()
    }

    /// The finding about a store that is never made durable, if this one is about the same store: whatever it is to be in one
    /// piece with is half done without it.
    fn lost(&self, cause: &RootCause, all: &[Explained]) -> Option<usize> {
        let sides = || self.missing.iter().chain(&self.present);
        all.iter().position(|Explained { finding, .. }| {
            cause.class == Class::Atomicity
                && finding.class == Class::Durability
                && sides().any(|location| same_line(location, finding.guilty()))
        })
    }

    /// What has one root cause: for lost stores the line of the store, or the fence that would have ordered several; for
    /// torn updates the function. Causes with a key in common are one.
    fn keys(&self, cause: &RootCause) -> Vec<String> {
        let locations = self.locations(cause.class);
        let Some(guilty) = locations.first() else {
            return vec![format!("{} {}", rule(cause.class), cause.point.at.0)];
        };
        if is_hang(cause) {
            // Where a loop was when its time was over is chance.
            return vec![format!("{} hang", rule(cause.class))];
        }
        let function = guilty.function.as_deref().unwrap_or_default();
        let is_lost = match cause.class {
            Class::Durability => true,
            Class::Ordering => !cause.program_order_is_wrong,
            _ => false,
        };
        let place = match cause.class {
            Class::Atomicity if !function.is_empty() => function.to_owned(),
            _ => guilty.to_string(),
        };
        let kind = if is_lost { "lost" } else { rule(cause.class) };
        let mut keys = vec![format!("{kind} {place}")];
        if let (true, Some(before)) = (is_lost, &self.fence_before) {
            keys.push(format!("fence before {before}"));
        }
        keys
    }

    fn finding(self, cause: &RootCause, folder: &Path) -> Finding {
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
        let title = self.title(cause, folder);
        let mut notes = vec![format!("what recovery did: {}", cause.verdict.symptom.text)];
        notes.push(format!(
            "power failed {} at event {}; {} cache lines were not guaranteed there",
            cause.point.key.kind, cause.point.at.0, cause.dirty_lines
        ));
        notes.extend(self.repair.clone());
        // A loop is caught here or there; the store that leads to it is the same in every run.
        let known_by =
            self.present.first().or(self.missing.first()).filter(|_| is_hang(cause)).unwrap_or(&locations[0]);
        Finding {
            id: FindingId::new(rule(cause.class), known_by),
            rule: rule(cause.class).to_owned(),
            class: cause.class,
            severity: Severity::Error,
            title,
            locations,
            count: cause.explains,
            paths: self.paths,
            first: cause.point.at,
            notes,
            replay: None,
        }
    }

    fn title(&self, cause: &RootCause, folder: &Path) -> String {
        let first = |side: &[Location]| {
            side.first().map_or_else(|| "a store".to_owned(), |location| named_place(location, folder))
        };
        let (missing, present) = (first(&self.missing), first(&self.present));
        match cause.class {
            Class::Durability => format!("the store to {missing} is never made durable: a power failure can lose it"),
            Class::Ordering if cause.program_order_is_wrong => {
                format!(
                    "{present} is stored before {missing}, which it needs: a power failure in between breaks recovery"
                )
            }
            Class::Ordering if self.present.is_empty() => {
                format!("the store to {missing} becomes durable too late: a power failure can lose it")
            }
            Class::Ordering => {
                // Of several that are there, the one before which the fence belongs.
                let second = self.fence_before.as_ref().map_or(present, |location| named_place(location, folder));
                format!(
                    "nothing orders {missing} before {second}: after a power failure PM can have the second without the first"
                )
            }
            Class::Atomicity if one_store(cause) => {
                format!(
                    "the store in {present} crosses a cache line: after a power failure PM can have one part without the other"
                )
            }
            Class::Atomicity if self.missing.is_empty() => {
                format!("the change that {present} is part of can be half done after a power failure")
            }
            Class::Atomicity => {
                format!("{present} and {missing} belong together, but a power failure can leave one without the other")
            }
            _ if is_hang(cause) && !self.present.is_empty() => {
                format!("recovery does not end after a power failure behind the store to {present}")
            }
            _ => format!("recovery breaks down in {}", first(&self.recovery)),
        }
    }
}

fn is_hang(cause: &RootCause) -> bool {
    cause.class == Class::Recovery && cause.verdict.symptom.key.starts_with("hang")
}

/// What is missing and what is there are parts of one store.
fn one_store(cause: &RootCause) -> bool {
    let there = |lost: &StoreInfo| cause.present.iter().any(|store| store.event == lost.event);
    !cause.missing.is_empty() && cause.missing.iter().all(there)
}

/// A place in the code, with what is stored to there if the source says so.
fn named_place(location: &Location, folder: &Path) -> String {
    let (Some(file), Some(line), true) = (&location.file, location.line, location.role != Role::Recovery) else {
        return place(location);
    };
    match lvalue::of_line(file, line, folder) {
        Some(what) => format!("`{what}` in {}", place(location)),
        None => place(location),
    }
}

/// `function (file:line)`, shorter than a whole path.
fn place(location: &Location) -> String {
    let function = location.function.as_deref().unwrap_or("?");
    match (&location.file, location.line) {
        (Some(file), Some(line)) => format!("`{function}` ({}:{line})", file.rsplit('/').next().unwrap_or(file)),
        _ => format!("`{function}` ({}+{:#x})", location.module, location.address),
    }
}

fn same_line(a: &Location, b: &Location) -> bool {
    (&a.file, a.line, &a.function) == (&b.file, b.line, &b.function) && (a.file.is_some() || a.address == b.address)
}

/// What would help, in a sentence.
pub fn describe_repair(cause: &RootCause, tables: &Tables, libraries: &Libraries) -> Option<String> {
    cause.repair.map(|repair| remedy(repair, tables, &mut Symbolizer::new(tables), libraries))
}

fn remedy(repair: Repair, tables: &Tables, symbols: &mut Symbolizer<'_>, libraries: &Libraries) -> String {
    let mut at = |store: StoreInfo| place(&blamed(store, Role::Store, tables, symbols, libraries));
    let what = match repair.remedy {
        Remedy::Fence => "a fence",
        Remedy::FlushAndFence => "a flush of that line and a fence",
    };
    let after = at(repair.after);
    match repair.before {
        Some(before) => format!(
            "{what} after {after}, before {}, would make this state impossible (checked on the trace)",
            at(before)
        ),
        None => format!("{what} right after {after} would make this state impossible (checked on the trace)"),
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
