//! A server: operations are sent to its socket, one after the other, and each answer is waited for.

use std::ffi::OsString;
use std::io::{self, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::address::{Address, Connection, choose};
use crate::command::{answer, code, how, prepare};
use crate::error::{DriveError, system};
use crate::input::Input;
use crate::protocol::Protocol;

/// Between two looks at a server that starts or ends. Time is virtual in a recording, so looks are counted.
const PAUSE: Duration = Duration::from_millis(1);
const LOOKS: u32 = 20_000;

/// How to talk to the server.
#[derive(Clone, Copy, Debug)]
pub struct Manner<'a> {
    pub protocol: Protocol,
    /// Between operations of a line that are sent at the same time, each through a connection of its own.
    pub separator: Option<&'a str>,
}

type Lines = BufReader<Box<dyn Connection>>;

/// Takes operations until there are no more, then ends the server. `first` is run before the server starts.
pub fn run(place: &str, manner: Manner<'_>, server: &[OsString], first: &[OsString]) -> Result<(), DriveError> {
    let mut input = Input::begin()?;
    prepare(first)?;
    let (address, words) = choose(place, server).map_err(system("choose a place for the socket"))?;
    let mut running = Running::start(address, &words)?;
    let mut connections = vec![BufReader::new(running.connect()?)];
    while let Some(line) = input.next_line()? {
        let line = String::from_utf8_lossy(&line).into_owned();
        let operations: Vec<&str> = match manner.separator {
            Some(separator) => line.split(separator).map(str::trim).collect(),
            None => vec![&line],
        };
        while connections.len() < operations.len() {
            connections.push(BufReader::new(running.connect()?));
        }
        if let Err(error) = exchange(manner.protocol, &mut connections, &operations) {
            return Err(running.explained(error));
        }
    }
    drop(connections);
    running.end()
}

/// Sends all, then waits for all answers.
fn exchange(protocol: Protocol, connections: &mut [Lines], operations: &[&str]) -> Result<(), DriveError> {
    for (connection, operation) in connections.iter_mut().zip(operations) {
        let named = || (*operation).to_owned();
        let request = protocol.request(operation.as_bytes());
        let request = request.map_err(|what| DriveError::Unsendable { operation: named(), what })?;
        connection.get_mut().write_all(&request).map_err(|_| DriveError::Closed { operation: named() })?;
    }
    for (connection, operation) in connections.iter_mut().zip(operations) {
        let text = protocol.answer(connection).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => {
                DriveError::Garbled { operation: (*operation).to_owned(), what: error.to_string() }
            }
            _ => DriveError::Closed { operation: (*operation).to_owned() },
        })?;
        answer(format_args!("{}", String::from_utf8_lossy(&text)))?;
    }
    Ok(())
}

struct Running {
    child: Child,
    address: Address,
}

impl Running {
    fn start(address: Address, words: &[OsString]) -> Result<Running, DriveError> {
        // One that a crash has left would be in the way.
        address.forget();
        let (program, args) = words.split_first().ok_or_else(|| DriveError::Deaf { address: address.to_string() })?;
        let started = Command::new(program).args(args).stdin(Stdio::null()).stdout(io::stderr()).spawn();
        let failed = |source| DriveError::Start { program: program.to_string_lossy().into_owned(), source };
        Ok(Running { child: started.map_err(failed)?, address })
    }

    fn connect(&mut self) -> Result<Box<dyn Connection>, DriveError> {
        for _ in 0..LOOKS {
            if let Ok(connection) = self.address.connect() {
                return Ok(connection);
            }
            if let Some(status) = self.child.try_wait().map_err(system("wait for the server"))? {
                let address = self.address.to_string();
                return Err(DriveError::NeverAccepted { address, how: how(status), status });
            }
            sleep(PAUSE);
        }
        Err(DriveError::Deaf { address: self.address.to_string() })
    }

    /// A server that does not answer may have died of it.
    fn explained(mut self, error: DriveError) -> DriveError {
        let DriveError::Closed { operation } = error else { return error };
        for _ in 0..LOOKS / 100 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return DriveError::Died { operation, how: how(status), status };
            }
            sleep(PAUSE);
        }
        DriveError::Closed { operation }
    }

    fn end(mut self) -> Result<(), DriveError> {
        const ASKED: i32 = 128 + libc::SIGTERM;
        // SAFETY: plain system call; the child has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        for _ in 0..LOOKS {
            let Some(status) = self.child.try_wait().map_err(system("wait for the server"))? else {
                sleep(PAUSE);
                continue;
            };
            let asked_for = status.success() || i32::from(code(status)) == ASKED;
            return if asked_for { Ok(()) } else { Err(DriveError::BadEnd { how: how(status), status }) };
        }
        Err(DriveError::Stubborn)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing can be done about a server that cannot be killed; one that has ended is none.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.address.forget();
    }
}
