//! Any bytes as a trace: first as they are, then as instructions for altering a real trace behind its checksums.
#![no_main]

use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use trace::*;

fuzz_target!(|data: &[u8]| {
    static SEED: OnceLock<Vec<u8>> = OnceLock::new();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t");
    read(&path, data);
    let seed = SEED.get_or_init(|| seed(&path));
    let mut choices = data.iter();
    let mut choose = |limit: usize| {
        let mut number = 0usize;
        for _ in 0..2 {
            number = number << 8 | usize::from(choices.next().copied().unwrap_or(0));
        }
        number % limit
    };
    let once = fuzzing::alter(seed, &mut choose);
    read(&path, &fuzzing::alter(&once, &mut choose));
});

fn read(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("written");
    stat(path).ok();
    verify(path).ok();
    dump(path, &DumpOptions { call_paths: true, ..DumpOptions::default() }, &mut std::io::sink()).ok();
}

fn seed(path: &Path) -> Vec<u8> {
    let mut writer = TraceWriter::create(path, Meta::default()).expect("created");
    let content = [7; 5000];
    let pool = writer.pool(PoolInfo { path: "p".into(), len: 5000 }, &mut &content[..]).expect("a pool");
    let watch = writer.watch("f");
    let context = writer.context(ContextId(0), CodeAddr::default(), false);
    for n in 0..40u64 {
        let place = Place { pool, offset: PoolOffset(n * 24) };
        let bytes = n.to_le_bytes();
        let kinds = [
            EventKind::Store { place, kind: StoreKind::Plain, bytes: &bytes },
            EventKind::Rmw { place, old: &bytes, new: &bytes },
            EventKind::FileWrite { place, bytes: &content[..n as usize * 30] },
            EventKind::Call { watch, args: [n; 6] },
            EventKind::Exec { path: "/bin/true" },
            EventKind::OperationBegin { index: n },
        ];
        for kind in kinds {
            let event = Event { thread: ThreadId(n as u32 % 2), context, pc: CodeAddr::default(), kind };
            writer.push(&event).expect("pushed");
        }
    }
    writer.finish(&mut [(pool, &mut &content[..])], Outcome::Interrupted).expect("finished");
    std::fs::read(path).expect("read")
}
