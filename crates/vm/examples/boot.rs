//! Boots a guest and has it do something: for people who work on this crate.
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vm::initramfs::Initramfs;
use vm::machine::{GuestSpec, Machine};
use vm::modules::Modules;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kernel, folder, kit, mkfs, request @ ..] = &args[..] else { panic!("KERNEL MODULES KIT MKFS REQUEST…") };
    let modules = Modules::find(Some(Path::new(folder))).unwrap();
    let mut archive = Initramfs::default();
    archive.file(Path::new("/init"), &std::fs::read(format!("{kit}/vm-agent")).unwrap());
    let order = modules.order(&["nd_e820", "nd_pmem", "xfs"], "").unwrap();
    let mut list = String::new();
    for path in order {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        archive.file(&Path::new("/modules").join(&name), &std::fs::read(&path).unwrap());
        list.push_str(&format!("{name}\n"));
    }
    archive.file(Path::new("/modules/order"), list.as_bytes());
    vm::libraries::pack(mkfs, &mut archive).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), archive.finish()).unwrap();
    let spec = GuestSpec { qemu: "qemu-system-x86_64".into(), kernel: kernel.into(), initramfs: file.path().to_owned(), plugin: PathBuf::from(format!("{kit}/libfencepost_qemu.so")), pm: 64 << 20 };
    let start = Instant::now();
    let mut machine = Machine::boot(&spec, true).unwrap_or_else(|error| panic!("{error}"));
    eprintln!("booted in {:?}", start.elapsed());
    for request in request {
        let start = Instant::now();
        let reply = machine.ask(&request.replace(';', "\n"), Duration::from_secs(60)).unwrap_or_else(|error| panic!("{error}"));
        println!("{reply:?}\n{:?}", start.elapsed());
        let records = machine.records();
        println!("{} records", records.len());
        for record in records.iter().take(5) { println!("{record:x?}"); }
    }
    eprintln!("{}", machine.console());
}
