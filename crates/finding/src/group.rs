//! From sightings to findings: names the code, finds whom to blame, joins what has one cause.

use std::collections::BTreeMap;

use trace::Tables;
use trace::event::EventId;
use trace::symbol::Symbolizer;

use crate::blame::{self, Libraries};
use crate::finding::{CallPath, Class, Finding, FindingId, Location, Role, Title};
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
}

/// Joins sightings into findings: worst first, then by rule and place. `dismiss` sees the named frames of each
/// sighting, innermost first, and can drop what the names show to be harmless.
pub fn group(
    causes: &[Cause],
    sightings: &[Sighting],
    tables: &Tables,
    libraries: &Libraries,
    dismiss: impl Fn(usize, &[Location]) -> bool,
) -> Vec<Finding> {
    let mut symbols = Symbolizer::new(tables);
    let mut groups: BTreeMap<(usize, String), Finding> = BTreeMap::new();
    for sighting in sightings {
        let frames = blame::frames(sighting.site, sighting.role, tables, &mut symbols);
        if dismiss(sighting.cause, &frames) {
            continue;
        }
        let related = sighting.related.map(|(role, site)| blame::frames(site, role, tables, &mut symbols));
        add(&mut groups, &causes[sighting.cause], sighting, frames, related, libraries);
    }
    let mut findings: Vec<Finding> = groups.into_values().collect();
    for finding in &mut findings {
        finding.paths.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.frames.cmp(&b.frames)));
    }
    findings.sort_by(|a, b| {
        let place = |f: &Finding| (f.rule.clone(), f.guilty().file.clone(), f.guilty().line, f.guilty().key());
        b.severity.cmp(&a.severity).then_with(|| place(a).cmp(&place(b)))
    });
    findings
}

fn add(
    groups: &mut BTreeMap<(usize, String), Finding>,
    cause: &Cause,
    sighting: &Sighting,
    frames: Vec<Location>,
    related: Option<Vec<Location>>,
    libraries: &Libraries,
) {
    let at = blame::guilty(&frames, libraries);
    let guilty = frames[at].clone();
    let finding = groups.entry((sighting.cause, guilty.key())).or_insert_with(|| {
        let mut locations = vec![guilty.clone()];
        // Of the library the outermost frame: what the guilty line called.
        if let Some(library) = at.checked_sub(1).map(|before| &frames[before])
            && library.function != guilty.function
        {
            locations.push(Location { role: Role::Library, ..library.clone() });
        }
        Finding {
            id: FindingId::new(&cause.rule, &guilty),
            rule: cause.rule.clone(),
            class: cause.class,
            severity: cause.severity,
            title: Title::Rule(cause.title.clone()),
            locations,
            count: 0,
            paths: Vec::new(),
            first: sighting.first,
            failure: None,
            notes: Vec::new(),
            replay: None,
        }
    });
    finding.count += sighting.count;
    finding.first = finding.first.min(sighting.first);
    if let Some(related) = related {
        let other = related[blame::guilty(&related, libraries)].clone();
        let known = finding.locations.iter().any(|l| l.role == other.role && l.key() == other.key());
        let named = finding.locations.iter().filter(|l| l.role == other.role).count();
        if !known && named < RELATED {
            finding.locations.push(other);
        }
    }
    match finding.paths.iter_mut().find(|path| path.frames == frames) {
        Some(path) => path.count += sighting.count,
        None => finding.paths.push(CallPath { count: sighting.count, frames }),
    }
}
