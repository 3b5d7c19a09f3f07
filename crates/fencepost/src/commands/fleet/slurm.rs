//! `fencepost fleet slurm`: one batch script with a coordinator, workers on every node and, if no URL is given, its own Redis.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use fleet::redis::address::{Address, credentials};

use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost fleet slurm --nodes 4 -- crash --budget none run.fptrace
  fencepost fleet slurm --nodes 8 --partition=short --time=4:00:00 -- fs check --ace seq-2 --mkfs ... --fuse ...
  fencepost fleet slurm --nodes 2 --print -- check -- ./kv pool

Options of sbatch come last, before `--`. Without --url, the script starts a Redis server with a
random password on its first node, and stops it at the end. Fencepost, the target and the current
directory must have the same path on all nodes.";

/// Run a campaign as a job of Slurm: writes one batch script and submits it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Slurm {
    /// Number of nodes.
    #[arg(long, value_name = "N")]
    nodes: u32,
    /// Workers on each node.
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: u32,
    /// Number of units that a worker runs in parallel. [default: the number of processors]
    #[arg(long, value_name = "N")]
    jobs: Option<u32>,
    /// Use an existing Redis: redis://HOST[:PORT]/CAMPAIGN, or @FILE for a file with the URL.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Where to write the script.
    #[arg(long, value_name = "FILE", default_value = "fencepost.sbatch")]
    script: PathBuf,
    /// Print the script and do not submit it.
    #[arg(long)]
    print: bool,
    /// Options of sbatch such as --partition=NAME, then `--` and the command of the campaign without `fencepost`: check, crash, fs check or
    /// fuzz.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "[SBATCH OPTION]... -- CMD"
    )]
    rest: Vec<OsString>,
}

impl Slurm {
    pub fn run(&self) -> Exit {
        match self.submitted() {
            Ok(exit) => exit,
            Err(text) => {
                render::error(text);
                Exit::Usage
            }
        }
    }

    fn submitted(&self) -> Result<Exit, String> {
        let script = self.script()?;
        if self.print {
            return Ok(render::ended(render::result(script.trim_end())));
        }
        let path = self.script.display();
        fs::write(&self.script, &script).map_err(|error| format!("cannot write {path}: {error}"))?;
        let mut sbatch = Command::new("sbatch");
        // Those of a server that is named go along in the environment of the job.
        sbatch.envs(credentials().into_iter().filter_map(|(name, value)| Some((name, value?))));
        let submitted = sbatch.arg(&self.script).output();
        let submitted = submitted.map_err(|error| format!("cannot run sbatch: {error}; {path} is there to submit"))?;
        if !submitted.status.success() {
            return Err(format!("sbatch refuses {path}: {}", String::from_utf8_lossy(&submitted.stderr).trim()));
        }
        Ok(render::ended(render::result(String::from_utf8_lossy(&submitted.stdout).trim_end())))
    }

    /// Options of sbatch, and the command. Without options, the `--` before the command is not among the words.
    fn divided(&self) -> (&[OsString], &[OsString]) {
        let has_options = self.rest.first().is_some_and(|word| word.as_bytes().starts_with(b"-"));
        match self.rest.iter().position(|word| word == "--").filter(|_| has_options) {
            Some(at) => (&self.rest[..at], &self.rest[at + 1..]),
            None => (&[], &self.rest),
        }
    }

    fn script(&self) -> Result<String, String> {
        let (options, command) = self.divided();
        let (command, rest) = command.split_at(words_of_command(command)?);
        let own = env::current_exe().map_err(|error| error.to_string())?;
        let dir = env::current_dir().map_err(|error| error.to_string())?;
        let words = |words: &[OsString]| words.iter().map(|word| quoted(word)).collect::<Vec<String>>().join(" ");
        let options: String = options.iter().map(|option| format!("#SBATCH {}\n", option.to_string_lossy())).collect();
        let redis = match &self.url {
            Some(url) => {
                // A password in it is refused here, before it gets into a file.
                Address::given(url).map_err(|error| error.to_string())?;
                format!("url={}\n", quoted(OsStr::new(url)))
            }
            None => REDIS.to_owned(),
        };
        let jobs = self.jobs.map_or_else(String::new, |jobs| format!(" --jobs {jobs}"));
        Ok(format!(
            "#!/bin/sh\n#SBATCH --job-name=fencepost\n#SBATCH --nodes={nodes}\n#SBATCH --ntasks-per-node={workers}\n{options}\
             # Written by `fencepost fleet slurm`.\nset -u\ncd {dir} || exit 2\nfencepost={own}\n{redis}\
             srun --overlap \"$fencepost\" worker{jobs} \"$url\" &\nworkers=$!\n\
             \"$fencepost\" {command} --fleet \"$url\" {rest}\nexit=$?\n\
             # Workers go home when the campaign is over. If it is not, nobody needs them any more.\n\
             case $exit in 0 | 1 | 5) ;; *) kill \"$workers\" 2> /dev/null ;; esac\n\
             wait \"$workers\"\nexit \"$exit\"\n",
            nodes = self.nodes,
            workers = self.workers,
            dir = quoted(dir.as_os_str()),
            own = quoted(own.as_os_str()),
            command = words(command),
            rest = words(rest),
        ))
    }
}

/// On the first node, at the address that the other nodes know it by. The password is in no file and no list of processes.
const REDIS: &str = r#"host=$(scontrol show node "$SLURMD_NODENAME" | sed -n 's/.*NodeAddr=\([^ ]*\).*/\1/p')
address=$(getent ahostsv4 "$host" | awk 'NR == 1 { print $1 }')
port=$((20000 + SLURM_JOB_ID % 20000))
FENCEPOST_FLEET_PASSWORD=$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')
export FENCEPOST_FLEET_PASSWORD
printf 'bind %s\nport %s\nrequirepass %s\nsave ""\nappendonly no\n' "$address" "$port" "$FENCEPOST_FLEET_PASSWORD" |
    redis-server - > /dev/null &
redis=$!
trap 'kill "$redis" 2> /dev/null' EXIT
trap 'exit 143' TERM INT
url=redis://$address:$port/slurm-$SLURM_JOB_ID
"#;

/// `check`, or `fs check`.
fn words_of_command(command: &[OsString]) -> Result<usize, String> {
    let word = |number: usize| command.get(number).and_then(|word| word.to_str());
    match (word(0), word(1)) {
        (Some("check" | "crash" | "fuzz"), _) => Ok(1),
        (Some("fs"), Some("check")) => Ok(2),
        (first, _) => {
            let first = first.unwrap_or_default();
            Err(format!("`{first}` has no --fleet; write check, crash, fs check or fuzz behind `--`"))
        }
    }
}

/// As one word of the shell.
fn quoted(word: &OsStr) -> String {
    let text = String::from_utf8_lossy(word.as_bytes());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slurm(command: &str, url: Option<&str>) -> Slurm {
        Slurm {
            nodes: 3,
            workers: 2,
            jobs: Some(4),
            url: url.map(str::to_owned),
            script: "s".into(),
            print: true,
            rest: command.split('|').map(OsString::from).collect(),
        }
    }

    #[test]
    fn the_script_starts_workers_and_the_coordinator() {
        let script = slurm("--partition=short|--|fs|check|--fuse|my fs {pool}|--ops|it's", None).script().unwrap();
        for line in [
            "#SBATCH --nodes=3",
            "#SBATCH --ntasks-per-node=2",
            "#SBATCH --partition=short",
            "srun --overlap \"$fencepost\" worker --jobs 4 \"$url\" &",
            r#""$fencepost" fs check --fleet "$url" --fuse 'my fs {pool}' --ops 'it'\''s'"#,
        ] {
            assert!(script.lines().any(|own| own == line), "{line}\n{script}");
        }
        assert!(script.contains("requirepass %s"), "{script}");
    }

    #[test]
    fn a_server_that_is_named_is_used_and_passwords_are_refused() {
        let script = slurm("crash|run.fptrace", Some("redis://main/night")).script().unwrap();
        assert!(script.contains("url=redis://main/night\n") && !script.contains("redis-server"), "{script}");
        let refused = slurm("crash|run.fptrace", Some("redis://:s3cret@main/night")).script().unwrap_err();
        assert!(!refused.contains("s3cret"), "{refused}");
        let script = slurm("check|--|./kv", None).script().unwrap();
        assert!(script.contains("check --fleet \"$url\" -- ./kv\n"), "{script}");
        assert!(slurm("lint|x", None).script().unwrap_err().contains("no --fleet"));
    }
}
