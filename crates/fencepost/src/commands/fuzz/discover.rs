//! What a campaign must know about a program before it begins: its pools and their content.

use std::collections::HashSet;
use std::env;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fuzz::execute::Subject;
use fuzz::image::Image;
use fuzz::recorded::{RecordedCase, record_case};
use recover::pages::Content;
use trace::event::PoolId;

/// The pools of a program.
#[derive(Debug)]
pub struct Pools {
    pub paths: Vec<PathBuf>,
    /// What they held before the program ran; none: they were not there.
    pub root: Image,
}

/// Files that are there before the program runs for the first time.
#[derive(Debug)]
pub struct There(HashSet<(u64, u64)>);

impl There {
    /// Beside everything that the command names, and where it runs.
    pub fn look(subject: &Subject) -> There {
        let mut folders: HashSet<PathBuf> = HashSet::from([subject.command.dir.clone()]);
        for word in &subject.command.args {
            let path = subject.command.dir.join(word);
            folders.extend(path.parent().map(Path::to_owned));
            folders.insert(path);
        }
        let entries = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        There(entries.filter_map(|entry| entry.metadata().ok()).map(|file| (file.dev(), file.ino())).collect())
    }

    fn has(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|file| self.0.contains(&(file.dev(), file.ino())))
    }
}

/// Runs the program once with this input, where the user has its pools, and puts them back as they were.
pub fn pools(subject: &Subject, input: &[u8], pm: &[String]) -> Result<(Pools, RecordedCase), String> {
    let there = There::look(subject);
    let recorded = record_case(subject, input, &Image::none(0), Vec::new()).map_err(|error| error.to_string())?;
    let matches =
        |path: &Path| pm.is_empty() || pm.iter().any(|glob| finding::glob::matches(glob, &path.to_string_lossy()));
    let tables = recorded.reader.tables();
    let (mut paths, mut contents) = (Vec::new(), Vec::new());
    for (number, pool) in tables.pools.iter().enumerate() {
        let path = env::current_dir().unwrap_or_default().join(&pool.info.path);
        if !matches(&path) {
            continue;
        }
        if there.has(&path) {
            let mut content = Content::zeros(pool.info.len);
            let put = |number: u64, page: &[u8]| content.put(number * page.len() as u64, page);
            let read = recorded.reader.initial_pages(PoolId(number as u32), put);
            read.map_err(|error| error.to_string())?;
            let failed = |error| format!("cannot put {} back as it was: {error}", path.display());
            File::create(&path).and_then(|file| content.write(&file)).map_err(failed)?;
            contents.push(Some(content));
        } else {
            // It was not there before, and is not there for the first case.
            let _ = fs::remove_file(&path);
            contents.push(None);
        }
        paths.push(path);
    }
    Ok((Pools { paths, root: Image::new(contents) }, recorded))
}
