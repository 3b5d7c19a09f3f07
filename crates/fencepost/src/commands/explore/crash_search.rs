//! `explore --check`: the crash search on the input of a path, as `fencepost check` does it.

use std::fs::File;
use std::process::Command;

use serde_json::Value;
use solve::input::Shape;
use solve::session::Found;

use super::{Explore, ExploreOutcome, words};
use crate::cli::MessageFormat;
use crate::render;

impl Explore {
    pub(super) fn crash_search(&self, found: &Found<'_>, shape: &Shape, outcome: &mut ExploreOutcome) {
        let Some(path) = self.save(found, shape, &format!("path-{:05}", found.number), outcome) else { return };
        let result = File::open(&path).and_then(|input| {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["check", "--no-lint", "--message-format", "json"]);
            for glob in &self.pm {
                command.args(["--pm", glob]);
            }
            if let Some(recover) = &self.recover {
                command.args(["--recover", recover]);
            }
            command.args(["--budget", &self.budget]);
            if self.driver.any() || self.has_operations() {
                command.arg("--ops").arg(&path);
            }
            if let Some(each) = &self.driver.op_command {
                command.args(["--op-command", each]);
            }
            if let Some(place) = &self.driver.op_socket {
                command.args(["--op-socket", place, "--op-protocol", self.driver.protocol_name()]);
            }
            command.arg("--").args(shape.render_command(&self.command, found.input, &path));
            for pool in &found.ran.recording.pools {
                // The pool begins as the recorded run's did: the check makes its own.
                let _ = std::fs::remove_file(&pool.path);
            }
            command.stdin(input).output()
        });
        let output = match result {
            Ok(output) => output,
            Err(error) => {
                outcome.failed = Some(format!("cannot check the crash states of {}: {error}", path.display()));
                return;
            }
        };
        if !matches!(output.status.code(), Some(0 | 1)) {
            outcome.unchecked += 1;
            let told = String::from_utf8_lossy(&output.stderr).lines().find(|l| l.contains("error")).map(str::to_owned);
            let why = told.unwrap_or_else(|| format!("`fencepost check` ended with {}", output.status));
            outcome.unchecked_why.get_or_insert(why);
        }
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(value) = serde_json::from_str::<Value>(line) else { continue };
            let Some(id) = value["id"].as_str().filter(|_| value["type"] == "finding") else { continue };
            if !outcome.findings.insert(id.to_owned()) {
                continue;
            }
            let Some(input) = self.save(found, shape, &format!("finding-{id}"), outcome) else { return };
            let shown = match self.message_format {
                MessageFormat::Json => words::with_input(line, &input, outcome.elapsed()),
                MessageFormat::Human => format!(
                    "{}: {} [{}]\n   input: {}\n",
                    value["severity"].as_str().unwrap_or_default(),
                    value["title"].as_str().unwrap_or_default(),
                    value["rule"].as_str().unwrap_or_default(),
                    input.display()
                ),
            };
            if let Err(error) = render::result(shown) {
                outcome.failed = Some(error.to_string());
            }
        }
    }
}
