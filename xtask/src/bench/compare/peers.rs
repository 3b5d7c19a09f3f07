//! The peers that Debian ships: installed if they can be, and what of them is there.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

use super::way::Way;

/// Packages, and a file of each that is there when it is installed.
const PACKAGES: [(&str, &str); 4] = [
    ("valgrind", "/usr/bin/valgrind"),
    ("pmdk-tools", "/usr/bin/pmempool"),
    ("qemu-user", "/usr/bin/qemu-x86_64"),
    ("libpmemobj-dev", "/usr/include/libpmemobj.h"),
];

/// What is there.
#[derive(Clone, Debug)]
pub struct Peers {
    valgrind: bool,
    qemu: bool,
    pub pmempool: bool,
    pmemcheck: bool,
    pmreorder: bool,
}

impl Peers {
    /// Installs what is missing, as root and where there is `apt-get`; otherwise says what to install.
    pub fn look(install: bool) -> anyhow::Result<Peers> {
        let missing: Vec<_> =
            PACKAGES.iter().filter(|(_, file)| !Path::new(file).exists()).map(|(name, _)| *name).collect();
        if !missing.is_empty() {
            // SAFETY: takes no pointers and cannot fail.
            let is_root = unsafe { libc::geteuid() } == 0;
            if install && is_root && in_path("apt-get") {
                eprintln!("installing {} …", missing.join(", "));
                let mut apt = Command::new("apt-get");
                apt.args(["install", "-y", "--no-install-recommends"]).args(&missing);
                let status = apt.env("DEBIAN_FRONTEND", "noninteractive").stdout(Stdio::null()).status();
                ensure!(status.context("cannot run apt-get")?.success(), "{apt:?} failed: try `apt-get update` first");
            } else {
                eprintln!("left out, as not installed: `apt-get install {}` as root brings them", missing.join(" "));
            }
        }
        let runs = |command: &mut Command| {
            command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        Ok(Peers {
            valgrind: in_path("valgrind"),
            qemu: in_path("qemu-x86_64"),
            pmempool: in_path("pmempool"),
            pmemcheck: runs(Command::new("valgrind").args(["--tool=pmemcheck", "/bin/true"])),
            pmreorder: in_path("pmreorder"),
        })
    }

    pub fn have(&self, way: Way) -> bool {
        match way {
            Way::ValgrindNone | Way::Memcheck => self.valgrind,
            Way::Qemu => self.qemu,
            _ => true,
        }
    }

    /// When and where the figures were made, and what could not be compared.
    pub fn tell(&self, fencepost: &Path) -> anyhow::Result<()> {
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model =
            cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, name)| name);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        println!(
            "{}; {} ({cores} cores); Linux {}",
            first_line("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
            model.unwrap_or("unknown processor"),
            first_line("uname", &["-r"])
        );
        self.tell_load()?;
        let version = |there: bool, program: &str| {
            if there { first_line(program, &["--version"]) } else { format!("no {program}") }
        };
        println!(
            "- {}; {}; {}; {}",
            first_line(&fencepost.display().to_string(), &["--version"]),
            version(self.valgrind, "valgrind"),
            version(self.qemu, "qemu-x86_64"),
            version(self.pmempool, "pmempool")
        );
        let is = |there: bool| if there { "is here, but this chore does not run it" } else { "is not here" };
        println!(
            "- pmemcheck {} (`valgrind --tool=pmemcheck`; Debian's Valgrind has no such tool).",
            is(self.pmemcheck)
        );
        println!(
            "- pmreorder {} (Debian's pmdk-tools leave it out); it replays a log that only pmemcheck writes.\n",
            is(self.pmreorder)
        );
        Ok(())
    }

    /// Other work on the machine spoils the figures.
    pub fn tell_load(&self) -> anyhow::Result<()> {
        let load = fs::read_to_string("/proc/loadavg").context("/proc/loadavg")?;
        let averages: Vec<_> = load.split_whitespace().take(3).collect();
        println!("- load average now (1, 5, 15 minutes): {}", averages.join(", "));
        Ok(())
    }
}

fn first_line(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

fn in_path(program: &str) -> bool {
    env::split_paths(&env::var_os("PATH").unwrap_or_default()).any(|folder| folder.join(program).exists())
}
