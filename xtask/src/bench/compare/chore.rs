//! The chore: installs the peers, runs the three comparisons, prints them as Markdown, and draws the plots.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use targets::pmdk;

use super::costs::{self, CostPlan};
use super::peers::Peers;
use super::{found, pools};
use crate::build;
use crate::scratch::Scratch;

#[derive(Args, Debug)]
pub struct CompareBench {
    /// A form that takes little more than a minute: one map without its longest workload, fewer bugs and pools.
    #[arg(long)]
    quick: bool,
    /// Draw cost-workload.svg and cost-pool.svg into this folder.
    #[arg(long, value_name = "FOLDER")]
    plots: Option<PathBuf>,
    /// A run that takes longer, in seconds, is ended and shown as ">".
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    limit: u64,
    /// Say what is missing instead of installing it.
    #[arg(long)]
    no_install: bool,
    /// Use this executable instead of building Fencepost.
    #[arg(long, value_name = "FILE")]
    fencepost: Option<PathBuf>,
}

impl CompareBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let peers = Peers::look(!self.no_install)?;
        let fencepost = match &self.fencepost {
            Some(path) => fs::canonicalize(path).with_context(|| path.display().to_string())?,
            None => build::fencepost()?,
        };
        let mapcli = pmdk::build_mapcli(&build::targets_folder()?)?;
        let scratch = Scratch::new("bench-compare")?;
        let limit = Duration::from_secs(self.limit.max(1));
        peers.tell(&fencepost)?;
        let plan = if self.quick { CostPlan::quick(limit) } else { CostPlan::whole(limit) };
        let costs = costs::run(&plan, &peers, &fencepost, &mapcli, &scratch)?;
        let pools = pools::run(self.quick, &fencepost, &scratch, limit)?;
        found::run(self.quick, &peers, &fencepost, &scratch, limit)?;
        peers.tell_load()?;
        if let Some(folder) = &self.plots {
            for (name, plot) in
                [("cost-workload.svg", costs::plot(&plan, &costs)), ("cost-pool.svg", pools::plot(&pools))]
            {
                let path = folder.join(name);
                fs::write(&path, plot.svg()).with_context(|| path.display().to_string())?;
                eprintln!("{} is drawn", path.display());
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
