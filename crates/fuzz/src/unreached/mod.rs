//! PM instructions that no case of a campaign has executed.
//!
//! Which instructions those are is known without running anything: flushes, fences and non-temporal stores in functions that flush, and direct
//! calls that lead to such functions ([`scan`]). Plain stores look like any others; the calls and flushes behind them tell of them. What was
//! executed is read from recordings of the cases with new PM transitions: a PM instruction that runs for the first time is a new
//! transition. An instruction counts as executed when it reached a pool; calls through pointers are not known.

pub mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use trace::ModuleKind;
use trace::TraceReader;
use trace::event::CodeAddr;

use scan::{Callee, PmInstruction, Scan};

/// Addresses in files that cases have executed.
#[derive(Clone, Debug, Default)]
pub struct Executed {
    /// By path: instructions of PM events, and where their callers return to.
    pub instructions: BTreeMap<String, FxHashSet<u64>>,
    pub returns: BTreeMap<String, FxHashSet<u64>>,
}

impl Executed {
    /// Takes in what a recording has executed.
    pub fn add(&mut self, reader: &TraceReader) -> Result<(), trace::ReadError> {
        let tables = reader.tables();
        for module in tables.modules.iter().filter(|module| module.kind == ModuleKind::Elf) {
            self.instructions.entry(module.path.clone()).or_default();
        }
        let mut contexts = FxHashSet::default();
        let mut places: FxHashSet<CodeAddr> = FxHashSet::default();
        let mut events = reader.events();
        while let Some(event) = events.next()? {
            contexts.insert(event.context);
            places.insert(event.pc);
        }
        for place in places {
            let path = &tables.module(place.module).path;
            self.instructions.entry(path.clone()).or_default().insert(place.addr);
        }
        for context in contexts {
            for place in tables.call_path(context) {
                let path = &tables.module(place.module).path;
                self.returns.entry(path.clone()).or_default().insert(place.addr);
            }
        }
        Ok(())
    }
}

/// An instruction that no case has executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    pub address: u64,
    pub kind: PmInstruction,
}

/// One file.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub path: String,
    /// PM instructions, and those that were executed.
    pub all: usize,
    pub executed: usize,
    pub unreached: Vec<Site>,
}

/// Of all files that the cases had mapped.
pub fn unreached(executed: &Executed) -> io::Result<Vec<Report>> {
    let mut scans: Vec<(String, Scan)> = Vec::new();
    for path in executed.instructions.keys().filter(|path| Path::new(path).is_file()) {
        scans.push((path.clone(), Scan::of(Path::new(path))?));
    }
    let working = working_functions(&scans);
    let mut reports = Vec::new();
    for (number, (path, scan)) in scans.iter().enumerate() {
        let (none, functions) = (FxHashSet::default(), &working[number]);
        let ran = executed.instructions.get(path).unwrap_or(&none);
        let returned = executed.returns.get(path).unwrap_or(&none);
        let mut report = Report { path: path.clone(), ..Report::default() };
        let in_working = |address| scan.function_of(address).is_some_and(|function| functions.own.contains(&function));
        let own = scan.instructions.iter().filter(|(at, _)| in_working(*at));
        let own = own.map(|(at, kind)| (Site { address: *at, kind: *kind }, ran.contains(at)));
        let calls = scan.calls.iter().filter(|call| functions.leads(&call.callee));
        let calls = calls
            .map(|call| (Site { address: call.at, kind: PmInstruction::Call }, returned.contains(&call.returns_to)));
        for (site, was_executed) in own.chain(calls) {
            report.all += 1;
            match was_executed {
                true => report.executed += 1,
                false => report.unreached.push(site),
            }
        }
        report.unreached.sort_unstable();
        if report.all > 0 {
            reports.push(report);
        }
    }
    Ok(reports)
}

/// Functions of one file that work on PM.
#[derive(Debug, Default)]
struct Working {
    /// They have flushes themselves.
    own: BTreeSet<u64>,
    /// They have, or something that they call has.
    all: BTreeSet<u64>,
    /// Of other files.
    elsewhere: FxHashSet<String>,
}

impl Working {
    fn leads(&self, callee: &Callee) -> bool {
        match callee {
            Callee::Address(address) => self.all.contains(address),
            Callee::Name(name) => self.elsewhere.contains(name),
        }
    }
}

fn working_functions(scans: &[(String, Scan)]) -> Vec<Working> {
    let mut working: Vec<Working> = scans.iter().map(|_| Working::default()).collect();
    // What others may call by name; PMDK's functions flush through pointers.
    let mut names: FxHashSet<String> = FxHashSet::default();
    for (number, (_, scan)) in scans.iter().enumerate() {
        let flushes = scan.instructions.iter().filter(|(_, kind)| *kind == PmInstruction::Flush);
        working[number].own = flushes.filter_map(|(at, _)| scan.function_of(*at)).collect();
        working[number].all = working[number].own.clone();
        for (begin, (_, known_as)) in &scan.functions {
            if known_as.iter().any(|name| PM_LIBRARY.iter().any(|prefix| name.starts_with(prefix))) {
                working[number].all.insert(*begin);
            }
        }
    }
    loop {
        let mut changed = false;
        for (number, (_, scan)) in scans.iter().enumerate() {
            let of = |begin: &u64| scan.functions.get(begin).map(|(_, names)| names.clone()).unwrap_or_default();
            let exported: Vec<String> = working[number].all.iter().flat_map(of).collect();
            names.extend(exported);
        }
        for (number, (_, scan)) in scans.iter().enumerate() {
            let own: FxHashSet<String> = scan.functions.values().flat_map(|(_, names)| names.clone()).collect();
            let here = &mut working[number];
            here.elsewhere = names.iter().filter(|name| !own.contains(*name)).cloned().collect();
            let callers: FxHashMap<u64, ()> = scan
                .calls
                .iter()
                .filter(|call| here.leads(&call.callee))
                .filter_map(|call| Some((scan.function_of(call.at)?, ())))
                .collect();
            for caller in callers.into_keys() {
                changed |= here.all.insert(caller);
            }
        }
        if !changed {
            return working;
        }
    }
}

/// Functions of libraries for PM.
const PM_LIBRARY: [&str; 3] = ["pmem_", "pmemobj_", "pmem2_"];

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(functions: &[(u64, &str)], flushes: &[u64], calls: &[(u64, Callee)]) -> Scan {
        Scan {
            functions: functions.iter().map(|(at, name)| (*at, (at + 10, vec![(*name).to_owned()]))).collect(),
            instructions: flushes.iter().map(|at| (*at, PmInstruction::Flush)).collect(),
            calls: calls
                .iter()
                .map(|(at, callee)| scan::Call { at: *at, returns_to: at + 5, callee: callee.clone() })
                .collect(),
        }
    }

    #[test]
    fn callers_of_functions_that_flush_work_on_pm_across_files() {
        let library = scan(&[(0, "save"), (10, "other")], &[3], &[]);
        let calls = [(2, Callee::Address(10)), (12, Callee::Name("save".into())), (22, Callee::Name("other".into()))];
        let program = scan(&[(0, "main"), (10, "put"), (20, "idle")], &[], &calls);
        let working = working_functions(&[("lib".into(), library), ("bin".into(), program)]);
        assert_eq!(working[0].all, BTreeSet::from([0]));
        assert_eq!(working[1].all, BTreeSet::from([0, 10]), "`main` calls `put`, which calls `save`");
        assert!(working[1].own.is_empty());
    }
}
