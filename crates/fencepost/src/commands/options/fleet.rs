//! Work that is shared with other machines: the options of `check` and `crash`.

use std::env;
use std::path::Path;
use std::time::Duration;

use check::elsewhere::{Fleet, KIND};
use clap::Args;
use fleet::blob::BlobId;
use fleet::redis::address::Address;
use fleet::redis::coordinator::{Coordinator, FleetEvent, Opening};

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
    /// Give the units of a worker that is silent for so long to another one.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration, requires = "fleet")]
    lease: Duration,
    /// Variable of the environment that recoveries on other machines need. Repeatable.
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
    /// Becomes the coordinator of the campaign, if there is to be one.
    pub fn open(&self) -> Result<Option<OpenFleet>, String> {
        let Some(url) = &self.fleet else { return Ok(None) };
        let address = Address::given(url).map_err(|error| error.to_string())?;
        let arguments: Vec<Vec<u8>> = env::args_os().map(|arg| arg.as_encoded_bytes().to_vec()).collect();
        let parts: Vec<&[u8]> = arguments.iter().skip(1).map(Vec::as_slice).collect();
        let opening =
            Opening { version: version(), kind: KIND.into(), request: BlobId::of_parts(&parts), lease: self.lease };
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
        let campaign = campaign.map_err(|error| error.to_string())?;
        Ok(Some(OpenFleet { fleet: Fleet::new(campaign, self.fleet_env.clone()) }))
    }
}

impl OpenFleet {
    /// Leaves the result where `fencepost fleet results` finds it. Returns how the command ends.
    pub fn finish(open: Option<OpenFleet>, document: &Document<'_>, page: Option<&Path>, exit: Exit) -> Exit {
        let Some(open) = open else { return exit };
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
        let mut campaign = open.fleet.into_campaign();
        if let Err(error) = campaign.finish(exit.code(), &documents) {
            render::warning(format_args!("the result could not be left in the campaign: {error}"));
        }
        exit
    }
}
