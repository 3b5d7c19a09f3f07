//! Finds the program to run, and refuses what no backend can run before anything is started.

use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::elf;

/// Why a program cannot be the target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("no command given; put it after `--`, as in: fencepost record -- ./program argument")]
    Empty,
    #[error("`{0}`: no such file")]
    NotFound(String),
    #[error("`{0}`: not found in PATH; for a program in this directory write `./{0}`")]
    NotInPath(String),
    #[error("`{0}`: is a directory, not a program")]
    Directory(String),
    #[error("`{0}`: not executable; `chmod +x` it if it is a program")]
    NotExecutable(String),
    #[error("`{path}`: cannot be read: {source}")]
    Unreadable { path: String, source: io::Error },
    #[error("`{0}`: neither an ELF executable nor a script that begins with `#!`")]
    NotAProgram(String),
    #[error("`{path}`: a {found} executable; only 64-bit x86-64 programs can be recorded")]
    WrongArchitecture { path: String, found: String },
    #[error("`{0}`: an ELF file that is not an executable (an object or a core file)")]
    NotLinked(String),
    #[error("the command contains a zero byte, which no program can be given")]
    ZeroByte,
}

/// A program that exists and can be run here.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where the executable or script is: absolute, or as the user gave it if that has a `/`.
    pub path: PathBuf,
    /// `argv`, the first as the user gave it.
    pub arguments: Vec<CString>,
    /// The environment, `NAME=value`.
    pub environment: Vec<CString>,
    /// Where it starts; none: where this process is.
    pub directory: Option<CString>,
    /// Its standard input, output and error, open as long as it is being started; none: those of this process.
    pub streams: Option<[i32; 3]>,
}

impl Target {
    /// Finds a command's program as `execvp` would, for the environment of this process.
    pub fn resolve(command: &[OsString]) -> Result<Target, TargetError> {
        Target::resolve_in(command, &env::vars_os().collect::<Vec<_>>(), None)
    }

    /// As [`resolve`](Self::resolve), for this environment, with the program started in `dir`.
    pub fn resolve_in(
        command: &[OsString],
        variables: &[(OsString, OsString)],
        dir: Option<&Path>,
    ) -> Result<Target, TargetError> {
        let name = command.first().ok_or(TargetError::Empty)?;
        let search = variables.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        let path = find(name, search, dir)?;
        check(&path)?;
        let arguments = command.iter().map(|a| c_string(a)).collect::<Result<_, _>>()?;
        Ok(Target {
            path,
            arguments,
            environment: environment(variables)?,
            directory: dir.map(|dir| c_string(dir.as_os_str())).transpose()?,
            streams: None,
        })
    }
}

impl Target {
    /// A program with its own arguments (the first is its name) and environment.
    pub fn of(
        path: &Path,
        arguments: &[OsString],
        environment: &[(OsString, OsString)],
    ) -> Result<Target, TargetError> {
        let shown = path.display().to_string();
        match access(path) {
            Access::Program => {}
            Access::Directory => return Err(TargetError::Directory(shown)),
            Access::NotExecutable => return Err(TargetError::NotExecutable(shown)),
            Access::Missing => return Err(TargetError::NotFound(shown)),
        }
        check(path)?;
        let arguments = arguments.iter().map(|a| c_string(a)).collect::<Result<_, _>>()?;
        let environment = self::environment(environment)?;
        Ok(Target { path: path.to_owned(), arguments, environment, directory: None, streams: None })
    }
}

/// `NAME=value` for each variable; of a name that is there twice, the last counts.
fn environment(variables: &[(OsString, OsString)]) -> Result<Vec<CString>, TargetError> {
    let last = |at: usize| !variables[at + 1..].iter().any(|(name, _)| *name == variables[at].0);
    let kept = variables.iter().enumerate().filter(|(at, _)| last(*at));
    kept.map(|(_, (name, value))| c_string(&[name, OsStr::new("="), value].into_iter().collect::<OsString>())).collect()
}

fn c_string(text: &OsStr) -> Result<CString, TargetError> {
    CString::new(text.as_bytes()).map_err(|_| TargetError::ZeroByte)
}

/// `search`: the value of `PATH`.
fn find(name: &OsStr, search: Option<&OsStr>, dir: Option<&Path>) -> Result<PathBuf, TargetError> {
    let shown = name.to_string_lossy().into_owned();
    if name.as_bytes().contains(&b'/') {
        let path = dir.map_or(PathBuf::from(name), |dir| dir.join(name));
        return match access(&path) {
            Access::Program => Ok(path),
            Access::Directory => Err(TargetError::Directory(shown)),
            Access::NotExecutable => Err(TargetError::NotExecutable(shown)),
            Access::Missing => Err(TargetError::NotFound(shown)),
        };
    }
    // execvp's rule: an entry that may not be executed is only an error if no later entry is better.
    let mut refused = None;
    let search = search.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    for directory in env::split_paths(search) {
        let path = if directory.as_os_str().is_empty() { Path::new(".").join(name) } else { directory.join(name) };
        let path = dir.map_or(path.clone(), |dir| dir.join(&path));
        match access(&path) {
            Access::Program => return Ok(path),
            Access::NotExecutable => refused = Some(path),
            Access::Directory | Access::Missing => {}
        }
    }
    Err(match refused {
        Some(path) => TargetError::NotExecutable(path.display().to_string()),
        None => TargetError::NotInPath(shown),
    })
}

enum Access {
    Program,
    Directory,
    NotExecutable,
    Missing,
}

fn access(path: &Path) -> Access {
    let Ok(metadata) = path.metadata() else { return Access::Missing };
    if metadata.is_dir() {
        return Access::Directory;
    }
    let Ok(c_path) = CString::new(path.as_os_str().as_bytes()) else { return Access::Missing };
    // SAFETY: the path is a valid C string for the length of the call.
    let allowed = unsafe { libc::access(c_path.as_ptr(), libc::X_OK) } == 0;
    if allowed { Access::Program } else { Access::NotExecutable }
}

/// Reads the first bytes: an ELF header of the right kind, or `#!`.
fn check(path: &Path) -> Result<(), TargetError> {
    let shown = || path.display().to_string();
    let mut head = [0_u8; 20];
    let mut filled = 0;
    let mut file = File::open(path).map_err(|source| TargetError::Unreadable { path: shown(), source })?;
    while filled < head.len() {
        match file.read(&mut head[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(TargetError::Unreadable { path: shown(), source }),
        }
    }
    let head = &head[..filled];
    if head.starts_with(b"#!") {
        return Ok(());
    }
    if !head.starts_with(&elf::ELFMAG) || head.len() < 20 {
        return Err(TargetError::NotAProgram(shown()));
    }
    // e_type and e_machine lie at 16 and 18 in both classes (System V ABI, ELF header).
    let big_endian = head[5] == elf::ELFDATA2MSB.0;
    let half = |at: usize| {
        let bytes = [head[at], head[at + 1]];
        if big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    };
    let wide = head[4] == elf::ELFCLASS64.0;
    let machine = half(18);
    if !wide || big_endian || machine != elf::EM_X86_64.0 {
        let bits = if wide { "64-bit" } else { "32-bit" };
        return Err(TargetError::WrongArchitecture {
            path: shown(),
            found: format!("{bits} {}", machine_name(machine)),
        });
    }
    if half(16) != elf::ET_EXEC.0 && half(16) != elf::ET_DYN.0 {
        return Err(TargetError::NotLinked(shown()));
    }
    Ok(())
}

fn machine_name(machine: u16) -> String {
    match elf::Machine(machine) {
        elf::EM_X86_64 => "x86-64 (x32)".into(),
        elf::EM_386 => "i386".into(),
        elf::EM_AARCH64 => "AArch64".into(),
        elf::EM_ARM => "ARM".into(),
        elf::EM_RISCV => "RISC-V".into(),
        elf::EM_PPC64 => "PowerPC".into(),
        elf::EM_S390 => "s390".into(),
        _ => format!("machine-{machine}"),
    }
}
