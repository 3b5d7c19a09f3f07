//! What can be wrong with a script.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read the rule {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {what}", path.display())]
    Wrong { path: PathBuf, what: String },
    #[error(
        "{}: the script does not say what it is; it needs \
         fn rule() {{ #{{ id: \"X0001\", title: \"...\", severity: \"warning\" }} }}",
        path.display()
    )]
    NoRule { path: PathBuf },
    #[error("{}: the map that rule() returns {what}", path.display())]
    BadRule { path: PathBuf, what: String },
    #[error(
        "{}: there is no event called `{name}`; a rule can have the functions {}",
        path.display(),
        super::view::HANDLERS.join(", ")
    )]
    UnknownHandler { path: PathBuf, name: String },
}
