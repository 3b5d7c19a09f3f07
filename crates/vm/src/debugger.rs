//! Runs gdb on a guest that is stopped just before it mounts.
//!
//! gdb connects to QEMU while the guest waits for a request, sets its breakpoints, and creates a file to say so. Then the request is sent.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use crate::symbols::{KERNEL, Symbols};

/// The system call by the names that kernels have had for it.
const MOUNT: [&str; 3] = ["__x64_sys_mount", "ksys_mount", "sys_mount"];
/// Where every kernel ends that gives up.
const PANIC: &str = "panic";
const LOOK: Duration = Duration::from_millis(10);

/// A folder for what gdb needs, and how gdb is started.
#[derive(Debug)]
pub struct Debugger<'a> {
    pub gdb: &'a Path,
    pub folder: &'a Path,
    /// For gdb; commands among them run once the guest has stopped before it mounts.
    pub arguments: &'a [OsString],
}

impl Debugger<'_> {
    /// QEMU listens there.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("gdb.socket")
    }

    fn ready(&self) -> PathBuf {
        self.folder.join("ready")
    }

    /// Starts gdb with the names of kernel functions, and waits until it has set its breakpoints. None: it ended before.
    pub fn start(&self, symbols: &Symbols, symbol_files: &BTreeMap<String, PathBuf>) -> io::Result<Option<Child>> {
        let mut command = Command::new(self.gdb);
        command.args(self.words(symbols, symbol_files));
        let mut gdb = command.spawn()?;
        while !self.ready().exists() {
            if gdb.try_wait()?.is_some() {
                return Ok(None);
            }
            thread::sleep(LOOK);
        }
        Ok(Some(gdb))
    }

    fn words(&self, symbols: &Symbols, symbol_files: &BTreeMap<String, PathBuf>) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["-q".into(), "-nx".into()];
        let mut run = |command: String| words.extend(["-ex".into(), command.into()]);
        // Adding symbols asks for leave, and a guest that runs is not left without.
        run("set confirm off".into());
        for (name, path) in symbol_files {
            let how = if name == KERNEL { "symbol-file" } else { "add-symbol-file" };
            run(format!("{how} {}", path.display()));
        }
        run(format!("target remote {}", self.socket().display()));
        let mount = MOUNT.iter().find(|name| symbols.address(KERNEL, name).is_some());
        for function in mount.into_iter().chain([&PANIC]) {
            run(format!("break {function}"));
        }
        run(format!("shell : > {}", self.ready().display()));
        run("continue".into());
        words.extend(self.arguments.iter().cloned());
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breakpoints_come_before_the_request() {
        let symbols = Symbols::parse("ffffffff81000000 T __x64_sys_mount\nffffffff81000100 T panic\n");
        let files = BTreeMap::from([(KERNEL.to_owned(), PathBuf::from("/s/vmlinux"))]);
        let arguments = ["-batch".into()];
        let debugger = Debugger { gdb: Path::new("gdb"), folder: Path::new("/f"), arguments: &arguments };
        let words = debugger.words(&symbols, &files);
        let at = |wanted: &str| words.iter().position(|word| word == wanted).unwrap_or_else(|| panic!("{words:?}"));
        let order = [
            "symbol-file /s/vmlinux",
            "target remote /f/gdb.socket",
            "break __x64_sys_mount",
            "shell : > /f/ready",
            "continue",
            "-batch",
        ];
        assert!(order.map(at).is_sorted(), "{words:?}");
    }
}
