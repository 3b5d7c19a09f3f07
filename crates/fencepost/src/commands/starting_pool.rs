//! The pool that a check starts from: `--fresh` and `--pool-from`. Changes only files that `--pm` names without wildcards.

use std::fs;
use std::io;
use std::path::Path;

/// Removes the pools, or puts a copy in the place of the only one.
pub fn prepare(pm: &[String], fresh: bool, from: Option<&Path>) -> Result<(), String> {
    let option = match (fresh, from) {
        (true, _) => "--fresh",
        (false, Some(_)) => "--pool-from",
        (false, None) => return Ok(()),
    };
    if let Some(glob) = pm.iter().find(|glob| glob.contains(['*', '?', '['])) {
        return Err(format!("{option} changes files, so --pm must name each of them: `{glob}` is a pattern"));
    }
    match (from, pm) {
        (None, pools) => pools.iter().try_for_each(|pool| {
            fs::remove_file(pool).or_else(absent).map_err(|error| format!("--fresh: cannot remove {pool}: {error}"))
        }),
        (Some(from), [pool]) => fs::copy(from, pool)
            .map(drop)
            .map_err(|error| format!("--pool-from: cannot copy {} to {pool}: {error}", from.display())),
        (Some(_), _) => Err("--pool-from needs one --pm: the pool that becomes a copy of the file".to_owned()),
    }
}

fn absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_named_are_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let (pool, image) = (path("pool"), path("image"));
        fs::write(&image, "content").unwrap();
        prepare(std::slice::from_ref(&pool), false, Some(Path::new(&image))).unwrap();
        assert_eq!(fs::read(&pool).unwrap(), b"content");
        assert!(prepare(&[path("*")], true, None).is_err());
        assert!(Path::new(&pool).exists());
        assert!(prepare(&[pool.clone(), image.clone()], false, Some(Path::new(&image))).is_err());
        prepare(std::slice::from_ref(&pool), true, None).unwrap();
        assert!(!Path::new(&pool).exists() && Path::new(&image).exists());
        prepare(&[pool], true, None).unwrap();
        prepare(&[path("*")], false, None).unwrap();
    }
}
