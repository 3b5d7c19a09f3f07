//! Examples of Debian's PMDK packages that take arguments, with what of these is free to be solved for.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::TargetError;
use crate::compile::compile;

const DOCUMENTATION: &str = "/usr/share/doc";

/// An example, and its command line behind the program's name.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    pub name: &'static str,
    /// The package with its source, and the file in its folder of examples.
    package: &'static str,
    source: &'static str,
    libraries: &'static [&'static str],
    /// `{NAME:sym:BYTES}` is free; the pool is the file `pool`.
    pub arguments: &'static [&'static str],
    /// Bytes of a pool that must be there before it starts.
    pool: Option<u64>,
}

const OBJ: &[&str] = &["-lpmemobj", "-lpmem", "-pthread"];
const PMEM2: &[&str] = &["-lpmem2"];

pub const EXAMPLES: [Example; 8] = [
    Example {
        name: "btree",
        package: "libpmemobj-dev",
        source: "btree.c",
        libraries: OBJ,
        arguments: &["pool", "{op:sym:1}", "{key:sym:3}", "text"],
        pool: None,
    },
    Example {
        name: "fifo",
        package: "libpmemobj-dev",
        source: "linkedlist/fifo.c",
        libraries: OBJ,
        arguments: &["pool", "{command:sym:6}", "x"],
        pool: None,
    },
    Example {
        name: "lists",
        package: "libpmemobj-dev",
        source: "lists.c",
        libraries: OBJ,
        arguments: &["pool", "{list:sym:1}", "{type:sym:3}", "{value:sym:5}"],
        pool: None,
    },
    Example {
        name: "obj_pmemlog",
        package: "libpmemobj-dev",
        source: "pmemlog/obj_pmemlog.c",
        libraries: OBJ,
        arguments: &["c", "pool", "{first:sym:4}", "{second:sym:4}"],
        pool: None,
    },
    Example {
        name: "obj_pmemlog_simple",
        package: "libpmemobj-dev",
        source: "pmemlog/obj_pmemlog_simple.c",
        libraries: OBJ,
        arguments: &["c", "pool", "{first:sym:4}", "{second:sym:4}"],
        pool: None,
    },
    Example {
        name: "obj_pmemblk",
        package: "libpmemobj-dev",
        source: "pmemblk/obj_pmemblk.c",
        libraries: OBJ,
        arguments: &["c", "pool", "512", "{first:sym:1}:1:abc", "{second:sym:1}:2:def"],
        pool: None,
    },
    Example {
        name: "redo",
        package: "libpmem2-dev",
        source: "redo/redo.c",
        libraries: PMEM2,
        arguments: &["{command:sym:3}", "pool", "{key:sym:1}", "10"],
        pool: Some(1 << 20),
    },
    Example {
        name: "log",
        package: "libpmem2-dev",
        source: "log/log.c",
        libraries: PMEM2,
        arguments: &["pool", "{command:sym:6}", "{text:sym:4}"],
        pool: Some(1 << 21),
    },
];

impl Example {
    /// Builds it into `folder`. Returns the executable.
    pub fn build(&self, folder: &Path) -> Result<PathBuf, TargetError> {
        let examples = Path::new(DOCUMENTATION).join(self.package).join("examples");
        let source = examples.join(self.source);
        if !source.exists() {
            return Err(TargetError::NoPmdk { path: examples });
        }
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("pmdk");
        let output = folder.join(format!("example-{}", self.name));
        let mut command = Command::new("cc");
        command.args(["-O1", "-g", "-w", "-I"]).arg(&own).arg("-I").arg(&examples).arg(&source).args(self.libraries);
        compile(command, &output, &[source, own.join("ex_common.h")])?;
        Ok(output)
    }

    /// Makes the pool that must be there, in `folder`.
    pub fn prepare(&self, folder: &Path) -> Result<(), TargetError> {
        let Some(len) = self.pool else { return Ok(()) };
        let pool = folder.join("pool");
        File::create(&pool).and_then(|file| file.set_len(len)).map_err(TargetError::io(&pool))
    }
}
