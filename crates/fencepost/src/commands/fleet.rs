//! `fencepost fleet`: the status and the results of a campaign on several machines.

mod slurm;

use std::io::{self, Write};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use fleet::redis::address::Address;
use fleet::redis::link::Link;
use fleet::redis::survey::{self, SILENT, Standing, Status};

use crate::exit::Exit;
use crate::render;

/// How long Redis may be gone.
const AWAY_FOR: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  fencepost fleet status redis://main:6379/nightly
  fencepost fleet results redis://main:6379/nightly --message-format sarif > findings.sarif
  fencepost fleet cancel redis://main:6379/nightly
  fencepost fleet slurm --nodes 4 -- crash --budget none run.fptrace";

const STATUS_EXAMPLES: &str = "\
Examples:
  fencepost fleet status redis://main:6379/nightly
  fencepost fleet status @campaign.url";

const RESULTS_EXAMPLES: &str = "\
Examples:
  fencepost fleet results redis://main:6379/nightly
  fencepost fleet results redis://main:6379/nightly --message-format html > report.html";

const CANCEL_EXAMPLES: &str = "\
Examples:
  fencepost fleet cancel redis://main:6379/nightly";

/// Show a campaign on several machines (`--fleet`), end it, or start one on a cluster.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub enum Fleet {
    /// Show the progress of a campaign, and its workers.
    #[command(after_help = STATUS_EXAMPLES)]
    Status(CampaignArgs),
    Results(Results),
    /// End a campaign: its workers stop, and what it stored is removed.
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(CampaignArgs),
    Slurm(slurm::Slurm),
}

#[derive(Args, Debug)]
pub struct CampaignArgs {
    /// The campaign: redis://HOST[:PORT]/CAMPAIGN, or @FILE for a file with the URL.
    #[arg(value_name = "URL")]
    url: String,
}

/// Print the findings of a finished campaign; exit as the command that ran it did.
#[derive(Args, Debug)]
#[command(after_help = RESULTS_EXAMPLES)]
pub struct Results {
    /// The campaign: redis://HOST[:PORT]/CAMPAIGN, or @FILE for a file with the URL.
    #[arg(value_name = "URL")]
    url: String,
    /// Output format. `html` is there if the campaign was started with --html.
    #[arg(long, value_enum, default_value_t = Format::Json, value_name = "FORMAT")]
    message_format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
    Sarif,
    Junit,
    Html,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Sarif => "sarif",
            Format::Junit => "junit",
            Format::Html => "html",
        }
    }
}

impl Fleet {
    pub fn run(&self) -> Exit {
        let done = match self {
            Fleet::Slurm(slurm) => return slurm.run(),
            Fleet::Status(campaign) => with(&campaign.url, |address, link| {
                let status = survey::status(address, link).map_err(|error| error.to_string())?;
                let status = status.ok_or_else(|| format!("there is no campaign {address}"))?;
                Ok(shown(address, &status).map_or_else(|error| render::ended(Err(error)), |()| Exit::Clean))
            }),
            Fleet::Results(results) => with(&results.url, |address, link| results.print(address, link)),
            Fleet::Cancel(campaign) => with(&campaign.url, |address, link| {
                match survey::cancel(address, link).map_err(|error| error.to_string())? {
                    true => Ok(Exit::Clean),
                    false => Err(format!("there is no campaign {address}")),
                }
            }),
        };
        done.unwrap_or_else(|text| {
            render::error(text);
            Exit::Usage
        })
    }
}

fn with(url: &str, work: impl FnOnce(&Address, &mut Link) -> Result<Exit, String>) -> Result<Exit, String> {
    let address = Address::given(url).map_err(|error| error.to_string())?;
    let mut link = Link::new(&address, AWAY_FOR).map_err(|error| error.to_string())?;
    work(&address, &mut link)
}

fn shown(address: &Address, status: &Status) -> io::Result<()> {
    let Status { standing, kind, version, units, done, waiting, under_way, .. } = status;
    render::result(format_args!("{address}: {} ({kind}, fencepost {version})", standing.name()))?;
    match (standing, status.exit) {
        (Standing::Finished, Some(exit)) => render::result(format_args!("  {units} units, exit code {exit}"))?,
        _ => render::result(format_args!(
            "  units: {units} handed out so far, {done} done, {under_way} under way, {} waiting, {} set aside",
            waiting.saturating_sub(*under_way),
            status.aside.len()
        ))?,
    }
    if *standing == Standing::Running && !status.has_coordinator {
        render::result("  nobody coordinates it: run the command that started it again")?;
    }
    for worker in &status.workers {
        let silent = if worker.silent > SILENT { format!(", silent for {} s", worker.silent) } else { String::new() };
        render::result(format_args!(
            "  worker {}: {} jobs, {} units done{silent}",
            worker.name, worker.jobs, worker.done
        ))?;
    }
    for (worker, why) in &status.refusals {
        render::result(format_args!("  worker {worker} went away: {why}"))?;
    }
    for (unit, why) in &status.aside {
        let said = why.failures.join("; ");
        render::result(format_args!(
            "  unit {}… set aside: {} workers lost; {said}",
            &unit[..12.min(unit.len())],
            why.lost
        ))?;
    }
    Ok(())
}

impl Results {
    fn print(&self, address: &Address, link: &mut Link) -> Result<Exit, String> {
        let told = |error: fleet::redis::link::LinkError| error.to_string();
        let status = survey::status(address, link).map_err(told)?;
        let status = status.ok_or_else(|| format!("there is no campaign {address}"))?;
        let Some(code) = status.exit.filter(|_| status.standing == Standing::Finished) else {
            render::warning(format_args!("{address} is not finished: `fencepost fleet status` says how far it is"));
            return Ok(Exit::Incomplete);
        };
        let document = survey::document(address, link, self.message_format.name()).map_err(told)?;
        let document =
            document.ok_or_else(|| format!("the campaign has no {} document", self.message_format.name()))?;
        let mut out = io::stdout().lock();
        let written = out.write_all(&document).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
        Ok(match render::ended(written) {
            Exit::Clean => Exit::Target(code),
            failed => failed,
        })
    }
}
