//! `cargo xtask fs-bugs`: which technique finds which seeded bug of our file systems, in user space (`targets/fs`) and in the kernel
//! (`targets/fs/kmod`).

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;
use targets::{fs, kmod};

use crate::file_systems::{Bed, FsCheckOutcome};
use crate::kernel_fs::Guest;

/// Which technique finds which seeded bug, as a table.
#[derive(Args, Debug)]
pub struct FsBugs {
    /// The kernel module of targets/fs/kmod, in a virtual machine, instead of the FUSE file system.
    #[arg(long)]
    kernel: bool,
    /// Only these bugs.
    #[arg(long = "bug", value_name = "N")]
    only: Vec<u32>,
    /// Workloads of seq-2, drawn with the seed; 3136 are all.
    #[arg(long, default_value_t = 112)]
    seq_2: usize,
    /// How long a set of workloads is searched at most, in seconds.
    #[arg(long, default_value_t = 600)]
    budget: u32,
    /// How long random workloads are made, in seconds.
    #[arg(long, default_value_t = 300)]
    fuzz: u32,
    /// Try every technique, not only until one finds the bug.
    #[arg(long)]
    all: bool,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

/// What a check makes of a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    AtItsPlace,
    Elsewhere,
    NotFound,
}

impl Shown {
    fn of(findings: &[Value], is_at_its_place: &dyn Fn(&str) -> bool) -> Shown {
        match findings {
            [] => Shown::NotFound,
            findings if findings.iter().any(|finding| is_at_its_place(&finding.to_string())) => Shown::AtItsPlace,
            _ => Shown::Elsewhere,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Shown::AtItsPlace => "found",
            Shown::Elsewhere => "elsewhere",
            Shown::NotFound => "not found",
        }
    }
}

/// A seeded bug of either file system.
struct Seeded {
    variant: u32,
    what: String,
    needs_fsync: bool,
    /// Does a finding name the place that the source names?
    is_at_its_place: Box<dyn Fn(&str) -> bool>,
}

impl Seeded {
    fn of_fuse(bug: fs::Bug) -> Seeded {
        let guilty = bug.guilty;
        let named = move |text: &str| {
            guilty.iter().any(|(file, line, _)| text.contains(file) && text.contains(&format!("\"line\":{line},")))
        };
        let needs_fsync = bug.found_by == "fsync";
        Seeded { variant: bug.variant, what: bug.what, needs_fsync, is_at_its_place: Box::new(named) }
    }

    fn of_kernel(bug: kmod::Bug) -> Seeded {
        let what = format!("{}; `{}`", bug.what, bug.functions.join("` or `"));
        let (variant, is_at_its_place) = (bug.variant, Box::new(move |text: &str| bug.is_named_in(text)));
        Seeded { variant, what, needs_fsync: false, is_at_its_place }
    }
}

impl FsBugs {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let bed = Bed::new(self.fencepost.as_deref())?;
        let guest = self.kernel.then(|| Guest::new(&bed)).transpose()?;
        let bugs: Vec<Seeded> = match guest {
            Some(_) => kmod::bugs()?.into_iter().map(Seeded::of_kernel).collect(),
            None => fs::bugs()?.into_iter().map(Seeded::of_fuse).collect(),
        };
        let check = |bug: &Seeded, workloads: &[&str]| -> anyhow::Result<FsCheckOutcome> {
            let needs: &[&str] = if bug.needs_fsync { &["--needs-fsync"] } else { &[] };
            let workloads = [workloads, needs].concat();
            match &guest {
                Some(guest) => guest.check_stonefs(&bed, bug.variant, &workloads),
                None => bed.check(bug.variant, &workloads),
            }
        };
        let sample = bed.sample("seq-2", self.seq_2, self.seed)?.display().to_string();
        let (fuzz, seed) = (format!("{}s", self.fuzz), self.seed.to_string());
        let budget = format!("{}s", self.budget);
        println!("| bug | | seq-1 | {} of seq-2, seed {} | random, {} s |", self.seq_2, self.seed, self.fuzz);
        println!("| --- | --- | --- | --- | --- |");
        let mut missed = Vec::new();
        for bug in bugs.iter().filter(|bug| self.only.is_empty() || self.only.contains(&bug.variant)) {
            let set = if bug.needs_fsync { "fsync" } else { "seq-1" };
            let techniques: [&[&str]; 3] = [
                &["--ace", set, "--budget", &budget],
                &["--ops", &sample, "--budget", &budget],
                &["--fuzz", &fuzz, "--seed", &seed],
            ];
            let (mut cells, mut found) = (Vec::new(), false);
            for technique in techniques {
                if found && !self.all {
                    cells.push("not tried".to_owned());
                    continue;
                }
                let FsCheckOutcome { findings, seconds, cpu, .. } = check(bug, technique)?;
                let shown = Shown::of(&findings, &bug.is_at_its_place);
                found |= shown == Shown::AtItsPlace;
                let more = match findings.len() {
                    0 | 1 => String::new(),
                    count => format!(", {count} findings"),
                };
                cells.push(format!("{}{more}, {seconds:.0} s, {cpu:.0} CPU s", shown.text()));
            }
            println!("| {} | {} | {} |", bug.variant, bug.what, cells.join(" | "));
            if !found {
                missed.push(bug.variant);
            }
        }
        println!("\nNot found at its place: {missed:?}");
        Ok(if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
