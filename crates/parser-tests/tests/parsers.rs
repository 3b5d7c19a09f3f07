//! Gives altered files, messages and answers to everything that reads them: it may refuse them, but not panic.
//!
//! Traces are altered where their format is known (`crates/trace/tests/file/damage.rs`), what is private beside its parser: the configuration
//! (`crates/fencepost/src/config/file.rs`), records of the probe (`crates/record/src/probe_host/altered.rs`), messages between machines
//! (`crates/crash/tests/search/messages.rs`, `crates/check/src/elsewhere`, `crates/cause/tests/causes/workers.rs`, `crates/fuzz/src/campaign/merge.rs`),
//! replies of guests (`crates/vm/src/guest.rs`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parser_tests::hammer::{corpus, hammer};

/// The corpus of this name, altered, as text. Bytes that are not text are replaced: the readers take strings.
fn text(name: &str, parse: impl Fn(&str)) {
    bytes(name, |input| parse(&String::from_utf8_lossy(input)));
}

fn bytes(name: &str, parse: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    hammer(name, &corpus(&folder), &parse);
}

/// As a file: its path.
fn file(name: &str, parse: impl Fn(&Path)) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("input");
    bytes(name, |input| {
        fs::write(&path, input).expect("written");
        parse(&path);
    });
}

#[test]
fn grammars() {
    text("grammar", |input| {
        if let Ok(grammar) = operation::grammar::Grammar::parse(input) {
            operation::generate::generate(&grammar, 20, 1);
        }
    });
}

#[test]
fn files_of_operations() {
    bytes("ops", |input| {
        let half = input.len() / 2;
        if let Ok(workload) = operation::workload::Workload::new(&input[..half], &input[half..]) {
            let _ = workload.with_windows("===");
        }
        let _ = operation::workload::Workload::unread(3, Some(input));
    });
}

#[test]
fn baselines() {
    text("baseline", |input| drop(report::baseline::Baseline::parse(input)));
}

#[test]
fn suppressions() {
    text("suppressions", |input| drop(finding::suppress::Suppressions::parse(input, Path::new("suppressions"))));
}

#[test]
fn workloads_of_system_calls() {
    text("fs-workload", |input| drop(::fs::workload::FsWorkload::parse_all(input)));
}

/// What is read is written as it was, so that trees compare.
#[test]
fn trees_of_file_systems() {
    text("fs-tree", |input| {
        if let Ok(tree) = ::fs::tree::Tree::parse(input) {
            assert_eq!(::fs::tree::Tree::parse(&tree.to_string()).as_ref(), Ok(&tree), "{tree}");
        }
    });
}

#[test]
fn answers_of_solvers() {
    text("smt", |input| drop(solve::smt::parse(input)));
}

#[test]
fn entries_of_a_corpus() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("queue")).expect("made");
    fs::write(folder.path().join("queue/000000"), "i 1 2\n").expect("written");
    bytes("cases", |input| {
        fs::write(folder.path().join("cases.jsonl"), input).expect("written");
        fs::write(folder.path().join("fuzz.json"), input).expect("written");
        let _ = fuzz::corpus::Corpus::load(folder.path());
        let _ = fuzz::corpus::Corpus::about(folder.path());
    });
}

/// Where bundles are, and the folder of one.
fn bundle_folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("4633296f");
    fs::create_dir(&place).expect("made");
    (folder, place)
}

#[test]
fn bundles() {
    let (folder, place) = bundle_folder();
    bytes("bundle", |input| {
        fs::write(place.join("finding.json"), input).expect("written");
        let _ = evidence::bundle::Bundle::read(folder.path(), "4633296f");
    });
}

#[test]
fn evidence_in_bundles() {
    let (folder, place) = bundle_folder();
    let id = finding::finding::FindingId("4633296f".into());
    bytes("evidence", |input| {
        fs::write(place.join("evidence.json"), input).expect("written");
        let _ = evidence::file::read(folder.path(), &id);
    });
}

#[test]
fn conditions() {
    file("conditions", |path| drop(infer::Conditions::load(path)));
}

#[test]
fn words_of_options() {
    text("words", |input| {
        let _ = drive::template::words(input);
        let _ = drive::template::with_place(input);
        let _ = oracle::command_line::command_line(input, "/".into(), Vec::new());
        let _ = crash::strategy::StrategySpec::list(input);
        let _ = input.parse::<crash::rounds::Shard>();
        let mut settings = lint::registry::Settings::default();
        let _ = settings.parse_level(input);
        let _ = settings.parse_setting(input);
        let _ = solve::input::Shape::default().add_lines(&[input.to_owned()]);
    });
}

/// What follows the first line, which names the trace and the options.
#[test]
fn journals_of_searches() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, path) = (folder.path().join("trace"), folder.path().join("journal"));
    let writer = trace::TraceWriter::create(&trace, trace::Meta::default()).expect("begun");
    let ended = trace::Outcome::Ended(trace::event::ExitStatus::Code(0));
    writer.finish(&mut [], ended).expect("written");
    let reader = trace::TraceReader::open(&trace).expect("a trace");
    let options = crash::search::SearchOptions::default();
    let open = || crash::journal::Journal::open(&path, &reader, &options);
    open().expect("begun");
    let head = fs::read(&path).expect("its first line");
    bytes("journal", |input| {
        fs::write(&path, [&head, input].concat()).expect("written");
        drop(open());
    });
}

/// A tree of two images: its folder, its list, and what is stored of them.
struct ImageTree {
    folder: tempfile::TempDir,
    list: Vec<u8>,
    data: Vec<u8>,
}

impl ImageTree {
    fn new() -> ImageTree {
        use fuzz::image::{Image, ImageId};
        let folder = tempfile::tempdir().expect("a folder");
        let mut tree = fuzz::tree::Tree::open(folder.path(), 1).expect("begun");
        let mut parent = ImageId::NONE;
        for text in ["first", "second"] {
            fs::write(folder.path().join("pool.0"), text.repeat(100)).expect("written");
            let image = Arc::new(Image::read(folder.path(), "pool", 1).expect("an image"));
            tree.add(&image, parent, fuzz::case::CaseId(0), None).expect("added");
            parent = image.id();
        }
        drop(tree);
        let read = |name: &str| fs::read(folder.path().join(name)).expect("a part of the tree");
        let (list, data) = (read("tree.jsonl"), read("data"));
        ImageTree { folder, list, data }
    }

    /// Takes all images out of a tree with this list and this data.
    fn use_all(&self, list: &[u8], data: &[u8]) {
        fs::write(self.folder.path().join("tree.jsonl"), list).expect("written");
        fs::write(self.folder.path().join("data"), data).expect("written");
        let Ok(mut tree) = fuzz::tree::Tree::open(self.folder.path(), 1) else { return };
        let ids: Vec<_> = tree.nodes().iter().map(|node| node.id).collect();
        ids.into_iter().for_each(|id| drop(tree.image(id)));
    }
}

#[test]
fn lists_of_images() {
    let tree = ImageTree::new();
    hammer("image-list", std::slice::from_ref(&tree.list), &|input| tree.use_all(input, &tree.data));
}

#[test]
fn stored_images() {
    let tree = ImageTree::new();
    hammer("image-data", std::slice::from_ref(&tree.data), &|input| tree.use_all(&tree.list, input));
}

#[test]
fn dictionaries() {
    text("dictionary", |input| drop(fuzz::inputs::bytes::Bytes::parse(input)));
}

#[test]
fn scripts_of_rules() {
    text("script", |input| drop(lint::script::Script::compile(input, Path::new("rule.rhai"))));
}

/// Nothing is written beside the folder.
#[test]
fn packed_folders() {
    let place = tempfile::tempdir().expect("a folder");
    let from = place.path().join("from");
    fs::create_dir_all(from.join("a")).expect("made");
    fs::write(from.join("a/one"), "1").expect("written");
    fs::write(from.join("two"), "").expect("written");
    let packed = fleet::folder::pack(&from).expect("packed");
    let to = place.path().join("to");
    hammer("folder", &[packed], &|input| {
        let _ = fleet::folder::unpack(input, &to);
        let entries = fs::read_dir(place.path()).expect("a folder").count();
        assert!(entries <= 2, "{entries} entries beside the folder");
        let _ = fs::remove_dir_all(&to);
    });
}

#[test]
fn addresses_of_campaigns() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("address");
    let of_file = format!("@{}", path.display());
    text("address", |input| {
        fs::write(&path, input).expect("written");
        let _ = fleet::redis::address::Address::given(&of_file);
        if !input.starts_with('@') {
            let _ = fleet::redis::address::Address::given(input);
        }
    });
}

#[test]
fn units_of_other_machines() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("nothing");
    let none = fleet::program::ProgramJob::default().bytes();
    let runs = fleet::program::ProgramRuns::open(program.clone(), &none, folder.path()).expect("ready");
    bytes("program", |input| {
        let _ = fleet::program::ProgramRuns::open(program.clone(), input, folder.path());
        let _ = runs.perform(input, &AtomicBool::new(false), &mut |_| Err("nothing is there".into()));
    });
}

#[test]
fn answers_of_servers() {
    use drive::protocol::Protocol;
    bytes("answers", |input| {
        for protocol in [Protocol::Line, Protocol::Redis, Protocol::Memcached] {
            let _ = protocol.answer(&mut &input[..]);
            let _ = protocol.request(input);
        }
    });
}

#[test]
fn crashes_of_file_systems() {
    let recovered = b"dir . mode=755 links=2 owner=0:0\nok\nok\nunmounted\n";
    text("fuse-case", |input| {
        if let Ok(case) = fuse::case::Case::of_text(input) {
            let _ = case.judge(recovered);
        }
    });
}

#[test]
fn answers_of_file_systems() {
    let steps = ::fs::workload::FsWorkload::parse_all("creat bar\nunlink bar\ncrash creat foo\n").expect("a workload");
    let steps = ::fs::workload::FsWorkload::chain(&steps);
    let case = corpus(&Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/fuse-case")).remove(0);
    let case = fuse::case::Case::of_text(&String::from_utf8_lossy(&case)).expect("a case");
    text("fuse-answers", |input| {
        let _ = fuse::reference::Reference::parse(&steps, input);
        let _ = case.judge(input.as_bytes());
    });
}

/// `small` is a program of four lines: `cc -g -Os -nostdlib -static`.
#[test]
fn programs_and_their_debug_information() {
    file("elf", |path| {
        let _ = fuzz::unreached::scan::Scan::of(path);
        let tables = trace::Tables::default();
        let mut symbols = trace::symbol::Symbolizer::with_debug_folders(&tables, Vec::new());
        for offset in [0, 0xe8, 0xeb, 0xff, u64::MAX] {
            symbols.frames_in_file(&path.display().to_string(), offset, offset != 0);
        }
    });
}

/// What the plugin in QEMU writes, as words: each record becomes a part of a trace, or is refused.
#[test]
fn records_of_guests() {
    use vm::ring::Record;
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("trace");
    let symbols = vm::symbols::Symbols::parse("ffffffff81000000 T copy\n");
    let symbol_files = symbols.write(folder.path(), &BTreeMap::new()).expect("written");
    let pool = vec![0; 8192];
    bytes("guest-records", |input| {
        let (words, _) = input.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let mut records = Vec::new();
        let mut rest = &words[..];
        while let Some((&head, after)) = rest.split_first() {
            let Some((own, next)) = after.split_at_checked((head >> 32 & 0xff) as usize) else { break };
            let Some(record) = Record::parse(head, own) else { break };
            records.push(record);
            rest = next;
        }
        let recorded = vm::recorder::Recorded {
            command: vec!["guest".into()],
            pool: Path::new("/pmem0"),
            initial: &pool,
            last: &pool,
            records: &records,
            symbols: &symbols,
            symbol_files: &symbol_files,
        };
        if recorded.write(&trace).is_ok() {
            let _ = trace::verify(&trace);
        }
    });
}

/// `/proc/kallsyms` of a guest. Nothing is written beside the folder.
#[test]
fn symbols_of_guests() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("symbols");
    text("guest-symbols", |input| {
        fs::create_dir_all(&folder).expect("made");
        let symbols = vm::symbols::Symbols::parse(input);
        let _ = symbols.file_of(0xffff_ffff_8100_0104);
        let code = symbols.code_of(&["nova".into(), "ext4".into()]);
        assert!(code.iter().all(|range| range.start <= range.end), "{code:x?}");
        let _ = symbols.write(&folder, &BTreeMap::new());
        let entries = fs::read_dir(place.path()).expect("a folder").count();
        assert_eq!(entries, 1, "something is beside the folder");
        let _ = fs::remove_dir_all(&folder);
    });
}
