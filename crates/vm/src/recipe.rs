//! What the user names (a kernel, its modules, a file system), and the guest that is made from it.

use std::fs as files;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::initramfs::Initramfs;
use crate::kit::Kit;
use crate::libraries::{self, PackError};
use crate::machine::GuestSpec;
use crate::modules::{self, ModuleError, Modules};

/// A kernel file system, and the kernel to mount it with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recipe {
    /// A bzImage.
    pub kernel: PathBuf,
    /// The folder with its modules (`lib/modules/VERSION`); none: everything is built in.
    pub modules: Option<PathBuf>,
    /// Modules that lie elsewhere, such as the file system under test.
    pub extra: Vec<ExtraModule>,
    /// As `mount -t` takes it.
    pub fs: String,
    /// As `mount -o` takes them.
    pub mount_options: String,
    /// Makes the file system in the guest; `{device}` is the PM device. None: mounting does.
    pub mkfs: Option<String>,
    /// A `vmlinux`, or a folder with one and with modules that have debug information.
    pub debug_info: Option<PathBuf>,
}

/// A module and its parameters, as `insmod` takes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtraModule {
    pub path: PathBuf,
    pub parameters: String,
}

/// The PM device in the guest.
pub const DEVICE: &str = "/dev/pmem0";
const DEVICE_WORD: &str = "{device}";
/// The header of a kernel image.
const MAGIC_AT: usize = 0x202;
const MAGIC: &[u8] = b"HdrS";
/// Where the version's text lies, from [`SETUP`] on.
const VERSION_AT: usize = 0x20e;
const SETUP: usize = 0x200;
/// What the PM region needs to become a device.
const PMEM: [&str; 2] = ["nd_e820", "nd_pmem"];

const NO_PMEM: &str = "; it has no support for PM (CONFIG_X86_PMEM_LEGACY, CONFIG_BLK_DEV_PMEM)";

/// Does a kernel with these modules make a device of a PM region?
pub fn has_pmem(modules: Option<&Path>) -> Result<(), ModuleError> {
    Modules::find(modules)?.order(&PMEM, NO_PMEM).map(drop)
}

#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    #[error("{path}: cannot be read ({source}); --kernel names a kernel image (bzImage, vmlinuz)")]
    Kernel { path: String, source: io::Error },
    #[error("{path}: is no Linux kernel image for x86 (bzImage)")]
    NoKernel { path: String },
    #[error(transparent)]
    Modules(#[from] ModuleError),
    #[error("--mkfs: {0}")]
    Mkfs(#[from] PackError),
    #[error("--mkfs: the command does not say {{device}}; write it where the device belongs")]
    NoDevice,
    #[error("{path}: {source}")]
    File { path: String, source: io::Error },
}

/// A guest that can be booted; its initial file system is a file as long as this lives.
#[derive(Debug)]
pub struct Prepared {
    pub spec: GuestSpec,
    /// The files of the modules that the guest loads, in order.
    pub modules: Vec<PathBuf>,
    _initramfs: NamedTempFile,
}

impl Recipe {
    /// The command that makes the file system, as the agent runs it.
    pub fn mkfs_words(&self) -> Result<Option<Vec<String>>, RecipeError> {
        let Some(command) = &self.mkfs else { return Ok(None) };
        if !command.contains(DEVICE_WORD) {
            return Err(RecipeError::NoDevice);
        }
        Ok(Some(command.split_whitespace().map(|word| word.replace(DEVICE_WORD, DEVICE)).collect()))
    }

    /// The modules under test, as the kernel spells them.
    pub fn under_test(&self) -> Vec<String> {
        let extra = self.extra.iter().filter_map(|extra| Modules::name_of(&extra.path));
        let mut names: Vec<String> = extra.chain([self.fs.replace('-', "_")]).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The line with which the agent mounts.
    pub fn mount_words(&self) -> String {
        format!("{} {DEVICE} {}", self.fs, self.mount_options)
    }

    /// Puts the initial file system together.
    pub fn prepare(&self, kit: &Kit, pm: u64) -> Result<Prepared, RecipeError> {
        let version = self.kernel_version()?;
        let file = |path: &Path| {
            files::read(path).map_err(|source| RecipeError::File { path: path.display().to_string(), source })
        };
        let mut archive = Initramfs::default();
        archive.file(Path::new("/init"), &file(&kit.agent)?);
        let mut order = String::new();
        let loaded = self.module_files()?;
        for path in &loaded {
            if let Some(version) = &version {
                modules::check_version(path, version)?;
            }
            let name = Modules::name_of(path).unwrap_or_default() + ".ko";
            archive.file(&Path::new("/modules").join(&name), &modules::content(path)?);
            let extra = self.extra.iter().find(|extra| &extra.path == path);
            let parameters = extra.map_or("", |extra| extra.parameters.as_str());
            order.push_str(&format!("{name} {parameters}\n"));
        }
        archive.file(Path::new("/modules/order"), order.as_bytes());
        if let Some(program) = self.mkfs_words()?.iter().flatten().next() {
            libraries::pack(program, &mut archive)?;
            // Programs that look for their settings there.
            archive.folder(Path::new("/etc"));
            archive.file(Path::new("/etc/mtab"), b"");
        }
        let failed = |source| RecipeError::File { path: "the initial file system".into(), source };
        let initramfs = NamedTempFile::with_prefix("fencepost-initramfs-").map_err(failed)?;
        files::write(initramfs.path(), archive.finish()).map_err(failed)?;
        let spec = GuestSpec {
            qemu: kit.qemu.clone(),
            kernel: self.kernel.clone(),
            initramfs: initramfs.path().to_owned(),
            plugin: kit.plugin.clone(),
            pm,
            debugger: None,
        };
        Ok(Prepared { spec, modules: loaded, _initramfs: initramfs })
    }

    fn module_files(&self) -> Result<Vec<PathBuf>, ModuleError> {
        let mut modules = Modules::find(self.modules.as_deref())?;
        self.extra.iter().for_each(|extra| modules.add(&extra.path));
        let mut order = modules.order(&PMEM, NO_PMEM)?;
        let names = self.extra.iter().filter_map(|extra| Some(extra.path.file_stem()?.to_str()?.to_owned()));
        let mut wanted: Vec<String> = names.collect();
        wanted.push(self.fs.clone());
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        for path in modules.order(&wanted, "; name the file of your module with --module")? {
            if !order.contains(&path) {
                order.push(path);
            }
        }
        Ok(order)
    }

    /// The boot protocol's magic (Linux: Documentation/arch/x86/boot.rst) says what a file is before QEMU fails at it; and the version that the
    /// image names (`6.1.0-55-cloud-amd64 (somebody@somewhere) …`), if it does.
    fn kernel_version(&self) -> Result<Option<String>, RecipeError> {
        let path = self.kernel.display().to_string();
        let bytes = files::read(&self.kernel).map_err(|source| RecipeError::Kernel { path: path.clone(), source })?;
        if bytes.get(MAGIC_AT..MAGIC_AT + MAGIC.len()) != Some(MAGIC) {
            return Err(RecipeError::NoKernel { path });
        }
        let half = bytes.get(VERSION_AT..VERSION_AT + 2).map_or(0, |half| u16::from_le_bytes([half[0], half[1]]));
        let text = bytes.get(usize::from(half) + SETUP..).filter(|_| half > 0).unwrap_or_default();
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        let text = String::from_utf8_lossy(text);
        Ok(text.split_whitespace().next().map(str::to_owned))
    }
}
