//! Maps a source line to the addresses of its code.

use addr2line::Loader;

use crate::follow::Mapped;

/// A line of a source file, as `--reach` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    pub file: String,
    pub line: u32,
}

/// Why a place cannot be understood.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ReachError {
    #[error("`{0}`: a place is FILE:LINE, as in kv.c:123")]
    NotAPlace(String),
    #[error("`{file}:{line}`: no code of the program is there; name a line with code, and build with -g")]
    NoCode { file: String, line: u32 },
}

impl std::str::FromStr for SourceLine {
    type Err = ReachError;

    fn from_str(text: &str) -> Result<SourceLine, ReachError> {
        let wrong = || ReachError::NotAPlace(text.to_owned());
        let (file, line) = text.rsplit_once(':').ok_or_else(wrong)?;
        let line = line.parse().map_err(|_| wrong())?;
        if file.is_empty() { Err(wrong()) } else { Ok(SourceLine { file: file.to_owned(), line }) }
    }
}

/// Addresses in the process where code of the line begins.
pub fn addresses(mapped: &[Mapped], place: &SourceLine) -> Result<Vec<u64>, ReachError> {
    let mut found = Vec::new();
    for one in mapped {
        let Ok(loader) = Loader::new(&one.path) else { continue };
        let Some(bias) = crate::constant::bias(one.address, &one.path, one.offset) else { continue };
        let (low, high) = (one.address.wrapping_sub(bias), one.address.wrapping_sub(bias) + one.len);
        let Ok(ranges) = loader.find_location_range(low, high) else { continue };
        for (address, _, location) in ranges {
            let same =
                location.file.is_some_and(|file| file == place.file || file.ends_with(&format!("/{}", place.file)));
            if same && location.line == Some(place.line) {
                found.push(address.wrapping_add(bias));
            }
        }
    }
    if found.is_empty() {
        return Err(ReachError::NoCode { file: place.file.clone(), line: place.line });
    }
    Ok(found)
}
