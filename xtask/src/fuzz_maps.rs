//! `cargo xtask fuzz-maps`: the bugs that PMFuzz found in PMDK's maps (§5.4) are found by `fencepost fuzz`, from a grammar of `mapcli` and nothing
//! else.
//!
//! Bugs 1 to 6 are in drivers that Debian's version has mended: `targets::pmdk` undoes the repair in a copy. Bugs 8 to 12 are needless
//! logging that is there still. Bug 7 is in a memcached that Debian does not have.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use targets::pmdk::{self, Driver};

use crate::bench::MAP_GRAMMAR;
use crate::build;
use crate::scratch::Scratch;

#[derive(Args, Debug)]
pub struct FuzzMaps {
    /// The most that a campaign takes.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    time: u64,
    #[arg(long, default_value_t = 2)]
    jobs: u32,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these bugs, by their number in the paper. Repeatable.
    #[arg(long = "bug", value_name = "NUMBER")]
    bugs: Vec<u32>,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

/// How a bug is known again.
#[derive(Clone, Copy, Debug)]
enum Sign {
    /// An error: the driver as Debian has it shows none.
    Error,
    /// Needless logging in this line.
    Line(&'static str, u64),
}

/// A bug of the paper.
#[derive(Debug)]
struct Published {
    number: u32,
    map: &'static str,
    driver: Driver,
    sign: Sign,
    what: &'static str,
}

const fn unmade(number: u32, map: &'static str) -> Published {
    let what = "a crash while the map is made leaves none, and it is never made again";
    Published { number, map, driver: Driver::MakesOnce, sign: Sign::Error, what }
}

const fn needless(number: u32, map: &'static str, file: &'static str, line: u64, what: &'static str) -> Published {
    Published { number, map, driver: Driver::Debian, sign: Sign::Line(file, line), what }
}

const PUBLISHED: [Published; 11] = [
    unmade(1, "hashmap_tx"),
    unmade(2, "btree"),
    unmade(3, "rbtree"),
    unmade(4, "rtree"),
    unmade(5, "skiplist"),
    Published {
        number: 6,
        map: "hashmap_atomic",
        driver: Driver::NeverRecovers,
        sign: Sign::Error,
        what: "the map's own recovery is never called",
    },
    needless(8, "hashmap_tx", "hashmap_tx.c", 61, "logs the map that it has just allocated"),
    needless(9, "rbtree", "rbtree_map.c", 200, "logs the node that it has just allocated"),
    needless(10, "rbtree", "rbtree_map.c", 255, "logs the first node, which is logged or new"),
    needless(11, "rbtree", "rbtree_map.c", 226, "logs the parent, which a rotation has logged"),
    needless(12, "btree", "btree_map.c", 249, "logs the node, which a split has logged or made"),
];

/// The finding that shows a bug: what it says, and when it came.
struct Shown {
    rule: String,
    place: String,
    second: u64,
    executions: u64,
}

impl FuzzMaps {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let fencepost = match &self.fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        let folder = build::targets_folder()?;
        let scratch = Scratch::new("fuzz-maps")?;
        fs::write(scratch.path().join("map.toml"), MAP_GRAMMAR)?;
        println!("## `fencepost fuzz --time {}s --jobs {} --seed {}`\n", self.time, self.jobs, self.seed);
        println!(
            "| bug of PMFuzz | map | what | found | seconds | executions |\n| ---: | --- | --- | --- | ---: | ---: |"
        );
        let mut missed = 0;
        for bug in PUBLISHED.iter().filter(|bug| self.bugs.is_empty() || self.bugs.contains(&bug.number)) {
            let mapcli = pmdk::build_driver(&folder, bug.driver)?;
            let (number, map, what) = (bug.number, bug.map, bug.what);
            match self.shown(&fencepost, &mapcli, bug, &scratch)? {
                Some(Shown { rule, place, second, executions }) => {
                    println!("| {number} | {map} | {what} | {rule}, {place} | {second} | {executions} |");
                }
                None => {
                    missed += 1;
                    println!("| {number} | {map} | {what} | no | | |");
                }
            }
        }
        println!("\n{missed} not found");
        Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn shown(
        &self,
        fencepost: &Path,
        mapcli: &Path,
        bug: &Published,
        scratch: &Scratch,
    ) -> anyhow::Result<Option<Shown>> {
        let folder = scratch.fresh("campaign")?;
        let mut command = Command::new(fencepost);
        command.current_dir(&folder).env("PMEM_IS_PMEM_FORCE", "1");
        command.args(["fuzz", "--progress", "never", "--grammar", "../map.toml", "--time", &format!("{}s", self.time)]);
        command.args(["--jobs", &self.jobs.to_string(), "--seed", &self.seed.to_string()]);
        match bug.sign {
            Sign::Error => command.args(["--no-lint", "--until-found"]),
            Sign::Line(..) => command.args(["--check-budget", "1s"]),
        };
        command.arg("--").arg(mapcli).args([bug.map, "pool", "1"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().context("fencepost fuzz")?;
        let text = fs::read_to_string(folder.join("fuzz-out/findings.jsonl")).unwrap_or_default();
        let found = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Ok(found.filter_map(|found| shown(&found, bug.sign)).next())
    }
}

/// The finding, if it is the bug with this sign.
fn shown(found: &Value, sign: Sign) -> Option<Shown> {
    let finding = &found["finding"];
    let location = &finding["locations"][0];
    let file = location["file"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let line = location["line"].as_u64().unwrap_or(0);
    let is_it = match sign {
        Sign::Error => finding["severity"] == "error",
        Sign::Line(name, number) => file == name && line == number,
    };
    is_it.then(|| Shown {
        rule: finding["rule"].as_str().unwrap_or_default().to_owned(),
        place: format!("`{file}:{line}`"),
        second: found["second"].as_u64().unwrap_or(0),
        executions: found["execution"].as_u64().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_is_known_by_its_sign() {
        let found = serde_json::json!({
            "finding": {"rule": "FP0401", "severity": "warning", "locations": [{"file": "/x/rbtree_map.c", "line": 200}]},
            "second": 7, "execution": 90
        });
        let hit = shown(&found, Sign::Line("rbtree_map.c", 200)).expect("the line is right");
        assert_eq!((hit.second, hit.executions, hit.place.as_str()), (7, 90, "`rbtree_map.c:200`"));
        assert!(shown(&found, Sign::Line("rbtree_map.c", 201)).is_none());
        assert!(shown(&found, Sign::Error).is_none());
    }
}
