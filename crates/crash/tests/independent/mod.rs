//! The whole search against an enumeration that shares no code with the models: random programs, and a recovery that notes the images and
//! files that it is given. Where the search says that a crash point is exhausted, recovery has seen exactly the images that a power failure there can leave;
//! where it says that it met a limit, it has seen some of them and no other. And if all crash points are exhausted, no moment between two of
//! them has an image that was not seen.

mod enumerate;
mod program;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crash::image::CrashImage;
use crash::points::Density;
use crash::recovery::{Observation, Recovery, RecoveryError};
use crash::rounds::Selection;
use crash::search::{Found, Search, SearchOptions};
use crash::strategy::{Reach, StrategySpec};
use crash::survey::Survey;
use crash::walk::Rules;
use persistency::line::LineId;
use persistency::model::{Fences, ModelKind};
use trace::{FileContent, FileTree, FileTreeEntry, LineNo, PoolId, TraceReader};
use verdict::read::Read;
use verdict::verdict::Verdict;

use enumerate::{Files, Image};
use program::{LINES, Model, NAMES, Op, What, random, record};

/// The images and files that recovery was given, by the place where power failed.
type Given = HashMap<usize, HashSet<(Image, Files)>>;

/// Reads all there is, line by line, in an order of its own.
struct Notes {
    first: usize,
    given: Arc<Mutex<Given>>,
}

impl Recovery for Notes {
    fn run(&mut self, image: &CrashImage<'_>) -> Result<Observation, RecoveryError> {
        let line = |line: usize| LineId { pool: PoolId(0), line: LineNo(line as u64) };
        let bytes: Image = std::array::from_fn(|number| image.line(line(number)));
        let files = files(image.guaranteed().files());
        self.given.lock().unwrap().entry(image.guaranteed().at().0 as usize).or_default().insert((bytes, files));
        let reads = (0..LINES).map(|number| Read::Line(line((self.first + number) % LINES))).collect();
        Ok(Observation { verdict: Verdict::Pass, reads: Some(reads) })
    }
}

/// All names that there are, with the bytes behind them.
fn files(tree: &FileTree) -> Files {
    let bytes = |entry: &FileTreeEntry| {
        let FileTreeEntry::File(file) = entry else { panic!("only files were made: {entry:?}") };
        let FileContent::Bytes(image) = &tree.file(*file).unwrap().content else { panic!("no pool") };
        let page = image.page(0).map_or([0; 4096], |page| *page);
        page[..image.len() as usize].to_vec()
    };
    tree.names().map(|(name, entry)| (NAMES.iter().position(|own| *own == name).unwrap(), bytes(entry))).collect()
}

fn search(reader: &TraceReader, model: Model, strategies: &str, equivalence: bool, seed: u64) -> (Found, Given) {
    let kind = match model {
        Model::Adr => ModelKind::X86Adr,
        Model::Eadr => ModelKind::X86Eadr,
    };
    let options = SearchOptions {
        rules: Rules { model: kind, fences: Fences::All },
        selection: Selection { density: Density::of(kind), ..Selection::default() },
        strategies: StrategySpec::list(strategies).unwrap(),
        ..SearchOptions::default()
    };
    let survey = Survey::of(reader, options.selection.density, &|_, _| false).unwrap();
    let given = Arc::new(Mutex::new(Given::new()));
    let mut notes = [Notes { first: seed as usize % LINES, given: Arc::clone(&given) }];
    let found = Search { equivalence, ..Search::new(reader, &survey, &options) }.run(&mut notes).unwrap();
    drop(notes);
    (found, Arc::into_inner(given).unwrap().into_inner().unwrap())
}

#[derive(Default)]
struct Counts {
    exhausted: AtomicU64,
    capped: AtomicU64,
    images: AtomicU64,
    whole_programs: AtomicU64,
}

fn check(seed: u64, ops: &[Op], reader: &TraceReader, model: Model, counts: &Counts) {
    // The defaults of the command line, and something more thorough.
    let strategies = if seed.is_multiple_of(2) {
        "program-order,guaranteed-only,visible:64"
    } else {
        "program-order,guaranteed-only,torn:3000"
    };
    let (found, given) = search(reader, model, strategies, false, seed);
    let context = |at: usize| format!("program {seed} ({model:?}), power fails before operation {at}:\n{ops:#?}");
    for outcome in &found.points {
        let at = outcome.point.at.0 as usize;
        let lines = enumerate::lines(ops, at, model);
        let seen = &given[&at];
        for (image, files) in seen {
            assert_eq!(*files, enumerate::files(ops, at), "other files: {}", context(at));
            for (number, contents) in lines.iter().enumerate() {
                let possible = contents.as_ref().is_none_or(|contents| contents.contains(&image[number]));
                assert!(possible, "line {number} cannot be {:?}: {}", image[number], context(at));
            }
        }
        if outcome.strategies.iter().any(|strategy| strategy.reach == Reach::Distinguishable) {
            let all = enumerate::images(&lines).unwrap_or_else(|| panic!("there are more: {}", context(at)));
            assert_eq!(seen.len(), all.len(), "not all were seen: {}", context(at));
            counts.exhausted.fetch_add(1, Ordering::Relaxed);
            counts.images.fetch_add(all.len() as u64, Ordering::Relaxed);
        } else {
            let all = enumerate::images(&lines);
            assert!(all.is_none_or(|all| all.len() > 16), "what was left out? {}", context(at));
            assert!(outcome.strategies.iter().any(|strategy| strategy.reach == Reach::Capped));
            counts.capped.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (again, seen) = search(reader, model, strategies, true, seed);
    assert_eq!(again.coverage.points_distinguished, found.coverage.points_distinguished);
    let seen: HashSet<(Image, Files)> = seen.into_values().flatten().collect();
    assert_eq!(seen, given.into_values().flatten().collect(), "what was concluded was not seen: {}", context(0));
    if found.coverage.exhaustive && !found.points.is_empty() {
        let changes = |op: &Op| matches!(op.what, What::Store { .. } | What::File(_));
        // Before the first change there is nothing that could be lost.
        let first = ops.iter().position(changes).map_or(ops.len(), |first| first + 1);
        for at in first..=ops.len() {
            let files = enumerate::files(ops, at);
            let all = enumerate::images(&enumerate::lines(ops, at, model)).expect("no crash point has so many");
            let is_seen = |image: &Image| seen.contains(&(*image, files.clone()));
            assert!(all.iter().all(is_seen), "no crash point has it: {}", context(at));
        }
        counts.whole_programs.fetch_add(1, Ordering::Relaxed);
    }
}

fn compare(model: Model, programs: u64) {
    let folder = tempfile::tempdir().unwrap();
    let (next, counts) = (AtomicU64::new(0), Counts::default());
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (folder, next, counts) = (folder.path(), &next, &counts);
            scope.spawn(move || {
                let path = folder.join(format!("{worker}.fptrace"));
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= programs {
                        break;
                    }
                    let ops = random(seed ^ (model as u64) << 40);
                    check(seed, &ops, &record(&ops, &path), model, counts);
                }
            });
        }
    });
    let Counts { exhausted, capped, images, whole_programs } = counts;
    let (exhausted, capped, images) = (exhausted.into_inner(), capped.into_inner(), images.into_inner());
    let whole = whole_programs.into_inner();
    println!(
        "{model:?}: {programs} programs, {whole} without a limit; {exhausted} crash points exhausted with {images} images, {capped} capped"
    );
    assert!(whole > programs * 2 / 3 && exhausted > 2 * capped && images > 4 * exhausted && capped > 20, "too tame");
}

/// A debug build is some twenty times slower.
fn programs() -> u64 {
    if cfg!(debug_assertions) { 100 } else { 2_500 }
}

#[test]
fn recovery_sees_every_image_that_adr_can_leave() {
    compare(Model::Adr, programs());
}

#[test]
fn recovery_sees_every_image_that_eadr_can_leave() {
    compare(Model::Eadr, programs());
}
