//! The bounded exhaustive workloads of ACE (CrashMonkey, OSDI 2018), as Chipmunk uses them for PM file systems (EuroSys 2023,
//! §4.1): every sequence of one or two operations from a small set over few files, and every sequence of three of the
//! operations that matter most. A setup creates what an operation needs. Power fails only in the last operation: shorter sequences
//! test crashes in earlier ones.
//!
//! The set has no fsync, because PM file systems are synchronous. [`fsync`] is for those that are not.

use crate::needs::Model;
use crate::op::{Allocate, File, Offset, Op, Path, Way};
use crate::workload::FsWorkload;

const FILES: [&str; 2] = ["foo", "A/foo"];
const SECOND_FILES: [&str; 3] = ["bar", "A/bar", "A/C/bar"];
const DIRS: [&str; 1] = ["A"];
const SECOND_DIRS: [&str; 2] = ["B", "A/C"];

/// Which set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Set {
    Seq1,
    Seq2,
    Seq3,
    Fsync,
}

impl Set {
    pub const ALL: [(Set, &str); 4] =
        [(Set::Seq1, "seq-1"), (Set::Seq2, "seq-2"), (Set::Seq3, "seq-3"), (Set::Fsync, "fsync")];

    pub fn name(self) -> &'static str {
        Set::ALL.iter().find(|(set, _)| *set == self).map_or("?", |(_, name)| name)
    }

    pub fn of_name(name: &str) -> Option<Set> {
        Set::ALL.iter().find(|(_, known)| *known == name).map(|(set, _)| *set)
    }

    /// All workloads of the set, in order.
    pub fn workloads(self) -> Box<dyn Iterator<Item = FsWorkload>> {
        match self {
            Set::Seq1 => sequences(self, operations(), 1),
            Set::Seq2 => sequences(self, operations(), 2),
            Set::Seq3 => sequences(self, core(), 3),
            Set::Fsync => Box::new(fsync()),
        }
    }
}

fn owned(path: &str) -> Path {
    path.to_owned()
}

fn file(path: &str) -> File {
    File { path: owned(path), fd: None }
}

fn all_files() -> impl Iterator<Item = &'static str> + Clone {
    FILES.into_iter().chain(SECOND_FILES)
}

/// From any file to a second one that is another.
fn pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    all_files().flat_map(|from| SECOND_FILES.into_iter().map(move |to| (from, to))).filter(|(from, to)| from != to)
}

fn dir_pairs() -> impl Iterator<Item = (&'static str, &'static str)> {
    let from = DIRS.into_iter().chain(SECOND_DIRS);
    from.flat_map(|from| SECOND_DIRS.into_iter().map(move |to| (from, to))).filter(|(from, to)| from != to)
}

fn links() -> impl Iterator<Item = Op> {
    pairs().map(|(from, to)| Op::Link(owned(from), owned(to)))
}

fn renames() -> impl Iterator<Item = Op> {
    pairs().chain(dir_pairs()).map(|(from, to)| Op::Rename(owned(from), owned(to)))
}

fn unlinks() -> impl Iterator<Item = Op> {
    all_files().map(|path| Op::Unlink(owned(path)))
}

/// The seed is chosen when the workload is made.
fn write(path: &str, at: Offset, len: u64, way: Way) -> Op {
    Op::Write { file: file(path), at, len, seed: crate::content::Seed(1), way }
}

fn direct_writes() -> impl Iterator<Item = Op> {
    FILES.into_iter().flat_map(|path| {
        [(Offset::BeforeEnd(0), 4096), (Offset::At(0), 1024)].map(|(at, len)| write(path, at, len, Way::Direct))
    })
}

/// Behind the end, at the beginning, and over the end.
const RANGES: [(Offset, u64); 3] =
    [(Offset::BeforeEnd(0), 4096), (Offset::At(0), 1024), (Offset::BeforeEnd(1024), 2048)];

fn allocations(mode: Allocate) -> impl Iterator<Item = Op> {
    FILES.into_iter().flat_map(move |path| RANGES.map(|(at, len)| Op::Fallocate { mode, file: file(path), at, len }))
}

fn truncates() -> impl Iterator<Item = Op> {
    FILES.into_iter().flat_map(|path| [0, 256].map(|len| Op::Truncate { file: file(path), len }))
}

/// The 56 operations of seq-1.
pub fn operations() -> Vec<Op> {
    let creats = FILES.into_iter().map(|path| Op::Creat(owned(path)));
    let mkdirs = DIRS.into_iter().map(|path| Op::Mkdir(owned(path)));
    let rmdirs = DIRS.into_iter().map(|path| Op::Rmdir(owned(path)));
    let removes = all_files().map(|path| Op::Remove(owned(path)));
    creats
        .chain(mkdirs)
        .chain(rmdirs)
        .chain(allocations(Allocate::KeepSize))
        .chain(direct_writes())
        .chain(links())
        .chain(unlinks())
        .chain(removes)
        .chain(renames())
        .chain(truncates())
        .collect()
}

/// The 37 of seq-3: write, link, unlink, rename.
fn core() -> Vec<Op> {
    direct_writes().chain(links()).chain(unlinks()).chain(renames()).collect()
}

fn sequences(set: Set, operations: Vec<Op>, length: u32) -> Box<dyn Iterator<Item = FsWorkload>> {
    let count = operations.len();
    Box::new((0..count.pow(length)).map(move |number| {
        let digit = |place: u32| number / count.pow(length - 1 - place) % count;
        let ops: Vec<Op> = (0..length).map(|place| operations[digit(place)].clone()).collect();
        workload(format!("{}/{number}", set.name()), &ops)
    }))
}

/// These operations with all that they need; the last one is crashed.
fn workload(name: String, ops: &[Op]) -> FsWorkload {
    let mut model = Model::default();
    let mut setup = Vec::new();
    for op in ops {
        setup.extend(model.prepare(op));
        let mut op = op.clone();
        if let Op::Write { seed, .. } = &mut op {
            *seed = model.seed();
        }
        model.apply(&op);
        setup.push(op);
    }
    let last = setup.pop().expect("a sequence has an operation");
    FsWorkload::with_last(name, setup, last)
}

/// For file systems that need fsync: more operations, each followed by a persistence point, which is what is crashed. What was made
/// for the operation is durable before it.
fn fsync() -> impl Iterator<Item = FsWorkload> {
    let attributes = FILES.into_iter().flat_map(|path| {
        let (path, name) = (owned(path), "user.a".to_owned());
        [Op::Setxattr { path: path.clone(), name: name.clone(), value: "one".into() }, Op::Removexattr { path, name }]
    });
    let buffered = FILES.into_iter().flat_map(|path| RANGES.map(|(at, len)| write(path, at, len, Way::Buffered)));
    let mapped = FILES
        .into_iter()
        .flat_map(|path| [Offset::At(0), Offset::BeforeEnd(1024)].map(|at| write(path, at, 1024, Way::Mapped)));
    let more = [Allocate::Extend, Allocate::PunchHole, Allocate::ZeroRange, Allocate::ZeroKeepSize];
    let all = operations().into_iter().chain(attributes).chain(buffered).chain(mapped);
    let all = all.chain(more.into_iter().flat_map(allocations));
    let with_points = all.flat_map(|op| persistence_points(&op).into_iter().map(move |point| (op.clone(), point)));
    (0..).zip(with_points).map(|(number, (op, point)): (usize, _)| {
        let mut workload = workload(format!("{}/{number}", Set::Fsync.name()), &[op]);
        let operation = workload.steps.pop().expect("a workload has an operation").op;
        let setup = workload.steps.into_iter().map(|step| step.op).chain([Op::Sync, operation]);
        FsWorkload::with_last(workload.name, setup.collect(), point)
    })
}

/// fsync and fdatasync of what the operation used, of a parent; sync.
fn persistence_points(op: &Op) -> Vec<Op> {
    let used: Vec<&str> = match op {
        Op::Creat(path) | Op::Mkdir(path) | Op::Setxattr { path, .. } | Op::Removexattr { path, .. } => vec![path],
        Op::Write { file, .. } | Op::Fallocate { file, .. } | Op::Truncate { file, .. } => vec![&file.path],
        Op::Link(from, to) => vec![from, to],
        Op::Rename(_, to) => vec![to],
        _ => Vec::new(),
    };
    let parents = match op {
        Op::Creat(path) | Op::Mkdir(path) | Op::Rmdir(path) | Op::Unlink(path) | Op::Remove(path) => vec![parent(path)],
        Op::Link(_, to) => vec![parent(to)],
        Op::Rename(from, to) if parent(from) != parent(to) => vec![parent(from), parent(to)],
        Op::Rename(from, _) => vec![parent(from)],
        _ => Vec::new(),
    };
    let data = used.iter().filter(|path| path.ends_with("foo") || path.ends_with("bar"));
    let mut points: Vec<Op> = used.iter().map(|path| Op::Fsync(file(path))).collect();
    points.extend(data.map(|path| Op::Fdatasync(file(path))));
    points.extend(parents.into_iter().map(|path| Op::Fsync(file(path))));
    points.push(Op::Sync);
    points
}

/// `.` for names in the root.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_sets_have_as_many_workloads_as_their_definition_says() {
        assert_eq!(Set::Seq1.workloads().count(), 56);
        assert_eq!(Set::Seq2.workloads().count(), 3_136);
        assert_eq!(Set::Seq3.workloads().count(), 50_653);
    }

    #[test]
    fn the_operations_of_seq_1() {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        operations().iter().for_each(|op| *kinds.entry(op.kind()).or_default() += 1);
        let expected = [
            ("creat", 2),
            ("dwrite", 4),
            ("fallocate", 6),
            ("link", 12),
            ("mkdir", 1),
            ("remove", 5),
            ("rename", 16),
            ("rmdir", 1),
            ("truncate", 4),
            ("unlink", 5),
        ];
        assert_eq!(kinds, BTreeMap::from(expected));
        let distinct: std::collections::HashSet<Op> = operations().into_iter().collect();
        assert_eq!(distinct.len(), 56);
    }

    #[test]
    fn only_the_last_operation_is_crashed() {
        for workload in Set::Seq2.workloads().chain(Set::Fsync.workloads()) {
            let crashed: Vec<bool> = workload.steps.iter().map(|step| step.crash).collect();
            assert_eq!(crashed.iter().rposition(|crash| !crash).map_or(0, |last| last + 1), crashed.len() - 1);
            assert!(crashed[crashed.len() - 1], "{workload}");
        }
    }

    #[test]
    fn a_workload_of_two_operations_makes_what_each_needs() {
        let index = |text: &str| operations().iter().position(|op| op.to_string() == text).unwrap();
        let number = index("rename A B") * 56 + index("unlink A/foo");
        let workload = Set::Seq2.workloads().nth(number).unwrap();
        let expected = format!(
            "workload seq-2/{number}\nmkdir A\nrename A B\nmkdir A\ncreat A/foo\nwrite A/foo 0 4096 seed=1\n\
             crash unlink A/foo\n"
        );
        assert_eq!(workload.to_string(), expected);
    }

    #[test]
    fn what_is_crashed_of_the_fsync_set_is_a_persistence_point() {
        let mut count = 0;
        for workload in Set::Fsync.workloads() {
            count += 1;
            assert!(workload.steps.last().unwrap().op.is_persistence_point());
            assert_eq!(workload.steps[workload.steps.len() - 3].op, Op::Sync, "{workload}");
        }
        assert!(count > 200);
    }
}
