//! The namespaces of a run.

use std::fmt;

/// What a run does not share with the rest of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Namespaces {
    /// Needed by ordinary users for the others.
    pub user: bool,
    pub mount: bool,
    /// The kernel ends all processes of the run together, and process numbers are the same in every run.
    pub pid: bool,
}

impl Namespaces {
    pub const NONE: Namespaces = Namespaces { user: false, mount: false, pid: false };

    /// All that this user needs for private mounts and process numbers. Root does without a user namespace, so that all owners of
    /// files stay what they are.
    pub fn private() -> Namespaces {
        // SAFETY: cannot fail, no side effects.
        let root = unsafe { libc::geteuid() } == 0;
        Namespaces { user: !root, mount: true, pid: true }
    }

    /// For `clone`.
    pub(crate) fn flags(self) -> i32 {
        [(self.user, libc::CLONE_NEWUSER), (self.mount, libc::CLONE_NEWNS), (self.pid, libc::CLONE_NEWPID)]
            .into_iter()
            .filter_map(|(wanted, flag)| wanted.then_some(flag))
            .sum()
    }

    /// Those with private mounts, the best first.
    pub fn candidates() -> impl Iterator<Item = Namespaces> {
        let users = if Namespaces::private().user { [true].as_slice() } else { &[false, true] };
        [true, false].into_iter().flat_map(|pid| users.iter().map(move |&user| Namespaces { user, mount: true, pid }))
    }
}

impl fmt::Display for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.user, "user"), (self.mount, "mount"), (self.pid, "PID")];
        let names: Vec<&str> = names.into_iter().filter_map(|(there, name)| there.then_some(name)).collect();
        if names.is_empty() { f.write_str("no namespaces") } else { write!(f, "{} namespaces", names.join(", ")) }
    }
}
