//! `fencepost fs kernel`: fetches a kernel to check file systems with.

use std::path::PathBuf;

use clap::Args;
use vm::debian;

use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost fs kernel
  fencepost fs check --kernel debian --fs ext4 --mkfs 'mkfs.ext4 -q {device}' --needs-fsync

Nothing is installed: the package is downloaded with apt-get and unpacked into that folder.";

/// Fetch Debian's cloud kernel, for `fencepost fs check --kernel debian`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Kernel {
    /// The folder to unpack it into. [default: fencepost/kernel in your cache folder]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

impl Kernel {
    pub fn run(&self) -> Exit {
        let fetched = self.to.clone().map_or_else(debian::folder, Ok).and_then(|folder| debian::fetch(&folder));
        match fetched {
            Ok(fetched) => {
                println!("{}", fetched.kernel.display());
                println!("{}", fetched.modules.display());
                Exit::Clean
            }
            Err(error) => {
                render::error(error);
                Exit::Usage
            }
        }
    }
}
