//! Kernel modules: their files, and the order in which they are loaded.

use std::collections::BTreeMap;
use std::fs as files;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::{Object, ObjectSection};

#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    #[error(
        "{folder}: cannot be read ({source}); --modules names the folder with the kernel's modules (lib/modules/VERSION)"
    )]
    Folder { folder: String, source: std::io::Error },
    #[error("the kernel has no module `{name}`, neither built in nor in {folder}{why}")]
    Missing { name: String, folder: String, why: &'static str },
    #[error("{path}: is no kernel module ({what})")]
    Unreadable { path: String, what: String },
    #[error("{path}: the module is compressed, and `{program}` cannot unpack it ({what})")]
    Compressed { path: String, program: &'static str, what: String },
    #[error(
        "{path}: was built for kernel {module}, but the image is {kernel}; build it against the headers of that one"
    )]
    Version { path: String, module: String, kernel: String },
}

/// The modules of a kernel.
#[derive(Debug, Default)]
pub struct Modules {
    folder: PathBuf,
    /// By name, with `-` as `_`.
    files: BTreeMap<String, PathBuf>,
    built_in: Vec<String>,
}

/// A name as the kernel spells it.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

impl Modules {
    /// `kernel/fs/xfs/xfs.ko` is `xfs`.
    pub fn name_of(path: &Path) -> Option<String> {
        let name = path.file_name()?.to_str()?;
        let (name, end) = name.split_once(".ko")?;
        (end.is_empty() || end.starts_with('.')).then(|| plain(name))
    }

    /// All files below a folder; without one, everything must be built into the kernel.
    pub fn find(folder: Option<&Path>) -> Result<Modules, ModuleError> {
        let Some(folder) = folder else { return Ok(Modules::default()) };
        let mut modules = Modules { folder: folder.to_owned(), ..Modules::default() };
        let built_in = files::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        modules.built_in = built_in.lines().filter_map(|line| Modules::name_of(Path::new(line))).collect();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let failed = |source| ModuleError::Folder { folder: folder.display().to_string(), source };
            for entry in files::read_dir(&folder).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                // `build` and `source` are links out of the folder.
                match entry.file_type().map_err(failed)? {
                    kind if kind.is_dir() => folders.push(entry.path()),
                    kind if kind.is_file() => {
                        modules.files.extend(Modules::name_of(&entry.path()).map(|name| (name, entry.path())));
                    }
                    _ => {}
                }
            }
        }
        Ok(modules)
    }

    /// Adds a module that lies elsewhere.
    pub fn add(&mut self, path: &Path) {
        self.files.extend(Modules::name_of(path).map(|name| (name, path.to_owned())));
    }

    /// The files of these modules and of what they need, each after what it needs. Those that are built in are left out.
    pub fn order(&self, wanted: &[&str], why: &'static str) -> Result<Vec<PathBuf>, ModuleError> {
        let mut order = Vec::new();
        for name in wanted {
            self.visit(&plain(name), why, &mut order, 0)?;
        }
        Ok(order)
    }

    fn visit(&self, name: &str, why: &'static str, order: &mut Vec<PathBuf>, depth: usize) -> Result<(), ModuleError> {
        let Some(path) = self.files.get(name) else {
            let built_in = self.built_in.iter().any(|known| known == name) || self.folder.as_os_str().is_empty();
            let missing =
                ModuleError::Missing { name: name.to_owned(), folder: self.folder.display().to_string(), why };
            return if built_in { Ok(()) } else { Err(missing) };
        };
        if order.contains(path) || depth > self.files.len() {
            return Ok(());
        }
        let info = info(path)?;
        for needed in info.needs {
            self.visit(&needed, "", order, depth + 1)?;
        }
        for name in info.wants.iter().filter_map(|wanted| self.file_of(wanted)) {
            // It can do without.
            let mut with = order.clone();
            if self.visit(&name, "", &mut with, depth + 1).is_ok() {
                *order = with;
            }
        }
        order.push(path.clone());
        Ok(())
    }

    /// The module of a soft dependency, which may be an alias. Not those below `kernel/arch`: the guest's processor may lack what they need.
    fn file_of(&self, wanted: &str) -> Option<String> {
        if self.files.contains_key(wanted) {
            return Some(wanted.to_owned());
        }
        let is_portable = |path: &Path| !path.starts_with(self.folder.join("kernel/arch"));
        // Made when a kernel is installed; one that is only unpacked has none.
        if let Ok(aliases) = files::read_to_string(self.folder.join("modules.alias")) {
            let module = |line: &str| {
                let (alias, module) = line.strip_prefix("alias ")?.split_once(' ')?;
                (plain(alias) == wanted).then(|| plain(module))
            };
            return aliases
                .lines()
                .filter_map(module)
                .find(|name| self.files.get(name).is_some_and(|at| is_portable(at)));
        }
        // The kernel asks for algorithms by alias; looking through all modules would take seconds.
        let algorithms = self.files.iter().filter(|(_, path)| path.starts_with(self.folder.join("kernel/crypto")));
        let has_alias = |path: &Path| info(path).is_ok_and(|info| info.aliases.iter().any(|alias| alias == wanted));
        algorithms.into_iter().find(|(_, path)| has_alias(path)).map(|(name, _)| name.clone())
    }
}

/// What a module says about itself (its section `.modinfo`).
#[derive(Debug, Default)]
struct Info {
    /// `depends=`
    needs: Vec<String>,
    /// `softdep=pre: …`: modules or aliases that are loaded before it if they are there.
    wants: Vec<String>,
    aliases: Vec<String>,
    /// The first word of `vermagic=`: the version of the kernel that it was built for.
    version: Option<String>,
}

/// The content of a module's file, unpacked.
pub fn content(path: &Path) -> Result<Vec<u8>, ModuleError> {
    let shown = || path.display().to_string();
    let program = match path.extension().and_then(|end| end.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => {
            let unreadable = |error: std::io::Error| ModuleError::Unreadable { path: shown(), what: error.to_string() };
            return files::read(path).map_err(unreadable);
        }
    };
    let failed = |what: String| ModuleError::Compressed { path: shown(), program, what };
    let output = Command::new(program).arg("-dc").arg(path).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() { Ok(output.stdout) } else { Err(failed(output.status.to_string())) }
}

fn info(path: &Path) -> Result<Info, ModuleError> {
    let unreadable = |what: String| ModuleError::Unreadable { path: path.display().to_string(), what };
    let bytes = content(path)?;
    let file = object::File::parse(&*bytes).map_err(|error| unreadable(error.to_string()))?;
    let section = file.section_by_name(".modinfo").ok_or_else(|| unreadable("it has no .modinfo".into()))?;
    let data = section.data().map_err(|error| unreadable(error.to_string()))?;
    let mut info = Info::default();
    for text in data.split(|&byte| byte == 0).map(String::from_utf8_lossy) {
        if let Some(list) = text.strip_prefix("depends=") {
            info.needs.extend(list.split(',').filter(|name| !name.is_empty()).map(plain));
        }
        if let Some(list) = text.strip_prefix("softdep=") {
            let words = list.split_whitespace().skip_while(|word| *word != "pre:").skip(1);
            info.wants.extend(words.take_while(|word| *word != "post:").map(plain));
        }
        info.aliases.extend(text.strip_prefix("alias=").map(plain));
        if let Some(magic) = text.strip_prefix("vermagic=") {
            info.version = magic.split_whitespace().next().map(str::to_owned);
        }
    }
    Ok(info)
}

/// A module of another version would be refused by the kernel; here it is said with both versions.
pub fn check_version(path: &Path, kernel: &str) -> Result<(), ModuleError> {
    match info(path)?.version {
        Some(module) if module != kernel => {
            Err(ModuleError::Version { path: path.display().to_string(), module, kernel: kernel.to_owned() })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::debug_info::DebugSection;
    use crate::symbol_file::symbol_file;

    fn module(folder: &Path, at: &str, lines: &[&str]) {
        let bytes = lines.iter().flat_map(|line| format!("{line}\0").into_bytes()).collect();
        let path = folder.join("kernel").join(at);
        files::create_dir_all(path.parent().unwrap()).unwrap();
        files::write(path, symbol_file(&[], &[DebugSection { name: ".modinfo".into(), bytes }])).unwrap();
    }

    fn names(folder: &Path, wanted: &str) -> Vec<String> {
        let order = Modules::find(Some(folder)).unwrap().order(&[wanted], "").unwrap();
        order.iter().filter_map(|path| Modules::name_of(path)).collect()
    }

    /// Ext4 of Debian's full kernels asks for `crypto-crc32c`, which a guest without modprobe cannot load later.
    #[test]
    fn soft_dependencies_and_aliases() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        module(folder, "fs/ext4.ko", &["depends=jbd2", "softdep=pre: crypto-crc32c no-such post: later"]);
        module(folder, "fs/jbd2.ko", &["depends="]);
        module(folder, "fs/later.ko", &["depends="]);
        module(folder, "arch/x86/crypto/crc32c-intel.ko", &["alias=crypto-crc32c", "depends="]);
        module(folder, "crypto/crc32c_generic.ko", &["alias=crypto-crc32c", "depends=crc-base"]);
        module(folder, "lib/crc-base.ko", &["depends="]);
        let wanted = ["jbd2", "crc_base", "crc32c_generic", "ext4"];
        assert_eq!(names(folder, "ext4"), wanted);
        let aliases = "# text\nalias crypto-crc32c crc32c_intel\nalias crypto-crc32c crc32c_generic\n";
        files::write(folder.join("modules.alias"), aliases).unwrap();
        assert_eq!(names(folder, "ext4"), wanted);
        // One whose own needs are missing is as good as none.
        files::remove_file(folder.join("kernel/lib/crc-base.ko")).unwrap();
        assert_eq!(names(folder, "ext4"), ["jbd2", "ext4"]);
    }
}
