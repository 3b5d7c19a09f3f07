//! Conditions beside a trace: one JSON document with tables of places and instructions.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::conditions::{Conditions, Rows};

/// Changes whenever the meaning of the file does.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Document<R> {
    fencepost_conditions: u32,
    rows: R,
}

#[derive(Deserialize)]
struct Head {
    fencepost_conditions: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum ConditionsError {
    #[error(
        "{} does not exist: the strategy `inferred` needs the conditions of the run; record it again with `fencepost record --infer`",
        .0.display()
    )]
    Missing(PathBuf),
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} is not a file of conditions, or was cut off ({why}); record again with `fencepost record --infer`", .path.display())]
    Malformed { path: PathBuf, why: String },
    #[error("{} has conditions of version {found}, and this fencepost reads version {VERSION}; record again", .path.display())]
    Version { path: PathBuf, found: u32 },
}

/// Where the conditions of a trace are kept.
pub fn beside(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace);
    name.push(".conditions");
    PathBuf::from(name)
}

impl Conditions {
    pub fn save(&self, path: &Path) -> Result<(), ConditionsError> {
        let failed = |source: std::io::Error| ConditionsError::Io { path: path.to_owned(), source };
        let mut file = BufWriter::new(File::create(path).map_err(failed)?);
        let document = Document { fencepost_conditions: VERSION, rows: self.rows() };
        serde_json::to_writer(&mut file, &document).map_err(|error| failed(error.into()))?;
        file.flush().map_err(failed)
    }

    pub fn load(path: &Path) -> Result<Conditions, ConditionsError> {
        let file = File::open(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => ConditionsError::Missing(path.to_owned()),
            _ => ConditionsError::Io { path: path.to_owned(), source },
        })?;
        let malformed =
            |why: &dyn std::fmt::Display| ConditionsError::Malformed { path: path.to_owned(), why: why.to_string() };
        let mut text = String::new();
        BufReader::new(file).read_to_string(&mut text).map_err(|error| malformed(&error))?;
        let head: Head = serde_json::from_str(&text).map_err(|error| malformed(&error))?;
        if head.fencepost_conditions != VERSION {
            return Err(ConditionsError::Version { path: path.to_owned(), found: head.fencepost_conditions });
        }
        let document: Document<Rows> = serde_json::from_str(&text).map_err(|error| malformed(&error))?;
        Conditions::from_rows(document.rows).ok_or_else(|| malformed(&"a number is out of range"))
    }
}

#[cfg(test)]
mod tests {
    use trace::event::{CodeAddr, ModuleId, PoolId};

    use super::*;
    use crate::conditions::{ConditionRule, Counts, Guardian, Order, Span};

    #[test]
    fn what_is_saved_is_read_again() {
        let span = |offset| Span { pool: PoolId(1), offset, len: 8 };
        let at = |addr| CodeAddr { module: ModuleId(2), addr };
        let order = Order { rule: ConditionRule::Po3, first: span(0), second: span(64), evidence: (at(1), at(2)) };
        let guardian = Guardian { span: span(64), evidence: (at(2), at(1)) };
        let counts = Counts { instructions: 7, ..Counts::default() };
        let conditions = Conditions::new(vec![order], vec![guardian], counts);
        let folder = tempfile::tempdir().unwrap();
        let path = beside(&folder.path().join("a.fptrace"));
        assert!(path.ends_with("a.fptrace.conditions"));
        assert!(matches!(Conditions::load(&path), Err(ConditionsError::Missing(_))));
        conditions.save(&path).unwrap();
        let read = Conditions::load(&path).unwrap();
        assert_eq!(read.rows(), conditions.rows());
        assert_eq!(read.orders().collect::<Vec<_>>(), [order]);
        assert_eq!(read.guardians().collect::<Vec<_>>(), [guardian]);
        assert_eq!(read.counts(), counts);
    }

    #[test]
    fn other_files_are_refused_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c");
        std::fs::write(&path, "{}").unwrap();
        assert!(matches!(Conditions::load(&path), Err(ConditionsError::Malformed { .. })));
        std::fs::write(&path, "{\"fencepost_conditions\": 99}").unwrap();
        assert!(matches!(Conditions::load(&path), Err(ConditionsError::Version { found: 99, .. })));
        let wrong = r#"{"fencepost_conditions":1,"rows":{"spans":[],"code":[],"orders":[[0,1,"po1",0,0]],"guardians":[],
            "counts":{"instructions":0,"pm_loads":0,"pm_stores":0,"sets_cut":0,"dropped":0,"unbreakable":0}}}"#;
        std::fs::write(&path, wrong).unwrap();
        assert!(Conditions::load(&path).unwrap_err().to_string().contains("out of range"));
    }
}
