//! A tiny program: events in order, each with the address of its instruction, which is how findings name it.

use finding::blame::Libraries;
use finding::finding::Finding;
use finding::severity::{Level, Severity};
use lint::lint::{LintError, Options, Pass};
use lint::registry::Settings;
use lint::rule::Rule;
use persistency::model::{Fences, ModelKind};
use trace::event::*;
use trace::{CodeModule, ContextNode, Pool, Tables};

pub struct Program {
    events: Vec<(ThreadId, u64, Owned)>,
    thread: ThreadId,
    pub watches: Vec<&'static str>,
    pub model: ModelKind,
    pub fences: Fences,
    pub settings: Settings,
    pub scripts: Vec<Box<dyn Rule>>,
}

enum Owned {
    Store(u64, StoreKind, Vec<u8>),
    Rmw(u64, Vec<u8>),
    Kind(EventKind<'static>),
}

/// Instructions from here on are those of libpmemobj.
pub const LIBRARY: u64 = 0x1000;

/// The pool's file.
pub const POOL: &str = "/pm/pool";

/// Where the pool is mapped.
pub const BASE: u64 = 0x7000_0000_0000;

pub fn place(offset: u64) -> Place {
    Place { pool: PoolId(0), offset: PoolOffset(offset) }
}

impl Program {
    pub fn new() -> Program {
        let mut program = Program {
            events: Vec::new(),
            thread: ThreadId(0),
            watches: Vec::new(),
            model: ModelKind::X86Adr,
            fences: Fences::All,
            settings: Settings::default(),
            scripts: Vec::new(),
        };
        program.kind(0, EventKind::Map { place: place(0), len: 1 << 20, address: BASE });
        program
    }

    /// Only this rule, whatever its default.
    pub fn with(rule: &str, severity: Severity) -> Program {
        let mut program = Program::new();
        program.settings.level(rule, Level::Report(severity));
        program
    }

    /// What follows is done by this thread.
    pub fn thread(&mut self, number: u32) -> &mut Program {
        self.thread = ThreadId(number);
        self
    }

    pub fn kind(&mut self, pc: u64, kind: EventKind<'static>) -> &mut Program {
        self.events.push((self.thread, pc, Owned::Kind(kind)));
        self
    }

    /// Eight bytes through the cache.
    pub fn store(&mut self, pc: u64, offset: u64) -> &mut Program {
        self.bytes(pc, offset, &[1; 8])
    }

    pub fn bytes(&mut self, pc: u64, offset: u64, bytes: &[u8]) -> &mut Program {
        self.events.push((self.thread, pc, Owned::Store(offset, StoreKind::Plain, bytes.to_vec())));
        self
    }

    /// Eight bytes past the cache.
    pub fn stream(&mut self, pc: u64, offset: u64) -> &mut Program {
        self.events.push((self.thread, pc, Owned::Store(offset, StoreKind::NonTemporal, vec![1; 8])));
        self
    }

    pub fn rmw(&mut self, pc: u64, offset: u64) -> &mut Program {
        self.events.push((self.thread, pc, Owned::Rmw(offset, vec![1; 8])));
        self
    }

    pub fn clwb(&mut self, pc: u64, offset: u64) -> &mut Program {
        self.kind(pc, EventKind::Flush { kind: FlushKind::Clwb, target: FlushTarget::Pool(place(offset)) })
    }

    pub fn clflush(&mut self, pc: u64, offset: u64) -> &mut Program {
        self.kind(pc, EventKind::Flush { kind: FlushKind::Clflush, target: FlushTarget::Pool(place(offset)) })
    }

    pub fn sfence(&mut self, pc: u64) -> &mut Program {
        self.kind(pc, EventKind::Fence { kind: FenceKind::Sfence })
    }

    pub fn persist(&mut self, pc: u64, offset: u64) -> &mut Program {
        self.clwb(pc, offset).sfence(pc + 1)
    }

    /// A call of a watched function.
    pub fn call(&mut self, pc: u64, symbol: &'static str, args: &[u64]) -> &mut Program {
        let watch = self.watch(symbol);
        let mut six = [0; 6];
        six[..args.len()].copy_from_slice(args);
        self.kind(pc, EventKind::Call { watch, args: six })
    }

    pub fn returns(&mut self, symbol: &'static str, value: u64) -> &mut Program {
        let watch = self.watch(symbol);
        self.kind(0, EventKind::Return { watch, value })
    }

    fn watch(&mut self, symbol: &'static str) -> WatchId {
        let at = self.watches.iter().position(|known| *known == symbol).unwrap_or_else(|| {
            self.watches.push(symbol);
            self.watches.len() - 1
        });
        WatchId(at as u32)
    }

    /// Whether stores that are lost at the end would be reported.
    pub fn reports_losses(&mut self) -> bool {
        self.passed(|pass| Ok(pass.reports_losses())).expect("no rule fails")
    }

    /// What is found: rule and instruction, in order.
    pub fn found(&mut self) -> Vec<(String, u64)> {
        self.try_found().expect("no rule fails")
    }

    pub fn try_found(&mut self) -> Result<Vec<(String, u64)>, LintError> {
        self.passed(|pass| {
            let lost = pass.lost();
            pass.judge(&lost)?;
            let mut found: Vec<_> = pass.sighted().into_iter().map(|(rule, site, _)| (rule, site.pc.addr)).collect();
            found.dedup();
            Ok(found)
        })
    }

    /// What a report would say.
    pub fn findings(&mut self) -> Vec<Finding> {
        let found = self.passed(|pass| {
            let lost = pass.lost();
            pass.judge(&lost)?;
            Ok(pass.findings(&Libraries::default()))
        });
        found.expect("no rule fails")
    }

    fn passed<T>(&mut self, end: impl FnOnce(&mut Pass<'_>) -> Result<T, LintError>) -> Result<T, LintError> {
        let library = CodeModule { path: "/usr/lib/libpmemobj.so.1".to_owned(), ..CodeModule::default() };
        let mut pool = Pool::default();
        POOL.clone_into(&mut pool.info.path);
        let tables = Tables {
            modules: vec![CodeModule::default(), library],
            contexts: vec![ContextNode::default()],
            pools: vec![pool],
            watches: self.watches.iter().map(|symbol| (*symbol).to_owned()).collect(),
            ..Tables::default()
        };
        let rules = self.settings.activate(std::mem::take(&mut self.scripts)).expect("known rules");
        let options = Options { model: self.model, fences: self.fences, libraries: Libraries::default() };
        let mut pass = Pass::new(&tables, rules, &options);
        for (number, (thread, pc, owned)) in self.events.iter().enumerate() {
            let kind = match owned {
                Owned::Store(offset, kind, bytes) => EventKind::Store { place: place(*offset), kind: *kind, bytes },
                Owned::Rmw(offset, bytes) => EventKind::Rmw { place: place(*offset), old: bytes, new: bytes },
                Owned::Kind(kind) => kind.clone(),
            };
            let pc = CodeAddr { module: ModuleId(u32::from(*pc >= LIBRARY)), addr: *pc };
            pass.take(EventId(number as u64), &Event { thread: *thread, context: ContextId(0), pc, kind })?;
        }
        end(&mut pass)
    }

    #[track_caller]
    pub fn finds(&mut self, wanted: &[(&str, u64)]) {
        let wanted: Vec<_> = wanted.iter().map(|(rule, pc)| ((*rule).to_owned(), *pc)).collect();
        assert_eq!(self.found(), wanted);
    }

    #[track_caller]
    pub fn is_clean(&mut self) {
        self.finds(&[]);
    }
}
