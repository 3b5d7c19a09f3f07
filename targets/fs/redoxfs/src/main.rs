//! The file system of Redox OS, as it is published, with its disk in a mapped file. Redoxfs copies on write and checks every block by a
//! hash; when a transaction is over it writes a new header, and the newest header that is whole counts. All that is ours is the disk: a
//! write of blocks is durable when it returns.
//!
//! `redoxfs-mapped --mkfs POOL` makes one, `redoxfs-mapped POOL MOUNT` serves it in the foreground.

use std::arch::x86_64::{_mm_clflush, _mm_sfence};
use std::error::Error;
use std::fs::File;
use std::process::ExitCode;

use memmap2::MmapMut;
use redoxfs::{BLOCK_SIZE, Disk, FileSystem};
use syscall::error::{EIO, Error as Failed, Result};

const BYTES: u64 = 2 << 20;
const LINE: usize = 64;

struct Mapped(MmapMut);

impl Mapped {
    fn open(file: &File) -> std::io::Result<Mapped> {
        // SAFETY: nobody else changes the file while it is served.
        Ok(Mapped(unsafe { MmapMut::map_mut(file)? }))
    }

    fn blocks(&mut self, block: u64, len: usize) -> Result<&mut [u8]> {
        let from = (block * BLOCK_SIZE) as usize;
        self.0.get_mut(from..from + len).ok_or(Failed::new(EIO))
    }
}

impl Disk for Mapped {
    unsafe fn read_at(&mut self, block: u64, buffer: &mut [u8]) -> Result<usize> {
        buffer.copy_from_slice(self.blocks(block, buffer.len())?);
        Ok(buffer.len())
    }

    unsafe fn write_at(&mut self, block: u64, buffer: &[u8]) -> Result<usize> {
        let to = self.blocks(block, buffer.len())?;
        to.copy_from_slice(buffer);
        for line in to.chunks(LINE) {
            // SAFETY: a line of the mapping, which is alive.
            unsafe { _mm_clflush(line.as_ptr()) };
        }
        // SAFETY: every processor of this architecture has it.
        unsafe { _mm_sfence() };
        Ok(buffer.len())
    }

    fn size(&mut self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }
}

fn run(words: &[String]) -> std::result::Result<(), Box<dyn Error>> {
    match words {
        [option, pool] if option == "--mkfs" => {
            let file = File::options().read(true).write(true).create(true).truncate(true).open(pool)?;
            file.set_len(BYTES)?;
            FileSystem::create(Mapped::open(&file)?, None, 0, 0).map_err(|error| error.to_string())?;
            Ok(())
        }
        [pool, mount] => {
            let file = File::options().read(true).write(true).open(pool)?;
            let opened = FileSystem::open(Mapped::open(&file)?, None, None, true);
            redoxfs::mount(opened.map_err(|error| error.to_string())?, mount, |_| ())?;
            Ok(())
        }
        _ => Err("usage: redoxfs-mapped --mkfs POOL, or redoxfs-mapped POOL MOUNT".into()),
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
