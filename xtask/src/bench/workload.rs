//! The workloads that are measured.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use targets::pmdk;

/// One row of the table.
#[derive(Clone, Debug)]
pub struct BenchWorkload {
    pub name: String,
    pub program: PathBuf,
    pub args: Vec<String>,
    /// File for standard input.
    pub input: Option<PathBuf>,
    /// Whether the pool is made anew for each run.
    pub is_pmdk: bool,
    /// The most that recording may cost, relative to native, as the project's issue sets it.
    pub goal: Option<f64>,
    /// The row is about one start, not about throughput: shown in milliseconds of CPU time.
    pub is_start: bool,
}

/// Compiles and writes what the workloads need into `folder`.
pub fn prepare(folder: &Path, built: &Path, scale: f64) -> anyhow::Result<Vec<BenchWorkload>> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench");
    fs::create_dir_all(built)?;
    for name in ["compute", "calls", "forks"] {
        let mut command = Command::new("cc");
        command.args(["-O2", "-g", "-o"]).arg(built.join(name)).arg(sources.join(name).with_extension("c"));
        let done = command.output().context("cannot run cc")?;
        ensure!(done.status.success(), "{name}.c: {}", String::from_utf8_lossy(&done.stderr));
    }
    let times = |n: f64| ((n * scale) as u64).max(1).to_string();
    let text = folder.join("text");
    fs::write(&text, words((8_000_000.0 * scale) as usize))?;
    let path = text.display().to_string();
    let own = |name: &str, args: Vec<String>, goal| row(name, &built.join(name), args, goal);
    let mut all = vec![
        own("compute", vec![times(600.0)], Some(1.25)),
        installed("gzip", "gzip", &["-9c", &path], Some(1.25)),
        installed("xz", "xz", &["-T1", "-2", "-c", &path], Some(1.25)),
        installed("sort", "sort", &["--parallel=1", &path], Some(1.25)),
        own("calls", vec![if scale < 1.0 { "32" } else { "38" }.into(), times(2_000_000.0)], Some(1.5)),
    ];
    let sql = folder.join("sql");
    fs::write(&sql, sqlite_script((150_000.0 * scale) as u32))?;
    let mut sqlite = installed("sqlite3", "sqlite3", &["-batch", ":memory:"], Some(1.6));
    sqlite.input = Some(sql);
    all.push(sqlite);
    let script = folder.join("program.py");
    fs::write(&script, include_str!("../../../bench/interpreter.py"))?;
    let python = if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
    all.push(installed("python3", python, &[&script.display().to_string(), &times(150.0)], Some(1.8)));
    if let Ok(mapcli) = pmdk::build_mapcli(built) {
        let operations = (150_000.0 * scale) as u32;
        let input = folder.join("operations");
        fs::write(&input, pmdk::workload(operations))?;
        // The example's pool is too small for an rtree of all the keys.
        let rtree_input = folder.join("rtree-operations");
        fs::write(&rtree_input, pmdk::workload(operations.min(pmdk::RTREE_OPERATIONS)))?;
        for map in pmdk::MAPS {
            let mut row =
                row(&format!("PMDK {map}"), &mapcli, vec![map.into(), "bench.pool".into(), "1".into()], Some(1.6));
            row.input = Some(if map == "rtree" { rtree_input.clone() } else { input.clone() });
            row.is_pmdk = true;
            all.push(row);
        }
    }
    let mut start = installed("/bin/true", "/bin/true", &[], None);
    start.is_start = true;
    all.push(start);
    all.push(own("forks", vec![times(2000.0)], Some(2.5)));
    Ok(all)
}

fn row(name: &str, program: &Path, args: Vec<String>, goal: Option<f64>) -> BenchWorkload {
    let (name, program) = (name.to_owned(), program.to_owned());
    BenchWorkload { name, program, args, input: None, is_pmdk: false, goal, is_start: false }
}

fn installed(name: &str, program: &str, args: &[&str], goal: Option<f64>) -> BenchWorkload {
    // QEMU and Valgrind want a path, not a name.
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.exists());
    row(name, &found.unwrap_or_else(|| program.into()), args.iter().map(|&arg| arg.into()).collect(), goal)
}

impl BenchWorkload {
    pub fn is_there(&self) -> bool {
        self.program.exists()
    }

    /// Adds arguments, input and a fresh pool to a runner's command.
    pub fn complete(&self, command: &mut Command, folder: &Path) -> anyhow::Result<()> {
        let _ = fs::remove_file(folder.join("bench.pool"));
        command.args(&self.args).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
        command.env("LC_ALL", "C").env("PMEM_IS_PMEM_FORCE", "1");
        command.stdin(match &self.input {
            Some(path) => Stdio::from(File::open(path)?),
            None => Stdio::null(),
        });
        Ok(())
    }
}

/// Lines of digits and letters that compress, but not too well.
fn words(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 32);
    let mut state = 1u64;
    while text.len() < bytes {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        text.push_str(&format!("{:x} {}\n", state >> 40, (state >> 20) % 1000));
    }
    text
}

fn sqlite_script(rows: u32) -> String {
    format!(
        "create table t(a integer primary key, b text, c integer); create index i on t(c);\nbegin;\n\
         with recursive n(x) as (select 1 union all select x+1 from n where x < {rows})\n\
         insert into t select x, hex(x * 7919), (x * 2654435761) % 1000003 from n;\ncommit;\n\
         select count(*), sum(c), max(b) from t;\n"
    )
}
