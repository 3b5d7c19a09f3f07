//! Work that is shared with other machines: the options of `check`, `crash`, `fs check` and `fuzz`.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use check::elsewhere::{Fleet, KIND};
use clap::Args;
use fleet::blob::BlobId;
use fleet::dispatch::Campaign;
use fleet::program::{self, ProgramJob};
use fleet::redis::address::Address;
use fleet::redis::coordinator::{Coordinator, FleetEvent, Opening};
use fleet::same::{SameFile, is_taken_over};

use super::super::output::document::Document;
use super::crash::duration;
use crate::exit::Exit;
use crate::render;

#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Other machines")]
pub struct FleetOptions {
    /// Share the work with `fencepost worker URL` on other machines, through Redis: redis://HOST[:PORT]/CAMPAIGN, or @FILE for a
    /// file with the URL.
    #[arg(long, value_name = "URL")]
    fleet: Option<String>,
    /// Give the units of a worker that is silent for this long to another one.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration, requires = "fleet")]
    lease: Duration,
    /// Environment variable to pass to recoveries on other machines. Repeatable.
    #[arg(long, value_name = "NAME", requires = "fleet")]
    fleet_env: Vec<String>,
}

/// A campaign that this command runs.
#[derive(Debug)]
pub struct OpenFleet {
    pub fleet: Fleet<Coordinator>,
}

/// What must be the same on all machines. Builds of one version are told apart by their commit.
pub fn version() -> String {
    format!("{} ({})", env!("CARGO_PKG_VERSION"), env!("FENCEPOST_BUILD_COMMIT"))
}

impl FleetOptions {
    pub fn is_given(&self) -> bool {
        self.fleet.is_some()
    }

    /// Becomes the coordinator of a campaign that judges crash points, if there is to be one.
    pub fn open(&self) -> Result<Option<OpenFleet>, String> {
        let campaign = self.coordinator(KIND)?;
        Ok(campaign.map(|campaign| OpenFleet { fleet: Fleet::new(campaign, self.fleet_env.clone()) }))
    }

    /// Becomes the coordinator of a campaign whose units are runs of this command, `fencepost COMMAND --unit FOLDER ...`, if there is
    /// to be one. Programs and files of the target's `commands` must be the same everywhere, as must `files`.
    pub fn open_runs(
        &self,
        command: &[&str],
        commands: &[Vec<OsString>],
        files: &[Option<&Path>],
    ) -> Result<Option<Coordinator>, String> {
        let Some(mut campaign) = self.coordinator(program::KIND)? else { return Ok(None) };
        self.begin_runs(&mut campaign, command, commands, files)?;
        Ok(Some(campaign))
    }

    /// Says what the units of such a campaign have in common.
    pub fn begin_runs(
        &self,
        campaign: &mut dyn Campaign,
        command: &[&str],
        commands: &[Vec<OsString>],
        files: &[Option<&Path>],
    ) -> Result<(), String> {
        let dir = env::current_dir().map_err(|error| error.to_string())?;
        let mut same: Vec<PathBuf> = files.iter().flatten().map(|file| dir.join(file)).collect();
        same.push(dir.join("fencepost.toml"));
        for words in commands {
            same.extend(words.first().and_then(|program| found(program, &dir)));
            same.extend(words.iter().skip(1).map(|word| dir.join(word)));
        }
        same.retain(|path| path.is_file());
        let is_sent = |name: &str| {
            is_taken_over(name, &self.fleet_env)
                || (name.starts_with("FENCEPOST_") && !name.starts_with("FENCEPOST_FLEET"))
        };
        let env: Vec<(OsString, OsString)> =
            env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_sent)).collect();
        let args: Vec<OsString> = env::args_os().skip(1).collect();
        // Options of all commands may stand before the command.
        let at = args.iter().position(|arg| arg == command[0]).map_or(0, |at| at + command.len());
        let (leading, args) = args.split_at(at.min(args.len()));
        let args = without_fleet(args.iter().cloned());
        let job = ProgramJob::new(leading, &args, &dir, &env, SameFile::of(same));
        let told = |error: fleet::dispatch::CampaignError| error.0.to_string();
        let job = campaign.put(job.bytes()).map_err(told)?;
        campaign.begin(job).map_err(told)
    }

    fn coordinator(&self, kind: &str) -> Result<Option<Coordinator>, String> {
        let Some(url) = &self.fleet else { return Ok(None) };
        let address = Address::given(url).map_err(|error| error.to_string())?;
        let arguments: Vec<Vec<u8>> = env::args_os().map(|arg| arg.as_encoded_bytes().to_vec()).collect();
        let parts: Vec<&[u8]> = arguments.iter().skip(1).map(Vec::as_slice).collect();
        let opening =
            Opening { version: version(), kind: kind.into(), request: BlobId::of_parts(&parts), lease: self.lease };
        let shown = address.to_string();
        let on_event = move |event: FleetEvent| match event {
            FleetEvent::NoWorker => {
                render::warning("no worker has come yet");
                render::help(format_args!("start one on every machine: fencepost worker {shown}"));
            }
            FleetEvent::Workers(1) => render::note("1 worker"),
            FleetEvent::Workers(count) => render::note(format_args!("{count} workers")),
            FleetEvent::Refusal { worker, why } => render::warning(format_args!("worker {worker} went away: {why}")),
            FleetEvent::PutBack => render::warning("Redis has lost the campaign: it was put back, and goes on"),
            FleetEvent::Resumed { units } => {
                render::note(format_args!("{units} units of this campaign were done already"));
            }
        };
        let campaign = Coordinator::open(&address, opening, None, Box::new(on_event));
        campaign.map(Some).map_err(|error| error.to_string())
    }
}

/// A program as a shell finds it.
fn found(program: &OsString, dir: &Path) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(dir.join(program));
    }
    let paths = env::var_os("PATH")?;
    env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// A command line without what makes its process the coordinator.
fn without_fleet(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut kept, mut is_value, mut is_targets) = (Vec::new(), false, false);
    for arg in args {
        let text = arg.to_string_lossy();
        is_targets |= text == "--";
        let own = ["--fleet", "--lease", "--fleet-env"];
        let is_option = !is_targets && own.iter().any(|name| text == *name);
        let is_assigned = !is_targets && own.iter().any(|name| text.starts_with(&format!("{name}=")));
        if is_option || is_assigned || is_value {
            is_value = is_option;
            continue;
        }
        kept.push(arg);
    }
    kept
}

impl OpenFleet {
    /// The command has failed: nobody shall wait for its units.
    pub fn abandon(open: Option<OpenFleet>, exit: Exit) -> Exit {
        if let Some(open) = open {
            open.fleet.into_campaign().abandon();
        }
        exit
    }

    /// Leaves the result where `fencepost fleet results` finds it. Returns how the command ends.
    pub fn finish(open: Option<OpenFleet>, document: &Document<'_>, page: Option<&Path>, exit: Exit) -> Exit {
        finish(open.map(|open| open.fleet.into_campaign()), document, page, exit)
    }
}

/// Leaves the result where `fencepost fleet results` finds it. Returns how the command ends.
pub fn finish(campaign: Option<Coordinator>, document: &Document<'_>, page: Option<&Path>, exit: Exit) -> Exit {
    let Some(mut campaign) = campaign else { return exit };
    if exit == Exit::Interrupted {
        // The same command goes on with it.
        return exit;
    }
    let mut documents = vec![
        ("json", document.json().into_bytes()),
        ("sarif", document.sarif().into_bytes()),
        ("junit", document.junit().into_bytes()),
    ];
    documents.extend(page.and_then(|page| std::fs::read(page).ok()).map(|page| ("html", page)));
    if let Err(error) = campaign.finish(exit.code(), &documents) {
        render::warning(format_args!("the result could not be left in the campaign: {error}"));
    }
    exit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_units_has_no_fleet() {
        let line = "--ops a --fleet redis://h/c --lease=5s --fleet-env HOME --mkfs m -- --fleet x";
        let kept = without_fleet(line.split(' ').map(OsString::from));
        assert_eq!(kept.join(&OsString::from(" ")), "--ops a --mkfs m -- --fleet x");
    }
}
