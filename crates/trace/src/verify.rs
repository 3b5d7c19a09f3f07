//! Replaying a trace onto the initial pools and comparing with what the pools were at the end.
//!
//! This is the test of a recorder: a store that it missed, or recorded with a wrong place, value or order,
//! shows as bytes that differ.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::content::PoolContent;
use crate::error::{Malformed, ReadError};
use crate::event::{EventKind, PoolId, PoolOffset};
use crate::file_tree::{FileTree, FoundName};
use crate::image::{PoolImage, replay};
use crate::pages::{FinalPages, PAGE, PageHash};
use crate::reader::TraceReader;
use crate::tables::Tables;

/// What the comparison of one pool gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolVerdict {
    pub pool: PoolId,
    pub path: String,
    /// False where the trace does not hold the final content: it was cut, or the pool could not be read then.
    pub compared: bool,
    pub differing_pages: u64,
    /// Counted byte by byte where the pool file still is as it was at the end, else whole pages are counted.
    pub differing_bytes: u64,
    /// Were all differing pages counted byte by byte?
    pub exact: bool,
    /// The first byte (or, if not exact, page) that differs.
    pub first_difference: Option<PoolOffset>,
    pub replayed_len: u64,
    /// Length of the pool at the end of the recording.
    pub final_len: u64,
}

impl PoolVerdict {
    pub fn is_same(&self) -> bool {
        self.compared && self.differing_pages == 0 && self.replayed_len == self.final_len
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    pub events: u64,
    /// Does the trace hold everything that was recorded?
    pub complete: bool,
    pub pools: Vec<PoolVerdict>,
    /// Names that are not what the trace's events say, or that the trace does not tell of at its end.
    pub names: Vec<NameVerdict>,
    /// Names that were compared.
    pub names_compared: u64,
}

/// A path under which the recording left something else than its events say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameVerdict {
    pub path: String,
    pub replayed: FoundName,
    pub recorded: FoundName,
}

impl NameVerdict {
    /// Both are regular files with the same mode.
    pub fn differs_in_content_only(&self) -> bool {
        let mode = |name: &FoundName| match name {
            FoundName::Regular { mode, .. } => Some(*mode),
            _ => None,
        };
        mode(&self.replayed).is_some() && mode(&self.replayed) == mode(&self.recorded)
    }
}

impl VerifyReport {
    /// Does the trace explain the final content of every pool, and every name?
    pub fn is_same(&self) -> bool {
        self.complete && self.pools.iter().all(PoolVerdict::is_same) && self.names.is_empty()
    }

    pub fn differing_bytes(&self) -> u64 {
        self.pools.iter().map(|pool| pool.differing_bytes).sum()
    }
}

/// Replays all events. Needs as much memory as the pools have pages that are not zero.
pub fn verify(path: &Path) -> Result<VerifyReport, ReadError> {
    let reader = TraceReader::open(path)?;
    let mut images = Vec::new();
    for (number, pool) in reader.tables().pools.iter().enumerate() {
        let mut image = PoolImage::new(pool.info.len);
        reader.initial_pages(PoolId(number as u32), |page, bytes| {
            // Page numbers were checked to lie inside the address range of files when the trace was opened.
            image.write(page * PAGE as u64, bytes).ok();
        })?;
        images.push(image);
    }
    let mut tree = reader.initial_files()?;
    let mut events = reader.events();
    loop {
        let replayed = match events.next()? {
            None => break,
            Some(event) => replay_in(&event, &mut images, &mut tree, reader.tables()),
        };
        replayed.map_err(|what| events.corrupt(what))?;
    }
    let base = pool_folder(&reader);
    let pools = images
        .into_iter()
        .enumerate()
        .map(|(number, image)| compare(&reader, PoolId(number as u32), image, &base))
        .collect::<Result<_, _>>()?;
    let recorded = reader.final_names();
    let names = recorded.iter().filter_map(|(path, recorded)| {
        let replayed = tree.found(path);
        (!replayed.agrees(recorded)).then(|| NameVerdict { path: path.clone(), replayed, recorded: recorded.clone() })
    });
    Ok(VerifyReport {
        events: reader.event_count(),
        complete: reader.is_complete(),
        pools,
        names: names.collect(),
        names_compared: recorded.len() as u64,
    })
}

fn replay_in(
    event: &crate::Event<'_>,
    images: &mut [PoolImage],
    tree: &mut FileTree,
    tables: &Tables,
) -> Result<(), Malformed> {
    if let EventKind::File(change) = &event.kind {
        let applied = tree.apply(change, tables);
        return applied.map_err(|_| Malformed("an event writes beyond the end of any file"));
    }
    let mut target = Some(images);
    // An event concerns one pool at most.
    replay(event, |pool| &mut target.take().expect("one pool")[pool.0 as usize])
        .map_err(|_| Malformed("an event writes beyond the end of any file"))
}

/// Relative pool paths are relative to where the command ran.
fn pool_folder(reader: &TraceReader) -> PathBuf {
    PathBuf::from(&reader.tables().meta.cwd)
}

fn compare(reader: &TraceReader, pool: PoolId, mut image: PoolImage, base: &Path) -> Result<PoolVerdict, ReadError> {
    let path = reader.tables().pool(pool).info.path.clone();
    let recorded = reader.final_pages(pool)?;
    let replayed_len = image.len();
    let mut verdict = PoolVerdict {
        pool,
        compared: recorded.is_some(),
        differing_pages: 0,
        differing_bytes: 0,
        exact: true,
        first_difference: None,
        replayed_len,
        final_len: recorded.as_ref().map_or(replayed_len, |pages| pages.len),
        path,
    };
    let Some(FinalPages { len, pages, .. }) = recorded else { return Ok(verdict) };
    // Stores beyond the end of the file, in its last page, are memory that no file holds.
    image.zero(len, u64::MAX - len);
    let zero = PageHash::of(&[0; PAGE]);
    // By page: what was recorded.
    let mut wanted: BTreeMap<u64, PageHash> = image.page_numbers().map(|number| (number, zero)).collect();
    wanted.extend(pages);
    let mut file = File::open(base.join(&verdict.path)).ok();
    for (number, hash) in wanted {
        let replayed = image.page(number).unwrap_or(&[0; PAGE]);
        if PageHash::of(replayed) == hash {
            continue;
        }
        let mut actual = [0; PAGE];
        let start = number * PAGE as u64;
        let read = file.as_mut().is_some_and(|file| PoolContent::read_at(file, start, &mut actual).is_ok());
        let exact = read && PageHash::of(&actual) == hash;
        let mut differing = (0..PAGE).filter(|at| !exact || replayed[*at] != actual[*at]);
        let first = differing.next().unwrap_or(0);
        verdict.differing_bytes += 1 + differing.count() as u64;
        verdict.differing_pages += 1;
        verdict.exact &= exact;
        verdict.first_difference.get_or_insert(PoolOffset(start + first as u64));
    }
    Ok(verdict)
}
