//! A built variant with its workload, and `fencepost check` on it.

use std::fs::File;
use std::process::Stdio;

use targets::crash::{CrashTarget, Variant};

use crate::target_support::{CHECK, Checked, RECOVERY_LIMIT, Workshop, is_pmdk};

/// Of a server, which is two processes more.
const SERVER_LIMIT: &str = "10s";
/// Enough for every table to grow and every log to be compacted.
const OPERATIONS: &str = "60";
/// A recovery of libpmemobj takes more than ten milliseconds even natively, and a server is started anew for each.
const OPERATIONS_OF_SLOW: &str = "20";
const STRATEGY: &str = "program-order,guaranteed-only,visible:8";

pub struct Bench<'t>(Workshop<'t>);

impl<'t> Bench<'t> {
    pub fn new(target: &'t CrashTarget, variant: Variant, purpose: &str) -> Result<Bench<'t>, String> {
        Workshop::new(target, variant, "ops", purpose).map(Bench)
    }

    /// A server is asked through its socket, and does nothing without operations.
    pub fn is_server(target: &CrashTarget) -> bool {
        target.run.iter().any(|word| word == "{socket}")
    }

    /// With operations, and the readback of queries.
    pub fn check(&self, seed: u32) -> Result<Checked, String> {
        let seed = seed.to_string();
        let grammar = self.grammar()?;
        let mut options = vec!["--no-select", "--grammar", &grammar, "--count", self.operations(), "--seed", &seed];
        if Bench::is_server(self.0.target) {
            options.extend(["--op-socket", "{socket}"]);
        }
        self.run(&options, Stdio::null())
    }

    /// The same workload on standard input, and recovery alone to tell what went wrong.
    pub fn check_recovery_alone(&self, seed: u32) -> Result<Checked, String> {
        let grammar = self.grammar()?;
        let seed = seed.to_string();
        let generate = ["ops", "generate", "--grammar", &grammar, "--count", self.operations(), "--seed", &seed];
        self.0.fencepost(&[&generate[..], &["--output", "operations"]].concat(), Stdio::null())?;
        let workload = self.0.folder.join("operations");
        self.run(&[], File::open(&workload).map_err(|error| format!("{}: {error}", workload.display()))?.into())
    }

    pub fn remove(self) {
        self.0.remove();
    }

    fn is_slow(&self) -> bool {
        is_pmdk(self.0.target) || Bench::is_server(self.0.target)
    }

    fn operations(&self) -> &'static str {
        if self.is_slow() { OPERATIONS_OF_SLOW } else { OPERATIONS }
    }

    fn grammar(&self) -> Result<String, String> {
        let path = self.0.target.grammar.as_ref().ok_or("the program has no grammar")?;
        Ok(path.display().to_string())
    }

    fn run(&self, options: &[&str], input: Stdio) -> Result<Checked, String> {
        let limit = if Bench::is_server(self.0.target) { SERVER_LIMIT } else { RECOVERY_LIMIT };
        let run = self.0.run_command();
        let mut arguments = CHECK.to_vec();
        arguments.extend(["--timeout", limit, "--strategy", STRATEGY]);
        if is_pmdk(self.0.target) {
            arguments.extend(["--occurrences", "2"]);
        }
        arguments.extend(options);
        arguments.extend(self.0.target.options.iter().map(String::as_str));
        arguments.push("--");
        arguments.extend(run.iter().map(String::as_str));
        Checked::parse(self.0.fencepost(&arguments, input)?)
    }
}
