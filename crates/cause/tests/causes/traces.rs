//! Small traces of one pool, step by step.

use trace::*;

/// What happens, and where in the program: sites are numbers.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    site: u64,
    /// Where the program calls the C library, if the instruction is one of the library's.
    called_at: Option<u64>,
    /// The call that led there in the program itself.
    reached_by: Option<u64>,
    /// By an instruction of a PM library, for itself.
    by_pm_library: bool,
    thread: u32,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// Eight bytes at the beginning of a line.
    Store(u64, u64),
    Stream(u64, u64),
    /// A store that begins in one line and ends in the next.
    Straddle(u64),
    Locked(u64),
    Flush(FlushKind, u64),
    Fence,
    Msync(u64),
    Fsync,
}

impl Step {
    /// The same by another thread.
    pub fn by(self, thread: u32) -> Step {
        Step { thread, ..self }
    }

    /// The same by an instruction of libpmemobj.
    pub fn by_pm_library(self) -> Step {
        Step { by_pm_library: true, ..self }
    }

    pub fn site(self) -> u64 {
        self.site
    }

    /// The same by an instruction of the C library that this site of the program calls.
    pub fn called_at(self, site: u64) -> Step {
        Step { called_at: Some(site), ..self }
    }

    /// The same on the path of this call.
    pub fn reached_by(self, call: u64) -> Step {
        Step { reached_by: Some(call), ..self }
    }
}

fn step(site: u64, what: What) -> Step {
    Step { site, called_at: None, reached_by: None, by_pm_library: false, thread: 0, what }
}

pub fn store(site: u64, line: u64, value: u64) -> Step {
    step(site, What::Store(line, value))
}

pub fn stream(site: u64, line: u64, value: u64) -> Step {
    step(site, What::Stream(line, value))
}

pub fn straddle(site: u64, line: u64) -> Step {
    step(site, What::Straddle(line))
}

pub fn locked(site: u64, line: u64) -> Step {
    step(site, What::Locked(line))
}

pub fn clwb(site: u64, line: u64) -> Step {
    step(site, What::Flush(FlushKind::Clwb, line))
}

pub fn clflush(site: u64, line: u64) -> Step {
    step(site, What::Flush(FlushKind::Clflush, line))
}

pub fn fence(site: u64) -> Step {
    step(site, What::Fence)
}

pub fn msync(site: u64, line: u64) -> Step {
    step(site, What::Msync(line))
}

pub fn fsync(site: u64) -> Step {
    step(site, What::Fsync)
}

/// Code of the site with this number.
pub fn pc(site: u64) -> u64 {
    0x100 + site
}

const POOL_BYTES: u64 = 4096;

/// A trace in a folder of its own.
#[derive(Debug)]
pub struct Recorded {
    pub reader: TraceReader,
    pub folder: tempfile::TempDir,
}

/// A recording of these steps; their numbers are those of the events. The pool is all zero before.
pub fn record(steps: &[Step]) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.fptrace");
    let mut writer = TraceWriter::create(&path, Meta::default()).unwrap();
    let info = PoolInfo { path: "/pmem/pool".into(), len: POOL_BYTES };
    writer.pool(info, &mut &[0; POOL_BYTES as usize][..]).unwrap();
    let [program, library, pm_library] = ["program", "libc.so.6", "libpmemobj.so.1"]
        .map(|path| writer.module(CodeModule { path: path.into(), build_id: None, kind: ModuleKind::Elf }));
    for step in steps {
        let at = |line: u64| Place { pool: PoolId(0), offset: PoolOffset(line * 64) };
        let mut bytes = [0; 8];
        let kind = match step.what {
            What::Store(line, value) => {
                bytes = value.to_le_bytes();
                EventKind::Store { place: at(line), kind: StoreKind::Plain, bytes: &bytes }
            }
            What::Stream(line, value) => {
                bytes = value.to_le_bytes();
                EventKind::Store { place: at(line), kind: StoreKind::NonTemporal, bytes: &bytes }
            }
            What::Straddle(line) => {
                bytes.fill(1);
                let place = Place { offset: PoolOffset(line * 64 + 60), ..at(line) };
                EventKind::Store { place, kind: StoreKind::Plain, bytes: &bytes }
            }
            What::Locked(line) => EventKind::Rmw { place: at(line), old: &bytes, new: &[1; 8] },
            What::Flush(kind, line) => EventKind::Flush { kind, target: FlushTarget::Pool(at(line)) },
            What::Fence => EventKind::Fence { kind: FenceKind::Sfence },
            What::Msync(line) => EventKind::Msync { place: at(line), len: 64 },
            What::Fsync => EventKind::Fsync { pool: PoolId(0), data_only: false },
        };
        let mut call = |site| writer.context(ContextId(0), CodeAddr { module: program, addr: pc(site) }, false);
        let (module, context) = match (step.called_at, step.reached_by) {
            (Some(site), _) => (library, call(site)),
            (None, None) if step.by_pm_library => (pm_library, ContextId(0)),
            (None, Some(site)) => (program, call(site)),
            (None, None) => (program, ContextId(0)),
        };
        let pc = CodeAddr { module, addr: pc(step.site) };
        writer.push(&Event { thread: ThreadId(step.thread), context, pc, kind }).unwrap();
    }
    writer.finish(&mut [], Outcome::Ended(ExitStatus::Code(0))).unwrap();
    Recorded { reader: TraceReader::open(&path).unwrap(), folder }
}
