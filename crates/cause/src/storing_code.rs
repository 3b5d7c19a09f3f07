//! Which code stores have in common, as a repair would see it.

use finding::blame;
use trace::TraceReader;
use trace::event::{CodeAddr, ModuleId};

/// An instruction of the program or of a PM library. Of the C library, all code: what one call of it stores is one store of the program,
/// whichever of its instructions makes it (`memcpy` has one for each length, and four in a loop).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StoringCode {
    module: ModuleId,
    instruction: Option<u64>,
}

/// Tells code of a trace apart.
#[derive(Clone, Debug)]
pub(crate) struct StoringCodes {
    /// For each module.
    is_system: Vec<bool>,
}

impl StoringCodes {
    pub fn of(reader: &TraceReader) -> StoringCodes {
        StoringCodes { is_system: blame::system_modules(reader.tables()) }
    }

    pub fn code(&self, pc: CodeAddr) -> StoringCode {
        let is_system = self.is_system.get(pc.module.0 as usize).is_some_and(|&is_system| is_system);
        StoringCode { module: pc.module, instruction: (!is_system).then_some(pc.addr) }
    }
}
