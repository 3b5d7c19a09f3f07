//! What the reference runs take for right against the slow way, which is obviously so: the uninstrumented program, from an empty folder,
//! is given all operations but one, for every one; and all of them up to each boundary, and then what a recovered process is asked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use crash::walk::Rules;
use finding::note::RunNote;
use operation::answers::Answers;
use operation::boundaries::BoundarySource;
use operation::equivalence::{Asking, Equivalence};
use operation::generate::generate;
use operation::grammar::Grammar;
use operation::workload::Workload;
use oracle::oracle::Oracle;
use recover::limits::Limits;
use runner::plan::{EngineChoice, OperationPlan, RecoveryPlan};
use runner::reference::run::{ReferenceAnswers, reference_answers};
use runner::runner::Runner;
use targets::crash::{CrashTarget, TWIN, with_operations};
use tempfile::TempDir;
use trace::TraceReader;
use verdict::position::CrashPosition;

const OPERATIONS: usize = 14;
/// Fewer than there are, so that most runs end before the last operation, and not all queries are asked.
const OPERATIONS_AFTER: usize = 5;
const QUERIES: usize = 6;
const OWN: &str = env!("CARGO_BIN_EXE_fencepost");

/// A program of `targets/ops` and operations for it.
struct Case {
    target: CrashTarget,
    program: PathBuf,
    workload: Workload,
    folder: TempDir,
}

impl Case {
    fn new(name: &str, seed: u64) -> Case {
        let all = with_operations().expect("targets");
        let target = all.into_iter().find(|target| target.name == name).expect("a target of this name");
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reference").join(std::process::id().to_string());
        let program = target.build(TWIN, &built).expect("it is built");
        let grammar = fs::read_to_string(target.grammar.as_ref().expect("a grammar")).expect("readable");
        let made = generate(&Grammar::parse(&grammar).expect("a grammar"), OPERATIONS, seed);
        let mut workload = Workload::new(made.operations.as_bytes(), made.readback.as_bytes()).expect("a workload");
        workload.limit_queries(QUERIES);
        Case { target, program, workload, folder: tempfile::tempdir().expect("writable") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command that reads operations, with its pool in this folder.
    fn words(&self, folder: &Path) -> Vec<String> {
        let own = self.target.run_command(&self.program, &folder.join("pool"));
        let driver = [OWN, "drive", "socket", "--at", "{socket}", "--protocol", "line", "--"];
        let is_server = self.target.run.iter().any(|word| word == "{socket}");
        let driver = driver.iter().filter(|_| is_server).map(|word| (*word).to_owned());
        driver.chain(own).collect()
    }

    fn start(&self, words: &[String], input: &[u8]) -> Vec<u8> {
        fs::write(self.path("input"), input).expect("writable");
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(self.target.env.iter().map(|(name, value)| (name, value)));
        command.stdin(File::open(self.path("input")).expect("written")).stderr(Stdio::inherit());
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{words:?}: {}", output.status);
        output.stdout
    }

    /// What the reference runs take for right; `forks`: by forks of one live process.
    fn quickly(&self, forks: bool) -> Equivalence {
        let (live, trace) = (self.path("live"), self.path("trace"));
        fs::create_dir(&live).expect("writable");
        let words = self.words(&live);
        let record = [OWN, "record", "--quiet", "--operations", "stdin", "-o", trace.to_str().expect("text"), "--"];
        let record: Vec<String> = record.iter().map(|word| (*word).to_owned()).chain(words.iter().cloned()).collect();
        self.start(&record, self.workload.operations());
        let reader = TraceReader::open(&trace).expect("a trace");
        let argv: Vec<std::ffi::OsString> = words.iter().map(std::ffi::OsString::from).collect();
        let mut recovery = recover::command::Command::here(&argv).expect("words");
        recovery.env.extend(self.target.env.iter().map(|(name, value)| (name.into(), value.into())));
        let operations = OperationPlan {
            workload: self.workload.clone(),
            operations_after: OPERATIONS_AFTER,
            recorded: None,
            asking: Asking::Fed,
            boundaries: BoundarySource::Events,
        };
        let operations = Arc::new(operations);
        let plan = RecoveryPlan {
            recovery,
            checker: None,
            oracle: Oracle::default(),
            limits: Limits::default(),
            pools: reader.tables().pools.iter().map(|pool| (pool.info.path.clone().into(), pool.info.len)).collect(),
            engine: EngineChoice::ForkServer,
            names: reader.tables().paths.clone(),
            folders: Vec::new(),
            operations: Some(Arc::clone(&operations)),
            served: None,
            cancel: Default::default(),
            real_time: false,
        };
        let mut runner = Runner::new(plan).expect("a runner");
        let reference = reference_answers(&reader, Rules::default(), &operations, &mut runner, &|_| true);
        let ReferenceAnswers { equivalence, notes, .. } =
            reference.unwrap_or_else(|error| panic!("{}: {error}", self.target.name));
        assert_eq!(notes.iter().any(|note| matches!(note, RunNote::Reopened { .. })), !forks, "{notes:?}");
        equivalence
    }

    /// What the program writes, from scratch, if it does these operations and is then asked as after a crash before `next`.
    fn slowly(&self, done: impl Iterator<Item = usize>, next: usize) -> Vec<u8> {
        let text = self.workload.text();
        let rest = next..(next + OPERATIONS_AFTER).min(OPERATIONS);
        let done = done.map(|number| self.workload.byte_range(number..number + 1));
        let byte_ranges = done.chain(self.workload.byte_ranges(rest));
        let input: Vec<u8> = byte_ranges.flat_map(|s| &text[s.start as usize..s.end as usize]).copied().collect();
        let fresh = tempfile::tempdir_in(self.folder.path()).expect("writable");
        self.start(&self.words(fresh.path()), &input)
    }
}

/// The output is these answers, and nothing else between them.
#[track_caller]
fn assert_written(output: &[u8], first: &Answers, then: &Answers, what: &str) {
    let wanted = [first.bytes(), then.bytes()].concat();
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.windows(wanted.len()).any(|part| part == wanted), "{what}: {} {}", shown(output), shown(&wanted));
}

fn check(name: &str, seed: u64, forks: bool) {
    let case = Case::new(name, seed);
    let expected = case.quickly(forks).expected;
    assert!(expected.fails_without.is_empty() && expected.fails_after.is_empty());
    for number in 0..OPERATIONS {
        let before = expected.whole.first(number);
        let without = expected.rolled_back(CrashPosition::During(number)).expect("known");
        let told = format!("{name} without operation {number}, `{}`", case.workload.shown(number));
        assert_written(&case.slowly(0..number, number + 1), &before, without, &told);
        let committed = expected.committed(CrashPosition::After(number)).expect("known");
        let told = format!("{name} after operation {number}");
        assert_written(&case.slowly(0..number + 1, number + 1), &expected.whole.first(number + 1), &committed, &told);
    }
    // It matters which one is left out.
    let differs = |number: &usize| expected.right(CrashPosition::During(*number)).len() == 2;
    assert!((0..OPERATIONS).filter(differs).count() > OPERATIONS / 4, "{name}");
}

#[test]
fn of_programs_in_c() {
    check("c/btree", 3, true);
    check("c/queue", 4, true);
}

#[test]
fn of_a_program_on_libpmemobj() {
    check("pmdk/list", 5, true);
}

#[test]
fn of_a_server() {
    check("c/server", 6, false);
}
