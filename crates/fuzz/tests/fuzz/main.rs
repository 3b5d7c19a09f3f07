//! Coverage and stopped runs against references.

mod coverage;
mod stopping;
