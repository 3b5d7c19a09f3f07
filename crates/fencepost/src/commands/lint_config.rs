//! The `[lint]` part of `fencepost.toml`.
//!
//! ```toml
//! [lint]
//! fail-on = "performance"
//! suppressions = "suppressions.toml"
//! rules = ["rules/locks.rhai"]
//! libraries = ["libmypm.so*"]
//!
//! [lint.severity]
//! FP0301 = "allow"
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// What the file says; paths in it are relative to it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct LintConfig {
    pub fail_on: Option<String>,
    pub suppressions: Option<PathBuf>,
    pub rules: Vec<PathBuf>,
    pub libraries: Vec<String>,
    pub severity: BTreeMap<String, String>,
    /// As `--set`.
    pub set: Vec<String>,
}

/// Other parts of the file belong to other commands.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    lint: LintConfig,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Parse { path: PathBuf, source: Box<toml::de::Error> },
}

impl LintConfig {
    /// Reads `given`, or `fencepost.toml` in the current directory if there is one.
    pub fn read(given: Option<&Path>) -> Result<LintConfig, ConfigError> {
        let path = given.unwrap_or(Path::new("fencepost.toml"));
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if given.is_none() && error.kind() == io::ErrorKind::NotFound => {
                return Ok(LintConfig::default());
            }
            Err(source) => return Err(ConfigError::Read { path: path.to_owned(), source }),
        };
        let file: File = match toml::from_str(&text) {
            Ok(file) => file,
            Err(source) => return Err(ConfigError::Parse { path: path.to_owned(), source: Box::new(source) }),
        };
        let mut config = file.lint;
        let folder = path.parent().unwrap_or(Path::new(""));
        config.suppressions = config.suppressions.map(|file| folder.join(file));
        config.rules = config.rules.iter().map(|file| folder.join(file)).collect();
        Ok(config)
    }
}
