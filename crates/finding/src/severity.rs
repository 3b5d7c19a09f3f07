//! How bad a finding is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// From harmless to harmful: `--fail-on` takes this and everything above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Good to know.
    Note,
    /// Suspicious.
    Warning,
    /// Certain waste, but not an error.
    Performance,
    /// Breaks durability or consistency.
    Error,
}

impl Severity {
    pub const ALL: [Severity; 4] = [Severity::Error, Severity::Performance, Severity::Warning, Severity::Note];

    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Performance => "performance",
            Severity::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no severity `{0}`; it is one of error, performance, warning, note, or allow to switch the rule off")]
pub struct UnknownSeverity(pub String);

impl FromStr for Severity {
    type Err = UnknownSeverity;

    fn from_str(name: &str) -> Result<Self, UnknownSeverity> {
        let known = Severity::ALL.into_iter().find(|severity| severity.name() == name);
        known.ok_or_else(|| UnknownSeverity(name.to_owned()))
    }
}

/// What a rule's findings count as: a severity, or nothing at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Switched off.
    Allow,
    Report(Severity),
}

impl FromStr for Level {
    type Err = UnknownSeverity;

    fn from_str(name: &str) -> Result<Self, UnknownSeverity> {
        if name == "allow" { Ok(Level::Allow) } else { name.parse().map(Level::Report) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_errors_are_worst() {
        for severity in Severity::ALL {
            assert_eq!(severity.name().parse(), Ok(severity));
        }
        assert_eq!("allow".parse(), Ok(Level::Allow));
        assert!(Severity::Error > Severity::Performance && Severity::Performance > Severity::Warning);
        assert!("bad".parse::<Level>().unwrap_err().to_string().contains("`bad`"));
    }
}
