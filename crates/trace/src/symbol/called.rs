//! Which function was called where the one that runs has no name.
//!
//! A library that is stripped names the functions that it exports, and no others. An exported function often ends with a jump to an inner
//! one (`pthread_mutex_unlock` of glibc does), which then runs in its frame. That frame was made by a call, the call instruction
//! before its return address says of what, and that has a name: it is imported. For whoever asks what was done there, this is the better
//! answer than the inner function's name would be.
//!
//! The called function may itself have ended with a jump into another library (libpmemobj's `os_mutex_unlock`): the jumps out of it are
//! followed. A name is given only if all that can be reached so in the library that runs has this one name. Calls are not followed: what is
//! called has a frame of its own. Jumps through registers are not seen: a function that has one into the library as well as one that is seen
//! would wrongly give the name of the latter.

use std::collections::BTreeSet;
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::event::{CodeAddr, ModuleId};
use crate::tables::Tables;

use super::code::{Code, Goal};
use super::debug_file;

/// More functions than this are not followed.
const MOST: usize = 64;

/// The code of modules, loaded when first asked for.
#[derive(Default)]
pub(super) struct Called {
    modules: FxHashMap<ModuleId, Code>,
    known: FxHashMap<(ModuleId, CodeAddr), Option<String>>,
}

impl Called {
    /// The exported function of `module` in whose frame code runs that returns to `return_to`.
    pub(super) fn name(&mut self, module: ModuleId, return_to: CodeAddr, tables: &Tables) -> Option<String> {
        if let Some(name) = self.known.get(&(module, return_to)) {
            return name.clone();
        }
        let name = self.find(module, return_to, tables);
        self.known.insert((module, return_to), name.clone());
        name
    }

    fn find(&mut self, module: ModuleId, return_to: CodeAddr, tables: &Tables) -> Option<String> {
        let first = self.code(return_to.module, tables).called_before(return_to.addr)?;
        let mut names = BTreeSet::new();
        let mut next = vec![(return_to.module, first)];
        let mut seen = FxHashSet::default();
        while let Some((from, goal)) = next.pop() {
            if !seen.insert((from, goal.clone())) {
                continue;
            }
            if seen.len() > MOST {
                return None;
            }
            match goal {
                // An inner function that was called as such: what runs may be itself, or what it jumps to.
                Goal::Here(address) if from == module => {
                    names.insert(self.code(from, tables).exported_as(address)?.clone());
                }
                Goal::Here(address) => {
                    let tail_calls = self.code(from, tables).tail_calls(address);
                    next.extend(tail_calls.into_iter().map(|goal| (from, goal)));
                }
                Goal::Named(name) if self.code(module, tables).exports(&name) => drop(names.insert(name)),
                Goal::Named(name) => next.extend(self.exporter(&name, tables)),
            }
        }
        if names.len() == 1 { names.pop_first() } else { None }
    }

    /// Where the name leads: to the first module that exports it, as for the dynamic linker.
    fn exporter(&mut self, name: &str, tables: &Tables) -> Option<(ModuleId, Goal)> {
        let mut modules = (0..tables.modules.len() as u32).map(ModuleId);
        let module = modules.find(|module| self.code(*module, tables).exports(name))?;
        let address = self.code(module, tables).exported_at(name)?;
        Some((module, Goal::Here(address)))
    }

    fn code(&mut self, module: ModuleId, tables: &Tables) -> &Code {
        self.modules.entry(module).or_insert_with(|| {
            let files = debug_file::find(tables.module(module), &[]).unwrap_or_default();
            files.binary.as_deref().map(Path::new).map(Code::load).unwrap_or_default()
        })
    }
}
