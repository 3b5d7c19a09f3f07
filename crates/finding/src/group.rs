//! From sightings to findings: names the code, finds whom to blame, joins what has one cause.

use std::collections::BTreeMap;

use trace::Tables;
use trace::event::{EventId, ThreadId};
use trace::symbol::Symbolizer;

use crate::blame::{self, Libraries, Wrappers};
use crate::finding::{CallPath, Class, Finding, FindingId, Location, Role, Thread, Title};
use crate::note::Note;
use crate::pmdk;
use crate::severity::Severity;
use crate::site::Site;

/// At most this many other sides are named; the rest are more of the same.
const RELATED: usize = 4;

/// What a rule says of its findings.
#[derive(Clone, Debug)]
pub struct Cause {
    pub rule: String,
    pub class: Class,
    pub severity: Severity,
    pub title: String,
}

/// One site at which a rule was broken, and how often.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// Index into the causes.
    pub cause: usize,
    pub site: Site,
    pub role: Role,
    /// The other side, if there is one.
    pub related: Option<(Role, Site)>,
    pub count: u64,
    pub first: EventId,
    /// Whose event that was.
    pub thread: Option<ThreadId>,
    /// What else is known.
    pub note: Option<Note>,
}

/// A finding, and whether all of it lies inside a PM library.
#[derive(Clone, Debug)]
pub struct Grouped {
    pub finding: Finding,
    /// The library does it on its own account, not with what the program asked of it.
    pub inside_library: bool,
}

/// Joins sightings into findings: worst first, then by rule and place. `stores` are all places from which something was stored to PM.
/// `dismiss` sees the named frames of each sighting, innermost first, and can drop what the names show to be harmless.
pub fn group(
    causes: &[Cause],
    sightings: &[Sighting],
    stores: impl Iterator<Item = Site>,
    tables: &Tables,
    libraries: &Libraries,
    dismiss: impl Fn(usize, &[Location]) -> bool,
) -> Vec<Grouped> {
    let mut symbols = Symbolizer::new(tables);
    let through = |role: Role| matches!(role, Role::Flush | Role::Fence);
    let roles = |sighting: &Sighting| through(sighting.role) || sighting.related.is_some_and(|(role, _)| through(role));
    // Without a flush or a fence nobody is looked through.
    let wrappers = match sightings.iter().any(roles) {
        true => Wrappers::learn(stores, tables, &mut symbols),
        false => Wrappers::default(),
    };
    let blame = Blame { libraries, wrappers };
    let mut groups: BTreeMap<(usize, String), Grouped> = BTreeMap::new();
    for sighting in sightings {
        let frames = blame::frames(sighting.site, sighting.role, tables, &mut symbols);
        if dismiss(sighting.cause, &frames) {
            continue;
        }
        let related = sighting.related.map(|(role, site)| blame::frames(site, role, tables, &mut symbols));
        blame.add(&mut groups, &causes[sighting.cause], sighting, frames, related);
    }
    let mut findings: Vec<Grouped> = groups.into_values().collect();
    for Grouped { finding, .. } in &mut findings {
        finding.paths.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.frames.cmp(&b.frames)));
    }
    findings.sort_by(|Grouped { finding: a, .. }, Grouped { finding: b, .. }| {
        let place = |f: &Finding| (f.rule.clone(), f.guilty().file.clone(), f.guilty().line, f.guilty().key());
        b.severity.cmp(&a.severity).then_with(|| place(a).cmp(&place(b)))
    });
    findings
}

/// Whose fault it is.
struct Blame<'l> {
    libraries: &'l Libraries,
    wrappers: Wrappers,
}

impl Blame<'_> {
    fn guilty(&self, frames: &[Location]) -> usize {
        match frames.first().map(|frame| frame.role) {
            Some(Role::Flush | Role::Fence) => blame::guilty_caller(frames, self.libraries, &self.wrappers),
            _ => blame::guilty(frames, self.libraries),
        }
    }

    fn add(
        &self,
        groups: &mut BTreeMap<(usize, String), Grouped>,
        cause: &Cause,
        sighting: &Sighting,
        frames: Vec<Location>,
        related: Option<Vec<Location>>,
    ) {
        let at = self.guilty(&frames);
        let guilty = frames[at].clone();
        let Grouped { finding, inside_library } = groups.entry((sighting.cause, guilty.key())).or_insert_with(|| {
            let mut locations = vec![guilty.clone()];
            // Of the library, or of the program's own wrappers, the outermost frame: what the guilty line called.
            if let Some(library) = at.checked_sub(1).map(|before| &frames[before])
                && library.function != guilty.function
            {
                locations.push(Location { role: Role::Library, ..library.clone() });
            }
            let finding = Finding {
                id: FindingId::new(&cause.rule, &guilty),
                rule: cause.rule.clone(),
                class: cause.class,
                severity: cause.severity,
                title: Title::Rule(cause.title.clone()),
                locations,
                count: 0,
                paths: Vec::new(),
                first: sighting.first,
                thread: None,
                also: Vec::new(),
                failure: None,
                notes: Vec::new(),
                replay: None,
            };
            Grouped { finding, inside_library: true }
        });
        finding.count += sighting.count;
        if sighting.first <= finding.first {
            finding.first = sighting.first;
            let runs = blame::thread_function(&frames, self.libraries);
            finding.thread = sighting.thread.map(|id| Thread { id, runs });
        }
        let own_account = |frames: &[Location]| pmdk::on_own_account(&frames[..self.guilty(frames)]);
        *inside_library &= own_account(&frames) && related.as_deref().is_none_or(own_account);
        if let Some(related) = related {
            let other = related[self.guilty(&related)].clone();
            let known = finding.locations.iter().any(|l| l.role == other.role && l.key() == other.key());
            let named = finding.locations.iter().filter(|l| l.role == other.role).count();
            if !known && named < RELATED {
                finding.locations.push(other);
            }
        }
        if let Some(note) = &sighting.note
            && finding.notes.len() < RELATED
            && !finding.notes.contains(note)
        {
            finding.notes.push(note.clone());
        }
        match finding.paths.iter_mut().find(|path| path.frames == frames) {
            Some(path) => path.count += sighting.count,
            None => finding.paths.push(CallPath { count: sighting.count, frames }),
        }
    }
}
