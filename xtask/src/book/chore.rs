//! The chore's options.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::site::Site;
use crate::build;

#[derive(Args, Debug)]
pub struct Book {
    /// Where the book goes. [default: target/book]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl Book {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let out = match &self.out {
            Some(out) => out.clone(),
            // The folder of the profile is in the target folder.
            None => build::profile_folder()?.with_file_name("book"),
        };
        let site = Site::of_this_repository();
        let written = site.write(&out)?;
        println!("{} pages: {}", written.pages.len(), out.join("index.html").display());
        Ok(ExitCode::SUCCESS)
    }
}
