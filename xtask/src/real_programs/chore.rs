//! Runs every case twice, natively and recorded, and compares what can be seen from outside.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context as _, ensure};
use clap::Args;

use super::case::Case;
use super::inputs::{INPUTS, words};
use super::list;
use super::outcome::ProgramOutcome;
use super::packages;
use crate::bench::measure::children_cpu;
use crate::build;
use crate::scratch::Scratch;

#[derive(Args, Debug)]
pub struct RealPrograms {
    /// A smaller set with less input, for continuous integration.
    #[arg(long)]
    quick: bool,
    /// Install missing Debian packages first (as root).
    #[arg(long)]
    install: bool,
    /// Fail if a program is missing, as continuous integration must.
    #[arg(long)]
    all: bool,
    /// Only cases whose name contains one of these.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Seconds until a run is given up.
    #[arg(long, default_value_t = 300)]
    limit: u32,
}

/// Where and with what the cases run.
#[derive(Debug)]
struct CaseSetup<'a> {
    fencepost: &'a Path,
    scratch: &'a Scratch,
    words: String,
    limit: u32,
    rustc: PathBuf,
}

/// What a run took: by the clock, and of the processors, for all its processes together.
#[derive(Clone, Copy, Debug)]
struct Took {
    wall: Duration,
    cpu: Duration,
}

/// What a run took, and what it showed.
type Shown = (Took, ProgramOutcome);

impl RealPrograms {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let cases: Vec<&Case> = list::all().filter(|case| self.wants(case)).collect();
        if self.install {
            packages::install(&cases)?;
        }
        let fencepost = build::fencepost()?;
        let scratch = Scratch::new("real")?;
        let words = words(if self.quick { 2_000 } else { 20_000 });
        let stage =
            CaseSetup { fencepost: &fencepost, scratch: &scratch, words, limit: self.limit, rustc: real_rustc() };
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        println!("{:<18} {:>9} {:>9} {:>17}  result", "program", "native", "recorded", "CPU of both");
        for case in cases {
            let (times, told) = match packages::missing(case) {
                Some(program) => {
                    skipped += 1;
                    (None, format!("skipped: no {program}"))
                }
                None => match stage.try_case(case)? {
                    (times, None) => {
                        passed += 1;
                        (Some(times), "same".to_owned())
                    }
                    (times, Some(difference)) => {
                        failed += 1;
                        (Some(times), format!("FAILED: {difference}"))
                    }
                },
            };
            let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
            let [native, recorded, cpu] = times.map_or_else(Default::default, |(a, b)| {
                [seconds(a.wall), seconds(b.wall), format!("{}, {}", seconds(a.cpu), seconds(b.cpu))]
            });
            println!("{:<18} {native:>9} {recorded:>9} {cpu:>17}  {told}", case.name);
        }
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        let complete = skipped == 0 || !self.all;
        Ok(if failed == 0 && complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn wants(&self, case: &Case) -> bool {
        let named = self.names.is_empty() || self.names.iter().any(|name| case.name.contains(name.as_str()));
        named && (case.quick || !self.quick)
    }
}

/// Is there more to do on this machine than it has processors for?
fn is_busy() -> anyhow::Result<bool> {
    let load = fs::read_to_string("/proc/loadavg").context("/proc/loadavg")?;
    let last_minute: f64 = load.split_whitespace().next().unwrap_or_default().parse().context("/proc/loadavg")?;
    // A recording alone keeps two processes busy, the target and the one that writes the trace.
    Ok(last_minute > 2.0 + std::thread::available_parallelism()?.get() as f64)
}

/// `rustc` may be rustup's switch, which needs the home folder that the cases do not see.
fn real_rustc() -> PathBuf {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default();
    Path::new(&sysroot).join("bin/rustc")
}

impl CaseSetup<'_> {
    /// Both times, and the difference if there is one.
    fn try_case(&self, case: &Case) -> anyhow::Result<((Took, Took), Option<String>)> {
        let (native, expected) = self.run(case, false)?;
        let (recorded, got) = self.run(case, true)?;
        let mut difference = expected.difference(&got);
        if difference.is_some() {
            // A script that differs from itself proves nothing about the recorder.
            let (_, again) = self.run(case, false)?;
            if let Some(own) = expected.difference(&again) {
                difference = Some(format!("the script differs even natively: {own}"));
            }
        }
        if difference.is_none() {
            difference = self.too_slow(case, native, recorded)?;
        }
        Ok(((native, recorded), difference))
    }

    /// Runs of more than a second may take three times as long recorded; two more pairs have a say. Where others are at work on the machine, the
    /// clock tells of them as well: there the processors' time decides.
    fn too_slow(&self, case: &Case, native: Took, recorded: Took) -> anyhow::Result<Option<String>> {
        const COUNTS: Duration = Duration::from_secs(1);
        const MOST: f64 = 3.0;
        let time = if is_busy()? { |took: Took| took.cpu } else { |took: Took| took.wall };
        if time(native) <= COUNTS {
            return Ok(None);
        }
        let ratio = |native: Took, recorded: Took| time(recorded).as_secs_f64() / time(native).as_secs_f64();
        let mut least = ratio(native, recorded);
        for _ in 0..2 {
            if least <= MOST {
                return Ok(None);
            }
            let ((native, _), (recorded, _)) = (self.run(case, false)?, self.run(case, true)?);
            least = least.min(ratio(native, recorded));
        }
        Ok((least > MOST).then(|| format!("takes {least:.1} times as long as natively")))
    }

    fn run(&self, case: &Case, recorded: bool) -> anyhow::Result<Shown> {
        // The same path for both: some programs print it.
        let folder = self.scratch.fresh("run")?;
        for (name, content) in INPUTS {
            fs::write(folder.join(name), content)?;
        }
        fs::write(folder.join("words.txt"), &self.words)?;
        if !case.setup.is_empty() {
            let done = self.command(&["sh", "-c", case.setup], &folder).output()?;
            ensure!(done.status.success(), "{}: {}", case.name, String::from_utf8_lossy(&done.stderr));
        }
        let (fencepost, trace) = (self.fencepost.to_string_lossy(), self.scratch.path().join("trace"));
        let trace = trace.to_string_lossy();
        let mut line = Vec::new();
        if recorded {
            line.extend([&*fencepost, "record", "--quiet", "--exit-with-target", "-o", &*trace]);
            line.extend(case.options);
            line.push("--");
        }
        line.extend(["bash", "-c", case.script]);
        let (start, before) = (Instant::now(), children_cpu());
        let output = self.command(&line, &folder).output().context("cannot run `timeout`")?;
        let took = Took { wall: start.elapsed(), cpu: Duration::from_secs_f64((children_cpu() - before).max(0.0)) };
        let _ = fs::remove_file(&*trace);
        Ok((took, ProgramOutcome::new(output, case.files.then_some(&folder))?))
    }

    fn command(&self, line: &[&str], folder: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.arg("--kill-after=5").arg(self.limit.to_string()).args(line).current_dir(folder).stdin(Stdio::null());
        let path = env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin")).env("HOME", folder).env("LC_ALL", "C").env("TZ", "UTC");
        // Rustup, pyenv and their like put switches into PATH that look for the home folder.
        let python = Path::new("/usr/bin/python3");
        command.env("PYTHON", if python.exists() { python } else { Path::new("python3") }).env("RUSTC", &self.rustc);
        command
    }
}
