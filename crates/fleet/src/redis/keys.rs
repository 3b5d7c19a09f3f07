//! The keys of a campaign. The braces keep them on one node of a cluster.

use super::address::Address;

/// The consumer group of the stream of units.
pub(super) const GROUP: &str = "workers";

/// How long a campaign that nobody touches is kept, in seconds.
pub(super) const KEPT: i64 = 14 * 24 * 3600;

#[derive(Clone, Debug)]
pub(super) struct Keys(String);

impl Keys {
    pub fn of(address: &Address) -> Keys {
        Keys(format!("fencepost:{{{}}}:", address.campaign))
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.0)
    }

    /// A hash: what the campaign is and how it stands. See [`fields`].
    pub fn campaign(&self) -> String {
        self.key("campaign")
    }

    /// Exists as long as the coordinator lives.
    pub fn coordinator(&self) -> String {
        self.key("coordinator")
    }

    /// The stream of units that are not done.
    pub fn units(&self) -> String {
        self.key("units")
    }

    /// Results by unit.
    pub fn done(&self) -> String {
        self.key("done")
    }

    /// Results of units that were stopped, by unit.
    pub fn partial(&self) -> String {
        self.key("partial")
    }

    /// What other workers can learn from a unit, by unit.
    pub fn exchanged(&self) -> String {
        self.key("exchanged")
    }

    /// A stream of the units that have a fate, as they get it.
    pub fn news(&self) -> String {
        self.key("news")
    }

    /// Units that nobody can perform, and why.
    pub fn aside(&self) -> String {
        self.key("aside")
    }

    /// What workers said when they could not perform a unit: a list per unit.
    pub fn failures(&self, unit: &str) -> String {
        self.key(&format!("failures:{unit}"))
    }

    /// What workers say of themselves, by worker.
    pub fn workers(&self) -> String {
        self.key("workers")
    }

    /// When they said it.
    pub fn beats(&self) -> String {
        self.key("beats")
    }

    /// Why workers went away, by worker.
    pub fn refusals(&self) -> String {
        self.key("refusals")
    }

    /// The final documents, by name.
    pub fn report(&self) -> String {
        self.key("report")
    }

    pub fn blob(&self, id: &str) -> String {
        self.key(&format!("blob:{id}"))
    }

    /// All of them.
    pub fn pattern(&self) -> String {
        let mut pattern = String::new();
        for character in self.0.chars() {
            if "*?[]\\".contains(character) {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        pattern + "*"
    }
}

/// Fields of the hash of the campaign.
pub(super) mod fields {
    pub const STATE: &str = "state";
    pub const VERSION: &str = "version";
    pub const KIND: &str = "kind";
    /// The blob that describes the work.
    pub const JOB: &str = "job";
    /// What the user asked for, hashed: the same command may go on with it.
    pub const REQUEST: &str = "request";
    /// In milliseconds.
    pub const LEASE: &str = "lease";
    /// Units of older epochs are not wanted any more.
    pub const EPOCH: &str = "epoch";
    /// Units so far, of all epochs.
    pub const UNITS: &str = "units";
    pub const BEGUN: &str = "begun";
    /// The exit code, once there is one.
    pub const EXIT: &str = "exit";
}
