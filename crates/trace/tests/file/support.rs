//! Events that own their bytes, arbitrary ones, and writing and reading them.

use std::path::Path;

use proptest::prelude::*;
use trace::*;

/// An [`Event`] with bytes of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Owned {
    pub thread: ThreadId,
    pub context: ContextId,
    pub pc: CodeAddr,
    pub kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Store(Place, StoreKind, Vec<u8>),
    Rmw(Place, Vec<u8>, Vec<u8>),
    KernelWrite(Place, Vec<u8>),
    FileWrite(Place, Vec<u8>),
    Exec(String),
    FileData(u32, u64, Vec<u8>),
    Symlink(u32, String),
    /// Everything that has no bytes.
    Plain(EventKind<'static>),
}

impl Owned {
    pub fn of(event: &Event<'_>) -> Owned {
        let kind = match event.kind {
            EventKind::Store { place, kind, bytes } => Kind::Store(place, kind, bytes.to_vec()),
            EventKind::Rmw { place, old, new } => Kind::Rmw(place, old.to_vec(), new.to_vec()),
            EventKind::KernelWrite { place, bytes } => Kind::KernelWrite(place, bytes.to_vec()),
            EventKind::FileWrite { place, bytes } => Kind::FileWrite(place, bytes.to_vec()),
            EventKind::Exec { path } => Kind::Exec(path.to_owned()),
            EventKind::File(FileEvent::Write { file, offset, bytes, .. }) => {
                Kind::FileData(file.0, offset, bytes.to_vec())
            }
            EventKind::File(FileEvent::Symlink { path, target }) => Kind::Symlink(path.0, target.to_owned()),
            EventKind::File(FileEvent::Rename { from, to }) => {
                Kind::Plain(EventKind::File(FileEvent::Rename { from, to }))
            }
            EventKind::File(FileEvent::Length { file, len }) => {
                Kind::Plain(EventKind::File(FileEvent::Length { file, len }))
            }
            EventKind::File(other) => panic!("no test makes {other:?}"),
            EventKind::Flush { kind, target } => Kind::Plain(EventKind::Flush { kind, target }),
            EventKind::Fence { kind } => Kind::Plain(EventKind::Fence { kind }),
            EventKind::Load { place, len } => Kind::Plain(EventKind::Load { place, len }),
            EventKind::Map { place, len, address } => Kind::Plain(EventKind::Map { place, len, address }),
            EventKind::Unmap { place, len, address } => Kind::Plain(EventKind::Unmap { place, len, address }),
            EventKind::Msync { place, len } => Kind::Plain(EventKind::Msync { place, len }),
            EventKind::Fsync { pool, data_only } => Kind::Plain(EventKind::Fsync { pool, data_only }),
            EventKind::FileZero { place, len } => Kind::Plain(EventKind::FileZero { place, len }),
            EventKind::Resize { pool, len } => Kind::Plain(EventKind::Resize { pool, len }),
            EventKind::ThreadStart => Kind::Plain(EventKind::ThreadStart),
            EventKind::ThreadEnd => Kind::Plain(EventKind::ThreadEnd),
            EventKind::ProcessStart { process, parent } => Kind::Plain(EventKind::ProcessStart { process, parent }),
            EventKind::ProcessExit { status } => Kind::Plain(EventKind::ProcessExit { status }),
            EventKind::OperationBegin { index } => Kind::Plain(EventKind::OperationBegin { index }),
            EventKind::OperationEnd { index } => Kind::Plain(EventKind::OperationEnd { index }),
            EventKind::Call { watch, args } => Kind::Plain(EventKind::Call { watch, args }),
            EventKind::Return { watch, value } => Kind::Plain(EventKind::Return { watch, value }),
        };
        Owned { thread: event.thread, context: event.context, pc: event.pc, kind }
    }

    pub fn event(&self) -> Event<'_> {
        let kind = match &self.kind {
            Kind::Store(place, kind, bytes) => EventKind::Store { place: *place, kind: *kind, bytes },
            Kind::Rmw(place, old, new) => EventKind::Rmw { place: *place, old, new },
            Kind::KernelWrite(place, bytes) => EventKind::KernelWrite { place: *place, bytes },
            Kind::FileWrite(place, bytes) => EventKind::FileWrite { place: *place, bytes },
            Kind::Exec(path) => EventKind::Exec { path },
            Kind::FileData(file, offset, bytes) => {
                let (file, offset) = (FileId(*file), *offset);
                EventKind::File(FileEvent::Write { file, offset, bytes, continues: false })
            }
            Kind::Symlink(path, target) => EventKind::File(FileEvent::Symlink { path: PathId(*path), target }),
            Kind::Plain(kind) => kind.clone(),
        };
        Event { thread: self.thread, context: self.context, pc: self.pc, kind }
    }
}

/// What [`write`] defines: two modules beside module 0, five contexts beside context 0, two pools, two watches.
pub const MODULES: u32 = 3;
pub const CONTEXTS: u32 = 6;
pub const POOLS: u32 = 2;
pub const WATCHES: u32 = 2;
pub const POOL_LEN: usize = 3 * 4096 + 100;

pub fn initial() -> Vec<u8> {
    let mut content = vec![0; POOL_LEN];
    content[5] = 7;
    content[2 * 4096..][..4096].fill(9);
    content[POOL_LEN - 1] = 1;
    content
}

pub fn meta() -> Meta {
    Meta {
        command: vec!["prog".into(), "arg".into()],
        cwd: "/somewhere".into(),
        recorder: "probe".into(),
        options: vec!["--loads".into()],
    }
}

pub fn start(path: &Path) -> TraceWriter {
    let mut writer = TraceWriter::create(path, meta()).unwrap();
    for name in ["/bin/prog", "/lib/libpm.so"] {
        writer.module(CodeModule { path: name.into(), build_id: Some(vec![1, 2, 3]), kind: ModuleKind::Elf });
    }
    let mut parent = ContextId(0);
    for depth in 1..CONTEXTS {
        let return_to = CodeAddr { module: ModuleId(1), addr: u64::from(depth) * 16 };
        parent = writer.context(if depth == 4 { ContextId(1) } else { parent }, return_to, depth == 1);
    }
    for name in ["a.pool", "b.pool"] {
        let info = PoolInfo { path: name.into(), len: POOL_LEN as u64 };
        writer.pool(info, &mut &initial()[..]).unwrap();
    }
    writer.watch("malloc");
    writer.watch("free");
    writer
}

pub fn write(path: &Path, events: &[Owned]) {
    let mut writer = start(path);
    for (number, event) in events.iter().enumerate() {
        assert_eq!(writer.push(&event.event()).unwrap(), EventId(number as u64));
    }
    writer.note(Severity::Warning, "look out");
    writer.instruction_seen("clwb");
    let final_content = initial();
    let mut content = &final_content[..];
    let summary = writer.finish(&mut [(PoolId(0), &mut content)], Outcome::Ended(ExitStatus::Code(3))).unwrap();
    assert_eq!(summary.bytes, std::fs::metadata(path).unwrap().len());
}

/// The events of a cursor, and the error that ended it.
pub fn collect(mut cursor: Events<'_>) -> (Vec<(EventId, Owned)>, Option<ReadError>) {
    let mut events = Vec::new();
    loop {
        let event = match cursor.next() {
            Ok(None) => return (events, None),
            Ok(Some(event)) => Owned::of(&event),
            Err(error) => return (events, Some(error)),
        };
        events.push((cursor.id(), event));
    }
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..300u64, (0..4u64).prop_map(|n| n * 64), any::<u64>()]
}

fn place() -> impl Strategy<Value = Place> {
    (0..POOLS, number()).prop_map(|(pool, offset)| Place { pool: PoolId(pool), offset: PoolOffset(offset) })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    use prop::collection::vec;
    prop_oneof![
        6 => number().prop_map(|n| n.to_le_bytes().to_vec()),
        4 => vec(any::<u8>(), 0..70),
        1 => (any::<u8>(), 65..5000usize).prop_map(|(first, len)| (0..len).map(|n| first.wrapping_add(n as u8)).collect()),
    ]
}

fn plain() -> impl Strategy<Value = EventKind<'static>> {
    use FlushKind::*;
    use prop::sample::select;
    let flush = || select(vec![Clflush, Clflushopt, Clwb, Cldemote]);
    let fence = select(vec![FenceKind::Sfence, FenceKind::Mfence, FenceKind::Locked]);
    let pool = || (0..POOLS).prop_map(PoolId);
    let watch = || (0..WATCHES).prop_map(WatchId);
    prop_oneof![
        (flush(), place()).prop_map(|(kind, at)| EventKind::Flush { kind, target: FlushTarget::Pool(at) }),
        (flush(), number()).prop_map(|(kind, at)| EventKind::Flush { kind, target: FlushTarget::Volatile(at) }),
        fence.prop_map(|kind| EventKind::Fence { kind }),
        (place(), any::<u32>()).prop_map(|(place, len)| EventKind::Load { place, len }),
        (place(), 0..64u32).prop_map(|(place, len)| EventKind::Load { place, len }),
        (place(), number(), number()).prop_map(|(place, len, address)| EventKind::Map { place, len, address }),
        (place(), number(), number()).prop_map(|(place, len, address)| EventKind::Unmap { place, len, address }),
        (place(), number()).prop_map(|(place, len)| EventKind::Msync { place, len }),
        (pool(), any::<bool>()).prop_map(|(pool, data_only)| EventKind::Fsync { pool, data_only }),
        (place(), number()).prop_map(|(place, len)| EventKind::FileZero { place, len }),
        (pool(), number()).prop_map(|(pool, len)| EventKind::Resize { pool, len }),
        (0..9u32, 0..9u32)
            .prop_map(|(from, to)| { EventKind::File(FileEvent::Rename { from: PathId(from), to: PathId(to) }) }),
        (0..9u32, number()).prop_map(|(file, len)| EventKind::File(FileEvent::Length { file: FileId(file), len })),
        Just(EventKind::ThreadStart),
        Just(EventKind::ThreadEnd),
        (any::<u32>(), any::<Option<u32>>()).prop_map(|(process, parent)| EventKind::ProcessStart {
            process: ProcessId(process),
            parent: parent.map(ProcessId)
        }),
        any::<i32>().prop_map(|code| EventKind::ProcessExit { status: ExitStatus::Code(code) }),
        any::<i32>().prop_map(|signal| EventKind::ProcessExit { status: ExitStatus::Signal(signal) }),
        number().prop_map(|index| EventKind::OperationBegin { index }),
        number().prop_map(|index| EventKind::OperationEnd { index }),
        (watch(), any::<[u64; 6]>()).prop_map(|(watch, args)| EventKind::Call { watch, args }),
        (watch(), number()).prop_map(|(watch, value)| EventKind::Return { watch, value }),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    let store = prop::sample::select(vec![StoreKind::Plain, StoreKind::NonTemporal, StoreKind::Direct64]);
    prop_oneof![
        4 => (place(), store, bytes()).prop_map(|(place, kind, bytes)| Kind::Store(place, kind, bytes)),
        1 => (place(), bytes()).prop_map(|(place, old)| {
            let new = old.iter().map(|byte| byte.wrapping_mul(3)).collect();
            Kind::Rmw(place, old, new)
        }),
        1 => (place(), bytes()).prop_map(|(place, bytes)| Kind::KernelWrite(place, bytes)),
        1 => (place(), bytes()).prop_map(|(place, bytes)| Kind::FileWrite(place, bytes)),
        1 => "[a-zé]{0,30}".prop_map(Kind::Exec),
        1 => (0..9u32, number(), bytes()).prop_map(|(file, offset, bytes)| Kind::FileData(file, offset, bytes)),
        1 => (0..9u32, "[a-zé]{0,90}").prop_map(|(path, target)| Kind::Symlink(path, target)),
        8 => plain().prop_map(Kind::Plain),
    ]
}

/// Any event of a trace that [`start`] began.
pub fn event() -> impl Strategy<Value = Owned> {
    let pc = (0..MODULES, 0..5u64);
    (0..3u32, 0..CONTEXTS, pc, kind()).prop_map(|(thread, context, (module, addr), kind)| Owned {
        thread: ThreadId(thread),
        context: ContextId(context),
        pc: CodeAddr { module: ModuleId(module), addr },
        kind,
    })
}
