//! A process beside the recovery that is the same for all runs: it uses what the recovery serves, and says what it found.
//! (`drive::attend` is the other end.)

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const BEGIN: &[u8] = b"b";
const END: &[u8] = b"e";
/// A report that says it is longer is none.
const LONGEST: u64 = 256 << 20;

#[derive(Debug)]
pub(super) struct Attendant {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
}

impl Attendant {
    /// `beside`: a process in the recovery's namespaces.
    pub fn start(words: &[OsString], beside: i32) -> io::Result<Attendant> {
        let (program, args) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(args).arg("--beside").arg(beside.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Attendant { child, to, from })
    }

    /// A run begins.
    pub fn begin(&mut self) -> io::Result<()> {
        self.to.write_all(BEGIN)
    }

    /// The recovery has ended; what was found until then.
    pub fn end(&mut self) -> io::Result<Vec<u8>> {
        self.to.write_all(END)?;
        let mut head = [0; 8];
        self.from.read_exact(&mut head)?;
        let len = u64::from_le_bytes(head);
        if len > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut report = vec![0; len as usize];
        self.from.read_exact(&mut report)?;
        Ok(report)
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        // It ends by itself when its input does; one that waits for a daemon that is gone is killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
