//! What a writer takes, a reader gives back; the index finds what a full walk finds.

use crate::support::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use trace::*;

fn expect_same(events: &[Owned]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.fptrace");
    write(&path, events);
    let reader = TraceReader::open(&path).unwrap();
    assert_eq!(reader.ending(), Ending::Complete(Outcome::Ended(ExitStatus::Code(3))));
    assert_eq!(reader.event_count(), events.len() as u64);
    let tables = reader.tables();
    assert_eq!(tables.meta, meta());
    assert_eq!(tables.modules.len(), MODULES as usize);
    assert_eq!(tables.contexts.len(), CONTEXTS as usize);
    assert_eq!(tables.watches, ["malloc", "free"]);
    assert_eq!(tables.notes, [Note { severity: Severity::Warning, text: "look out".into() }]);
    assert_eq!(tables.instructions_seen, ["clwb"]);

    let (all, error) = collect(reader.events());
    assert!(error.is_none());
    let wanted: Vec<_> = events.iter().cloned().enumerate().map(|(n, event)| (EventId(n as u64), event)).collect();
    assert_eq!(all, wanted);

    for thread in (0..4).map(ThreadId) {
        let wanted: Vec<_> = all.iter().filter(|(_, event)| event.thread == thread).cloned().collect();
        assert_eq!(collect(reader.events_of_thread(thread)).0, wanted);
    }
    for context in (0..CONTEXTS + 1).map(ContextId) {
        let wanted: Vec<_> = all.iter().filter(|(_, event)| event.context == context).cloned().collect();
        assert_eq!(collect(reader.events_of_context(context)).0, wanted);
    }
    let third = all.len() / 3;
    let range = EventId(third as u64)..EventId(2 * third as u64);
    assert_eq!(collect(reader.events_in(range)).0, all[third..2 * third]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_events(events in prop::collection::vec(event(), 0..200)) {
        expect_same(&events);
    }
}

/// Several blocks, with the regularity that the predictions are made for.
#[test]
fn many_blocks() {
    let mut events = Vec::new();
    for n in 0..15_000u64 {
        let thread = ThreadId((n % 7 / 5) as u32);
        let pc = |addr| CodeAddr { module: ModuleId(1), addr };
        let place = |offset| Place { pool: PoolId((n % 2) as u32), offset: PoolOffset(offset) };
        let node = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let value = (node + 64).to_le_bytes().to_vec();
        let push = |events: &mut Vec<Owned>, addr, kind| {
            let context = ContextId((n % u64::from(CONTEXTS)) as u32);
            events.push(Owned { thread, context, pc: pc(addr), kind });
        };
        push(&mut events, 1, Kind::Plain(EventKind::OperationBegin { index: n }));
        push(&mut events, 2, Kind::Store(place(node), StoreKind::Plain, value));
        push(&mut events, 3, Kind::Store(place(node + 16), StoreKind::NonTemporal, vec![n as u8; 32]));
        let target = FlushTarget::Pool(place(node & !63));
        push(&mut events, 4, Kind::Plain(EventKind::Flush { kind: FlushKind::Clwb, target }));
        push(&mut events, 5, Kind::Plain(EventKind::Fence { kind: FenceKind::Sfence }));
        push(&mut events, 6, Kind::Plain(EventKind::OperationEnd { index: n }));
    }
    expect_same(&events);
}

#[test]
fn operations_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.fptrace");
    let plain =
        |kind| Owned { thread: ThreadId(0), context: ContextId(0), pc: CodeAddr::default(), kind: Kind::Plain(kind) };
    let fence = || plain(EventKind::Fence { kind: FenceKind::Sfence });
    write(
        &path,
        &[
            fence(),
            plain(EventKind::OperationBegin { index: 4 }),
            fence(),
            plain(EventKind::OperationEnd { index: 4 }),
            plain(EventKind::OperationBegin { index: 5 }),
            fence(),
        ],
    );
    let reader = TraceReader::open(&path).unwrap();
    assert_eq!(reader.operation(4).unwrap(), Some(EventId(1)..EventId(4)));
    assert_eq!(reader.operation(5).unwrap(), Some(EventId(4)..EventId(6)), "it has no end");
    assert_eq!(reader.operation(6).unwrap(), None);
}

#[test]
fn equal_recordings_are_equal_files() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("1"), dir.path().join("2"));
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let events = prop::collection::vec(event(), 500).new_tree(&mut runner).unwrap().current();
    write(&one, &events);
    write(&two, &events);
    assert!(std::fs::read(one).unwrap() == std::fs::read(two).unwrap());
}

#[test]
fn definitions_are_interned() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(&dir.path().join("t.fptrace"));
    let module = || CodeModule { path: "/x".into(), build_id: None, kind: ModuleKind::Elf };
    assert_eq!(writer.module(module()), writer.module(module()));
    let to = CodeAddr { module: ModuleId(1), addr: 0x77 };
    assert_eq!(writer.context(ContextId(2), to, false), writer.context(ContextId(2), to, false));
    assert_ne!(writer.context(ContextId(2), to, false), writer.context(ContextId(2), to, true));
    assert_eq!(writer.watch("malloc"), WatchId(0));
}

#[test]
fn events_of_nothing_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.fptrace");
    let mut writer = start(&path);
    let event = |context, pool, pc| Event {
        thread: ThreadId(0),
        context,
        pc,
        kind: EventKind::Fsync { pool, data_only: false },
    };
    let nowhere = CodeAddr { module: ModuleId(MODULES), addr: 0 };
    assert!(writer.push(&event(ContextId(CONTEXTS), PoolId(0), CodeAddr::default())).is_err());
    assert!(writer.push(&event(ContextId(0), PoolId(POOLS), CodeAddr::default())).is_err());
    assert!(writer.push(&event(ContextId(0), PoolId(0), nowhere)).is_err());
    assert_eq!(writer.push(&event(ContextId(0), PoolId(1), CodeAddr::default())).unwrap(), EventId(0));
    drop(writer);
    let reader = TraceReader::open(&path).unwrap();
    assert!(!reader.is_complete(), "it was never finished");
    assert_eq!(collect(reader.events()).0.len(), 1);
}

#[test]
fn initial_content_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.fptrace");
    write(&path, &[]);
    let reader = TraceReader::open(&path).unwrap();
    let mut content = vec![0; 4 * 4096];
    let mut pages = Vec::new();
    reader
        .initial_pages(PoolId(1), |page, bytes| {
            pages.push(page);
            content[page as usize * 4096..][..4096].copy_from_slice(bytes);
        })
        .unwrap();
    assert_eq!(pages, [0, 2, 3], "page 1 is zero");
    assert!(content[..POOL_LEN] == initial());
}
