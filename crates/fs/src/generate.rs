//! Random workloads from a seed, with what no bounded set has: several descriptors of one file, offsets and lengths that are not
//! aligned, truncation and allocation mixed (Chipmunk §3.4, §5.3: each of these found bugs that ACE does not find).

use crate::needs::Model;
use crate::op::{Allocate, Fd, File, Offset, Op, Path, Way};
use crate::workload::{FsWorkload, Step};

const NAMES: [&str; 8] = ["foo", "bar", "A/foo", "A/bar", "A/C/bar", "B/foo", "B/bar", "baz"];
const DIRS: [&str; 3] = ["A", "B", "A/C"];
const DESCRIPTORS: u8 = 3;
/// Operations that a child has beside its own: what they need.
const LONGEST_SETUP: usize = 12;

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    pub seed: u64,
    /// Operations of each workload, without those that make what they need.
    pub operations: usize,
    /// fsync and the like as well, and more metadata.
    pub fsync: bool,
}

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }
}

impl Generator {
    /// The workload with this number: the same for the same generator.
    pub fn workload(&self, number: u64) -> FsWorkload {
        let mut random = Random(self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ number);
        random.next();
        let mut model = Model::default();
        let mut steps: Vec<Step> = Vec::new();
        for _ in 0..self.operations {
            let op = self.operation(&mut random, &mut model);
            for needed in model.prepare(&op) {
                steps.push(Step { op: needed, crash: false });
            }
            model.apply(&op);
            let crash = !matches!(op, Op::Open { .. } | Op::Close(_));
            steps.push(Step { op, crash });
        }
        FsWorkload { name: format!("fuzz-{}/{number}", self.seed), steps }
    }

    /// A workload like one of the parents: some operations left out, repeated, put elsewhere, or new; or two parents in one.
    pub fn child(&self, parents: &[FsWorkload], number: u64) -> FsWorkload {
        let mut random = Random(self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ number);
        random.next();
        let parent = random.pick(parents);
        let mut ops: Vec<Op> = parent.steps.iter().map(|step| step.op.clone()).collect();
        for _ in 0..1 + random.below(3) {
            let at = random.below(ops.len() as u64) as usize;
            match random.below(5) {
                0 if ops.len() > 1 => drop(ops.remove(at)),
                1 => ops.insert(at, ops[at].clone()),
                2 => {
                    let other = random.below(ops.len() as u64) as usize;
                    ops.swap(at, other);
                }
                3 => {
                    let other = random.pick(parents);
                    let from = random.below(other.steps.len() as u64) as usize;
                    ops.truncate(at);
                    ops.extend(other.steps[from..].iter().map(|step| step.op.clone()));
                }
                _ => {
                    let mut model = Model::default();
                    ops[..at].iter().for_each(|op| model.apply(op));
                    ops.insert(at, self.operation(&mut random, &mut model));
                }
            }
            if ops.is_empty() {
                ops.push(Op::Creat("foo".into()));
            }
        }
        ops.truncate(2 * self.operations.max(1) + LONGEST_SETUP);
        self.built(format!("fuzz-{}/{number}+{}", self.seed, parent.name), ops)
    }

    /// These operations, with what they need.
    fn built(&self, name: String, ops: Vec<Op>) -> FsWorkload {
        let mut model = Model::default();
        let mut steps: Vec<Step> = Vec::new();
        for op in ops {
            steps.extend(model.prepare(&op).into_iter().map(|op| Step { op, crash: false }));
            model.apply(&op);
            let crash = !matches!(op, Op::Open { .. } | Op::Close(_));
            steps.push(Step { op, crash });
        }
        // Names of children of children would grow.
        FsWorkload { name: name.chars().take(40).collect(), steps }
    }

    fn operation(&self, random: &mut Random, model: &mut Model) -> Op {
        let path = random.pick(&NAMES).to_owned();
        match random.below(if self.fsync { 25 } else { 21 }) {
            0 => Op::Creat(path),
            1 => Op::Mkdir(random.pick(&DIRS).to_owned()),
            2 => Op::Rmdir(random.pick(&DIRS).to_owned()),
            3 | 4 => Op::Unlink(existing(random, model, path)),
            5 | 6 => {
                let from = existing(random, model, path);
                Op::Link(from, random.pick(&NAMES).to_owned())
            }
            7 | 8 => {
                let from = existing(random, model, path);
                Op::Rename(from, random.pick(&NAMES).to_owned())
            }
            9 => Op::Rename(random.pick(&DIRS).to_owned(), random.pick(&DIRS).to_owned()),
            10..=14 => {
                let (file, at, len) = range(random, model, path);
                let way = if random.below(4) == 0 { Way::Direct } else { Way::Buffered };
                // A descriptor that is open already was opened without O_DIRECT.
                let way = if file.fd.is_some() { Way::Buffered } else { way };
                Op::Write { file, at, len, seed: model.seed(), way }
            }
            15 | 16 => {
                let file = on(random, model, path);
                Op::Truncate { file, len: length(random) }
            }
            17 | 18 => {
                let (file, at, len) = range(random, model, path);
                let modes = [Allocate::Extend, Allocate::KeepSize, Allocate::PunchHole, Allocate::ZeroRange];
                Op::Fallocate { mode: random.pick(&modes), file, at, len }
            }
            19 => Op::Open {
                file: existing(random, model, path),
                fd: descriptor(random),
                truncate: random.below(4) == 0,
                append: random.below(4) == 0,
            },
            20 => match random.below(3) {
                0 => Op::Close(descriptor(random)),
                1 => Op::Chmod(existing(random, model, path), [0o600, 0o755, 0o444][random.below(3) as usize]),
                _ => Op::Symlink("foo".into(), path),
            },
            21 => Op::Fsync(on(random, model, path)),
            22 => Op::Fdatasync(on(random, model, path)),
            23 => Op::Sync,
            _ => Op::Setxattr { path: existing(random, model, path), name: "user.a".into(), value: "one".into() },
        }
    }
}

/// One of the files that are there, most of the time.
fn existing(random: &mut Random, model: &Model, otherwise: Path) -> Path {
    let files = model.files();
    if files.is_empty() || random.below(4) == 0 { otherwise } else { random.pick(&files).clone() }
}

fn descriptor(random: &mut Random) -> Fd {
    Fd(random.below(u64::from(DESCRIPTORS)) as u8)
}

fn on(random: &mut Random, model: &Model, path: Path) -> File {
    let path = existing(random, model, path);
    File { path, fd: (random.below(3) == 0).then(|| descriptor(random)) }
}

/// Mostly small, and not aligned to anything.
fn length(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => random.below(64),
        1 => random.below(5000),
        2 => [256, 1024, 2048, 4096, 8192][random.below(5) as usize],
        _ => 1 + random.below(1500),
    }
}

fn range(random: &mut Random, model: &Model, path: Path) -> (File, Offset, u64) {
    let at = match random.below(4) {
        0 => Offset::BeforeEnd(random.below(2) * random.below(2000)),
        1 => Offset::At(random.below(16)),
        _ => Offset::At(length(random)),
    };
    (on(random, model, path), at, 1 + length(random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_workload() {
        let generator = Generator { seed: 7, operations: 12, fsync: false };
        assert_eq!(generator.workload(3), generator.workload(3));
        assert_ne!(generator.workload(3).steps, generator.workload(4).steps);
        let other = Generator { seed: 8, ..generator };
        assert_ne!(generator.workload(3).steps, other.workload(3).steps);
    }

    #[test]
    fn generated_workloads_survive_as_text_and_have_what_no_bounded_set_has() {
        let generator = Generator { seed: 1, operations: 20, fsync: true };
        let text: String = (0..50).map(|number| generator.workload(number).to_string()).collect();
        let workloads = FsWorkload::parse_all(&text).unwrap();
        assert_eq!(workloads.len(), 50);
        let odd = |op: &Op| matches!(op, Op::Write { at: Offset::At(at), len, .. } if at % 8 != 0 && len % 8 != 0);
        let by_descriptor = |op: &Op| matches!(op, Op::Truncate { file: File { fd: Some(_), .. }, .. });
        let any = |is: fn(&Op) -> bool| workloads.iter().any(|w| w.steps.iter().any(|step| is(&step.op)));
        assert!(any(odd) && any(by_descriptor) && any(Op::is_persistence_point));
    }
}
