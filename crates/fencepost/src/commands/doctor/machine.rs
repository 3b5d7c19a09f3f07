//! Checks of `fencepost doctor` that inspect the system: memory, files, limits, processor, tools.

use std::env;
use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use object::Object;
use recover::place::room;

use super::Check;
use crate::render;

const SHARED_MEMORY: &str = "/dev/shm";
/// Below this much room, copies of an ordinary pool for a few workers may not fit.
const ROOM: u64 = 256 << 20;
/// Pools of PMDK are often large files with little in them.
const HUGE: u64 = 1 << 40;
/// Each worker has a slot with a file per pool, and pipes to its recovery.
const DESCRIPTORS: u64 = 256;

/// The engine starts from a file in memory.
pub(super) fn memfd() -> Check {
    const NAME: &str = "memfd";
    // SAFETY: a C string; the call returns a new descriptor or -1.
    let fd = unsafe { libc::memfd_create(c"fencepost-doctor".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_EXEC) };
    if fd >= 0 {
        // SAFETY: the descriptor is new and nobody else owns it.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        return Check::ok(NAME, "executable files in memory", "the engine needs no file of its own on disk");
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EINVAL) {
        return Check::ok(NAME, "a kernel before 6.3, where all may be executed", "the engine needs no file on disk");
    }
    Check::fallback(
        NAME,
        format!("no executable ones: {error}"),
        "the engine may be refused (see above); `sysctl vm.memfd_noexec=0` allows it",
    )
}

/// Where crash images are put.
pub(super) fn shared_memory() -> Check {
    const NAME: &str = SHARED_MEMORY;
    let temporary = env::temp_dir();
    if let Err(error) = tempfile::tempfile_in(SHARED_MEMORY) {
        return Check::fallback(
            NAME,
            format!("not writable: {error}"),
            format!(
                "crash images lie in {}: slower if that is a disk; TMPDIR names another place",
                temporary.display()
            ),
        );
    }
    match room(Path::new(SHARED_MEMORY)) {
        Ok(left) if left >= ROOM => Check::ok(
            NAME,
            format!("{} free", render::bytes(left)),
            "crash images lie in memory: one copy of the pools per worker",
        ),
        Ok(left) => Check::fallback(
            NAME,
            format!("only {} free", render::bytes(left)),
            "larger pools lie in TMPDIR, if that has more room: slower on a disk; or a larger /dev/shm (docker run --shm-size)",
        ),
        Err(error) => Check::fallback(NAME, format!("its size is unknown: {error}"), "crash images may not fit"),
    }
}

/// Copies of pools have holes where the pools have.
pub(super) fn sparse_files() -> Check {
    const NAME: &str = "huge sparse files";
    match tempfile::tempfile().and_then(|file| file.set_len(HUGE)) {
        Ok(()) => Check::ok(
            NAME,
            format!("{} in TMPDIR", render::bytes(HUGE)),
            "huge pools cost only what is written to them",
        ),
        Err(error) => Check::fallback(
            NAME,
            format!("none of {} in TMPDIR: {error}", render::bytes(HUGE)),
            "huge pools cannot be copied there; TMPDIR names another place",
        ),
    }
}

pub(super) fn open_files() -> Check {
    const NAME: &str = "open files";
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: room for the answer.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return Check::fallback(NAME, io::Error::last_os_error().to_string(), "many workers may need more");
    }
    if limit.rlim_cur >= DESCRIPTORS {
        Check::ok(NAME, format!("at most {}", limit.rlim_cur), "enough for many workers and pools")
    } else {
        Check::fallback(
            NAME,
            format!("at most {}", limit.rlim_cur),
            "many workers may need more: fewer --jobs, or `ulimit -n 1024`",
        )
    }
}

pub(super) fn kernel() -> Check {
    const NAME: &str = "kernel";
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    if counts_processes(release) {
        Check::ok(NAME, release, "the kernel itself bounds the processes of a recovery (pid_max per namespace)")
    } else {
        Check::fallback(
            NAME,
            format!("{release}, before 6.14"),
            "the processes of a recovery are counted by Fencepost, and by RLIMIT_NPROC unless it runs as root",
        )
    }
}

/// Linux 6.14 gave each PID namespace its own `pid_max`.
fn counts_processes(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

/// Programs run on the processor that is there: what it lacks, they cannot use.
pub(super) fn cpu() -> Check {
    const NAME: &str = "processor";
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let (there, lacking) = features(&info);
    let found = if there.is_empty() { "none of the extensions for PM".to_owned() } else { there.join(", ") };
    if lacking.is_empty() {
        Check::ok(NAME, found, "programs use the same instructions as on machines with PM")
    } else {
        Check::fallback(
            NAME,
            format!("{found}; without {}", lacking.join(", ")),
            "programs that choose by processor take their other paths, and only these are checked; clflush is always there",
        )
    }
}

/// Those that programs for PM choose by, there and not there.
fn features(info: &str) -> (Vec<&'static str>, Vec<&'static str>) {
    let flags =
        info.lines().find_map(|line| line.strip_prefix("flags")?.split_once(':')).map_or("", |(_, flags)| flags);
    ["clwb", "clflushopt", "avx512f", "movdir64b"]
        .into_iter()
        .partition(|feature| flags.split_whitespace().any(|flag| flag == *feature))
}

pub(super) fn solvers() -> Check {
    const NAME: &str = "solvers";
    let installed: Vec<String> =
        solve::smt::Process::all_installed().iter().map(|solver| solver.program().to_owned()).collect();
    match installed.first() {
        Some(first) => Check::ok(
            NAME,
            format!("embedded, {}", installed.join(", ")),
            format!("`fencepost explore` asks {first} where the embedded solver gives up"),
        ),
        None => Check::ok(
            NAME,
            "embedded",
            "`fencepost explore` works; z3, cvc5 or bitwuzla would be asked where it gives up (apt-get install z3)",
        ),
    }
}

pub(super) fn gdb() -> Check {
    const NAME: &str = "gdb";
    let path = env::var_os("PATH").unwrap_or_default();
    match env::split_paths(&path).map(|directory| directory.join("gdb")).find(|gdb| gdb.is_file()) {
        Some(gdb) => {
            Check::ok(NAME, gdb.display().to_string(), "`fencepost debug` stops a recovery on its crash image")
        }
        None => Check::fallback(
            NAME,
            "not in PATH",
            "no `fencepost debug`; everything else works, `replay` too (apt-get install gdb)",
        ),
    }
}

/// What `fs check --kernel` needs.
pub(super) fn virtual_machines() -> Check {
    const NAME: &str = "virtual machines";
    match vm::kit::Kit::find(None) {
        Ok(kit) => Check::ok(
            NAME,
            kit.qemu.display().to_string(),
            "`fencepost fs check --kernel` checks file systems of the kernel",
        ),
        Err(error) => Check::fallback(
            NAME,
            "not complete",
            format!("no `fencepost fs check --kernel`; everything else works: {error}"),
        ),
    }
}

/// The kernel that `--kernel debian` stands for.
pub(super) fn guest_kernel() -> Check {
    const NAME: &str = "kernel for virtual machines";
    let fetched = vm::debian::folder().and_then(|folder| vm::debian::find(&folder));
    let fetched = match fetched {
        Ok(fetched) => fetched,
        Err(error) => {
            return Check::fallback(NAME, "none", format!("no `fencepost fs check --kernel debian`: {error}"));
        }
    };
    let found = fetched.kernel.display().to_string();
    match vm::recipe::has_pmem(Some(&fetched.modules)) {
        Ok(()) => Check::ok(NAME, found, "`fencepost fs check --kernel debian` takes it; it has support for PM"),
        Err(error) => Check::fallback(NAME, found, format!("no `fencepost fs check --kernel debian`: {error}")),
    }
}

/// Only a hint: call paths through PMDK have functions without it, but no lines.
pub(super) fn pmdk_symbols() -> Check {
    const NAME: &str = "symbols of libpmemobj";
    let directories = ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];
    let library =
        directories.into_iter().map(|directory| Path::new(directory).join("libpmemobj.so.1")).find(|l| l.exists());
    let Some(library) = library else {
        return Check::ok(NAME, "libpmemobj is not installed", "only programs with PMDK need it");
    };
    match debug_file(&library) {
        Some(file) => Check::ok(NAME, file.display().to_string(), "call paths through PMDK have files and lines"),
        None => Check::fallback(
            NAME,
            format!("none for {}", library.display()),
            "call paths through PMDK have no files and lines (Debian: libpmemobj1-dbgsym)",
        ),
    }
}

fn debug_file(library: &Path) -> Option<PathBuf> {
    let content = fs::read(library).ok()?;
    let file = object::File::parse(&*content).ok()?;
    if file.has_debug_symbols() {
        return Some(library.to_owned());
    }
    let id: String = file.build_id().ok()??.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = Path::new("/usr/lib/debug/.build-id").join(id.get(..2)?).join(format!("{}.debug", id.get(2..)?));
    path.exists().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases() {
        assert!(counts_processes("6.14.0"));
        assert!(counts_processes("7.0-rc1"));
        assert!(!counts_processes("6.1.0-37-amd64"));
        assert!(!counts_processes(""));
    }

    #[test]
    fn processor_flags_are_whole_words() {
        let (there, lacking) = features("processor : 0\nflags\t\t: fpu clflush clflushopt avx512fp16 movdir64b\n");
        assert_eq!(there, ["clflushopt", "movdir64b"]);
        assert_eq!(lacking, ["clwb", "avx512f"]);
    }
}
