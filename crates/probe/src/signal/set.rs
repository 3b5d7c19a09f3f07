//! Sets of signals.

use super::abi::{SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGSTOP, SIGTRAP};

/// A signal mask as the kernel counts it: signal n is bit n - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SignalSet(pub u64);

impl SignalSet {
    pub const EMPTY: SignalSet = SignalSet(0);
    pub const ALL: SignalSet = SignalSet(!0);
    /// Raised by instructions; the engine lives from them, so the kernel must never have them blocked.
    pub const FAULTS: SignalSet = SignalSet(bit(SIGILL) | bit(SIGTRAP) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGSEGV));
    const UNBLOCKABLE: u64 = bit(SIGKILL) | bit(SIGSTOP);

    pub const fn has(self, signal: i32) -> bool {
        self.0 & bit(signal) != 0
    }
    #[must_use]
    pub const fn with(self, signal: i32) -> SignalSet {
        SignalSet(self.0 | bit(signal))
    }
    #[must_use]
    pub const fn without(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 & !other.0)
    }
    #[must_use]
    pub const fn and(self, other: SignalSet) -> SignalSet {
        SignalSet(self.0 | other.0)
    }
    /// As the kernel takes it from a program: two signals cannot be blocked.
    #[must_use]
    pub const fn blockable(self) -> SignalSet {
        SignalSet(self.0 & !Self::UNBLOCKABLE)
    }
    /// What the kernel is told when the program's mask is this.
    pub const fn real(self) -> SignalSet {
        self.without(Self::FAULTS)
    }
}

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Is this one of the signals that the engine always catches itself?
pub fn is_fault(signal: i32) -> bool {
    SignalSet::FAULTS.has(signal)
}
