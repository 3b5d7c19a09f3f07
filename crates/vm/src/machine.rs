//! One virtual machine: starts it, sends requests, and ends it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use supervise::cancel::Cancel;
use wire::guest::{PM_BASE, mailbox};

use crate::memory::Memory;
use crate::ring::{Record, Ring};

/// What a guest is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestSpec {
    pub qemu: PathBuf,
    pub kernel: PathBuf,
    pub initramfs: PathBuf,
    /// The plugin, for guests that are watched.
    pub plugin: PathBuf,
    /// Length of the PM region.
    pub pm: u64,
    /// A debugger may connect there.
    pub debugger: Option<PathBuf>,
}

/// A guest that does not answer has nothing to say any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fall {
    /// The kernel gave up; what it said last.
    Panicked(String),
    /// It did not answer in time.
    Hung,
}

#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error("cannot start {program}: {source}; install qemu-system-x86 (at least 9.2), or name it with --qemu")]
    Start { program: String, source: io::Error },
    #[error("memory for a guest: {0}")]
    Memory(io::Error),
    #[error("the guest did not come up{why}{said}")]
    Boot { why: String, said: String },
    #[error("the line to the guest is broken: {0}")]
    Line(io::Error),
    #[error("a request of {0} bytes is too long for the guest; take smaller batches")]
    TooLong(usize),
    #[error("the guest's reply is too long; take smaller batches")]
    Reply,
    #[error("cancelled")]
    Cancelled,
    #[error("the plugin and this program are not of one version; build both anew")]
    Garbled,
}

/// A kernel that boots takes seconds; on a loaded machine many.
const BOOT: Duration = Duration::from_secs(180);
/// Between two looks into the ring.
const LOOK: i32 = 2;

/// A running guest.
#[derive(Debug)]
pub struct Machine {
    child: Child,
    memory: Memory,
    ring: Option<Ring>,
    console: File,
    /// What the plugin has told since it was asked last.
    records: Vec<Record>,
}

impl Machine {
    /// Boots it. `watched`: with the plugin.
    pub fn boot(spec: &GuestSpec, watched: bool, cancel: &Cancel) -> Result<Machine, MachineError> {
        let memory = Memory::create(spec.pm).map_err(MachineError::Memory)?;
        let ring = watched.then(Ring::create).transpose().map_err(MachineError::Memory)?;
        let console = supervise::memory_file::create(c"fencepost-console").map_err(MachineError::Memory)?;
        let mut command = Command::new(&spec.qemu);
        command.args([
            "-M",
            "pc,memory-backend=mem",
            "-accel",
            "tcg,thread=single",
            "-cpu",
            "max,la57=off",
            "-smp",
            "1",
        ]);
        command.arg("-m").arg(format!("{}M", memory.all() >> 20));
        let backend = format!("memory-backend-file,id=mem,share=on,size={},mem-path={}", memory.all(), memory.path());
        command.arg("-object").arg(backend);
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        command.arg("-kernel").arg(&spec.kernel).arg("-initrd").arg(&spec.initramfs);
        command.arg("-append").arg(kernel_line(spec.pm));
        let log = format!("file,id=log,path=/proc/{}/fd/{}", std::process::id(), console.as_raw_fd());
        command.args(["-chardev", &log, "-serial", "chardev:log"]);
        command.args(["-chardev", "stdio,id=bell,signal=off", "-serial", "chardev:bell"]);
        if let Some(ring) = &ring {
            command.arg("-plugin").arg(format!("{},ring={},pm={}", spec.plugin.display(), ring.path(), spec.pm));
        }
        if let Some(socket) = &spec.debugger {
            command.arg("-gdb").arg(format!("unix:{},server=on,wait=off", socket.display()));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = crate::spawn::spawn(command)
            .map_err(|source| MachineError::Start { program: spec.qemu.display().to_string(), source })?;
        let mut machine = Machine { child, memory, ring, console, records: Vec::new() };
        match machine.wait(BOOT, cancel)? {
            Ok(()) => Ok(machine),
            Err(fall) => {
                let why = match fall {
                    Fall::Hung => format!(" within {} seconds", BOOT.as_secs()),
                    Fall::Panicked(_) => String::new(),
                };
                Err(MachineError::Boot { why, said: machine.last_words() })
            }
        }
    }

    pub fn memory(&mut self) -> &mut Memory {
        &mut self.memory
    }

    /// Has the guest carry out the lines of a request; its reply, or why there is none.
    pub fn ask(
        &mut self,
        request: &str,
        limit: Duration,
        cancel: &Cancel,
    ) -> Result<Result<String, Fall>, MachineError> {
        self.records.clear();
        if !self.memory.request(request) {
            return Err(MachineError::TooLong(request.len()));
        }
        let bell = self.child.stdin.as_mut().ok_or_else(|| MachineError::Line(io::ErrorKind::BrokenPipe.into()))?;
        bell.write_all(b"?").and_then(|()| bell.flush()).map_err(MachineError::Line)?;
        match self.wait(limit, cancel)? {
            Ok(()) => self.memory.reply().map(Ok).ok_or(MachineError::Reply),
            Err(fall) => Ok(Err(fall)),
        }
    }

    /// What the plugin told while the last request was carried out.
    pub fn records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Says which code's edges are wanted.
    pub fn set_code(&mut self, ranges: &[Range<u64>]) {
        if let Some(ring) = &mut self.ring {
            ring.set_code(ranges);
        }
    }

    /// Until the guest rings.
    fn wait(&mut self, limit: Duration, cancel: &Cancel) -> Result<Result<(), Fall>, MachineError> {
        let end = Instant::now() + limit;
        let pid = self.child.id();
        let before = crate::delay::delay(pid);
        let Some(bell) = self.child.stdout.as_mut() else {
            return Err(MachineError::Line(io::ErrorKind::BrokenPipe.into()));
        };
        let mut polled = libc::pollfd { fd: bell.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        loop {
            // SAFETY: one entry, which lives during the call.
            let ready = unsafe { libc::poll(&mut polled, 1, LOOK) };
            if ready < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return Err(MachineError::Line(io::Error::last_os_error()));
            }
            if let Some(ring) = &mut self.ring
                && !ring.drain(&mut self.records)
            {
                return Err(MachineError::Garbled);
            }
            if ready > 0 {
                let mut byte = [0];
                return match bell.read(&mut byte).map_err(MachineError::Line)? {
                    0 => Ok(Err(Fall::Panicked(self.panic()))),
                    _ => {
                        // What was told before the bell is in the ring now.
                        let told = self.ring.as_mut().is_none_or(|ring| ring.drain(&mut self.records));
                        if told { Ok(Ok(())) } else { Err(MachineError::Garbled) }
                    }
                };
            }
            if cancel.is_cancelled() {
                return Err(MachineError::Cancelled);
            }
            let now = Instant::now();
            // On a loaded machine it is not the guest that is slow.
            if now >= end && now >= end + crate::delay::delay(pid).saturating_sub(before) {
                return Ok(Err(Fall::Hung));
            }
        }
    }

    /// All that the kernel has printed.
    pub fn console(&mut self) -> String {
        let mut bytes = Vec::new();
        // What cannot be read is missing from a message, no more.
        let _ = self.console.seek(SeekFrom::Start(0)).and_then(|_| self.console.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }

    /// The part of the console that tells of the end.
    fn panic(&mut self) -> String {
        let console = self.console();
        let begins = ["BUG:", "Oops", "kernel BUG", "general protection", "Kernel panic", "WARNING:"];
        let from = console.lines().position(|line| begins.iter().any(|begin| line.contains(begin)));
        let lines: Vec<&str> = console.lines().collect();
        lines[from.unwrap_or(lines.len().saturating_sub(20))..].join("\n")
    }

    /// Why it did not come up.
    fn last_words(&mut self) -> String {
        let _ = self.child.kill();
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        let console = self.console();
        let last = said.lines().chain(console.lines()).filter(|line| !line.trim().is_empty());
        let last: Vec<&str> = last.collect();
        last[last.len().saturating_sub(5)..].iter().map(|line| format!("\n  {line}")).collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the kernel is told. PM shares its section with the mailbox, which is reserved.
fn kernel_line(pm: u64) -> String {
    let end = PM_BASE + pm;
    let rest = crate::memory_end(pm) - end;
    format!(
        "console=ttyS0 quiet tsc=reliable no_timer_check nokaslr no5lvl mitigations=off lpj=4000000 audit=0 \
         random.trust_cpu=on oops=panic panic=-1 iomem=relaxed rdinit=/init memmap={pm}!{PM_BASE} memmap={rest}${end} \
         fencepost.mailbox={}",
        mailbox(pm)
    )
}
