//! Any SMT-LIB 2 solver as a process.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use crate::expr::{Arena, Expr, Op};
use crate::solver::{Answer, QueryLimit, Solver, Unknown};

/// Solvers that are looked for, with the options that they need to read a script from standard input.
const KNOWN: [(&str, &[&str]); 3] =
    [("bitwuzla", &["--produce-models"]), ("cvc5", &["--lang=smt2", "--produce-models"]), ("z3", &["-in"])];

/// How often the process is looked at.
const POLL: Duration = Duration::from_millis(2);

#[derive(Clone, Debug)]
pub struct Process {
    program: String,
    options: Vec<String>,
}

impl Process {
    /// The solver with this name or path.
    pub fn named(program: &str) -> Process {
        let name = program.rsplit('/').next().unwrap_or(program);
        let options = KNOWN.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, options)| options);
        Process { program: program.to_owned(), options: options.iter().map(|&o| o.to_owned()).collect() }
    }

    /// The first that is installed.
    pub fn installed() -> Option<Process> {
        Process::all_installed().into_iter().next()
    }

    /// Those that are installed, the preferred one first.
    pub fn all_installed() -> Vec<Process> {
        KNOWN.iter().map(|(name, _)| Process::named(name)).filter(Process::is_there).collect()
    }

    /// Whether the program is a file, or in a folder of `PATH`.
    pub fn is_there(&self) -> bool {
        if self.program.contains('/') {
            return std::path::Path::new(&self.program).is_file();
        }
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| folder.join(&self.program).is_file())
    }

    pub fn program(&self) -> &str {
        &self.program
    }

    fn ask(&self, script: &str, until: Instant) -> Result<String, Unknown> {
        let failed = |error: std::io::Error| Unknown::Process(format!("`{}`: {error}", self.program));
        let mut child = Command::new(&self.program)
            .args(&self.options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let script = script.to_owned();
        // A solver that reads late must not block us, nor one that writes much.
        let writer = std::thread::spawn(move || {
            if let Some(mut stdin) = stdin {
                // A solver that has ended says so by its answer.
                let _ = stdin.write_all(script.as_bytes());
            }
        });
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            if let Some(mut stdout) = stdout {
                let _ = stdout.read_to_string(&mut text);
            }
            text
        });
        let ended = loop {
            match child.try_wait().map_err(failed)? {
                Some(status) => break Some(status),
                None if Instant::now() >= until => break None,
                None => std::thread::sleep(POLL),
            }
        };
        if ended.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = writer.join();
        let text = reader.join().unwrap_or_default();
        match ended {
            None => Err(Unknown::Time),
            Some(status) if text.trim().is_empty() => {
                Err(Unknown::Process(format!("`{}` ended with {status} and no answer", self.program)))
            }
            Some(_) => Ok(text),
        }
    }
}

impl Solver for Process {
    fn name(&self) -> &str {
        &self.program
    }

    fn solve(&mut self, arena: &Arena, conditions: &[Expr], limit: &QueryLimit) -> Answer {
        let script = script(arena, conditions);
        let until = Instant::now() + limit.time;
        match self.ask(&script, limit.deadline.map_or(until, |deadline| deadline.min(until))) {
            Err(why) => Answer::Unknown(why),
            Ok(text) => parse(&text),
        }
    }
}

/// What a solver printed, whatever that is.
pub fn parse(text: &str) -> Answer {
    let mut words = text.split(|c: char| c.is_whitespace() || c == '(' || c == ')').filter(|word| !word.is_empty());
    match words.next() {
        Some("unsat") => Answer::Impossible,
        Some("sat") => {
            let mut bytes = Vec::new();
            let mut name = None;
            for word in words {
                if let Some(index) = word.strip_prefix('i').and_then(|n| n.parse::<u32>().ok()) {
                    name = Some(index);
                } else if let Some(index) = name.take() {
                    let number = match (word.strip_prefix("#x"), word.strip_prefix("#b")) {
                        (Some(hex), _) => u8::from_str_radix(hex, 16),
                        (_, Some(bits)) => u8::from_str_radix(bits, 2),
                        _ => continue,
                    };
                    bytes.extend(number.ok().map(|number| (index, number)));
                }
            }
            Answer::Solved(bytes)
        }
        Some("unknown" | "timeout") => Answer::Unknown(Unknown::Time),
        other => Answer::Unknown(Unknown::Process(format!("answered `{}`", other.unwrap_or_default()))),
    }
}

/// The conditions as a script.
pub fn script(arena: &Arena, conditions: &[Expr]) -> String {
    let mut text = String::from("(set-logic QF_BV)\n(set-option :produce-models true)\n");
    let mut done: FxHashSet<Expr> = FxHashSet::default();
    let mut inputs: Vec<u64> = Vec::new();
    for &condition in conditions {
        let mut stack = vec![condition];
        while let Some(&top) = stack.last() {
            if done.contains(&top) {
                stack.pop();
                continue;
            }
            let node = arena.node(top);
            let before = stack.len();
            stack.extend(node.operands().iter().filter(|operand| !done.contains(operand)));
            if stack.len() > before {
                continue;
            }
            stack.pop();
            done.insert(top);
            if node.op == Op::Input {
                inputs.push(node.imm);
                let _ = writeln!(text, "(declare-const i{} (_ BitVec 8))", node.imm);
            }
            let _ = writeln!(text, "(define-fun e{} () (_ BitVec {}) {})", top.0, node.width, term(arena, top));
        }
    }
    for condition in conditions {
        let _ = writeln!(text, "(assert (= e{} #b1))", condition.0);
    }
    text.push_str("(check-sat)\n(get-value (");
    for input in inputs {
        let _ = write!(text, " i{input}");
    }
    text.push_str("))\n(exit)\n");
    text
}

fn term(arena: &Arena, expr: Expr) -> String {
    let node = arena.node(expr);
    let (width, [a, b, c]) = (node.width, node.args.map(|arg| format!("e{}", arg.0)));
    let first = if node.arity() > 0 { arena.width(node.args[0]) } else { 0 };
    let binary = |name: &str| format!("({name} {a} {b})");
    let truth = |name: &str| format!("(ite ({name} {a} {b}) #b1 #b0)");
    let number = |width: u8, value: u64| format!("(_ bv{value} {width})");
    match node.op {
        Op::Const => number(width, node.imm),
        Op::Input => format!("i{}", node.imm),
        Op::Not => format!("(bvnot {a})"),
        Op::Neg => format!("(bvneg {a})"),
        Op::And => binary("bvand"),
        Op::Or => binary("bvor"),
        Op::Xor => binary("bvxor"),
        Op::Add => binary("bvadd"),
        Op::Sub => binary("bvsub"),
        Op::Mul => binary("bvmul"),
        Op::UMulHigh | Op::SMulHigh => {
            let extend = if node.op == Op::UMulHigh { "zero_extend" } else { "sign_extend" };
            let (high, low) = (2 * u16::from(width) - 1, width);
            format!("((_ extract {high} {low}) (bvmul ((_ {extend} {width}) {a}) ((_ {extend} {width}) {b})))")
        }
        Op::UDiv => binary("bvudiv"),
        Op::URem => binary("bvurem"),
        Op::SDiv => binary("bvsdiv"),
        Op::SRem => binary("bvsrem"),
        Op::Shl => binary("bvshl"),
        Op::LShr => binary("bvlshr"),
        Op::AShr => binary("bvashr"),
        Op::Eq => truth("="),
        Op::ULt => truth("bvult"),
        Op::SLt => truth("bvslt"),
        Op::Ite => format!("(ite (= {a} #b1) {b} {c})"),
        Op::Extract => format!("((_ extract {} {}) {a})", node.imm + u64::from(width) - 1, node.imm),
        Op::Concat => binary("concat"),
        Op::ZExt => format!("((_ zero_extend {}) {a})", width - first),
        Op::SExt => format!("((_ sign_extend {}) {a})", width - first),
        Op::Popcnt => (0..first).fold(number(width, 0), |sum, at| {
            let bit = format!("((_ zero_extend {}) ((_ extract {at} {at}) {a}))", width - 1);
            if width == 1 { a.clone() } else { format!("(bvadd {sum} {bit})") }
        }),
        Op::Ctz | Op::Clz => (0..first).rev().fold(number(width, first.into()), |rest, n| {
            let at = if node.op == Op::Ctz { n } else { first - 1 - n };
            format!("(ite (= ((_ extract {at} {at}) {a}) #b1) {} {rest})", number(width, n.into()))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str, text: &str) -> (tempfile::TempDir, Process) {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let process = Process::named(path.to_str().unwrap());
        (folder, process)
    }

    fn asked(process: &mut Process, limit: Duration) -> Answer {
        let mut arena = Arena::of(b"a");
        let condition = arena.input(0);
        let wanted = arena.constant(8, 0x41);
        let condition = arena.eq(condition, wanted);
        process.solve(&arena, &[condition], &QueryLimit::of(limit))
    }

    #[test]
    fn a_solver_that_is_missing_killed_silent_or_mad_gives_no_answer() {
        let long = Duration::from_secs(60);
        let process = |answer: Answer| matches!(answer, Answer::Unknown(Unknown::Process(_)));
        let mut missing = Process::named("/nowhere/z3");
        assert!(!missing.is_there() && process(asked(&mut missing, long)));
        let (_folder, mut killed) = made("z3", "#!/bin/sh\nkill -9 $$\n");
        assert!(killed.is_there() && process(asked(&mut killed, long)));
        let (_folder, mut mad) = made("z3", "#!/bin/sh\ncat > /dev/null; echo 42\n");
        assert!(process(asked(&mut mad, long)));
        let (_folder, mut slow) = made("z3", "#!/bin/sh\nexec sleep 1000\n");
        assert_eq!(asked(&mut slow, Duration::from_millis(50)), Answer::Unknown(Unknown::Time));
        let (_folder, mut right) = made("z3", "#!/bin/sh\ncat > /dev/null; echo 'sat ((i0 #x41))'\n");
        assert_eq!(asked(&mut right, long), Answer::Solved(vec![(0, 0x41)]));
    }
}
