//! What is counted, as a table.

use std::fmt;

/// Of one program, or of all.
#[derive(Clone, Debug, Default)]
pub struct Row {
    pub name: String,
    pub seeded: usize,
    pub executed: usize,
    /// Of the executed ones.
    pub found: usize,
    /// Further findings about bugs that have one.
    pub more: usize,
    /// Findings about none of the bugs.
    pub strange: usize,
    /// Findings whose failure is another bug's, where that can be told.
    pub foreign: usize,
    pub recoveries: u64,
    /// What is missing.
    pub missed: Vec<String>,
}

impl Row {
    pub const HEAD: &str = "program                 seeded executed found  more strange foreign recoveries  missed";

    pub fn add(&mut self, other: &Row) {
        self.seeded += other.seeded;
        self.executed += other.executed;
        self.found += other.found;
        self.more += other.more;
        self.strange += other.strange;
        self.foreign += other.foreign;
        self.recoveries += other.recoveries;
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { name, seeded, executed, found, more, strange, foreign, recoveries, missed } = self;
        let missed = missed.join(" ");
        write!(
            f,
            "{name:<23} {seeded:>6} {executed:>8} {found:>5} {more:>5} {strange:>7} {foreign:>7} {recoveries:>10}  {missed}"
        )
    }
}
