//! Where a server listens.
//!
//! `127.0.0.1:{port}` and `{socket}` are places of the driver's own choice, put into the server's command line as well: runs at
//! the same time then do not meet.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::template::replaced;

const PORT: &str = "{port}";
const SOCKET: &str = "{socket}";

/// Names of sockets that the driver chooses.
const BEGIN: &str = "fencepost-";
const END: &str = ".socket";

/// A place to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(String),
    Unix(PathBuf),
}

/// Both ways of a connection.
pub trait Connection: Read + Write {}
impl Connection for TcpStream {}
impl Connection for UnixStream {}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no place for a socket; write 127.0.0.1:{{port}}, 127.0.0.1:PORT, {{socket}} or a path with a slash in it"
)]
pub struct AddressError(String);

/// Is it a place at all?
pub fn check(text: &str) -> Result<(), AddressError> {
    let port = text.rsplit_once(':').map(|(_, port)| port);
    let tcp = port.is_some_and(|port| port == PORT || port.parse::<u16>().is_ok_and(|port| port != 0));
    if is_path(text) || tcp { Ok(()) } else { Err(AddressError(text.into())) }
}

/// Has a driver chosen this place for a server? Then it is none of the program's files.
pub fn is_own(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let number = name.and_then(|name| name.strip_prefix(BEGIN)?.strip_suffix(END));
    path.parent().is_some_and(|folder| folder == std::env::temp_dir())
        && number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// Can several servers have this place at the same time, each its own?
pub fn is_free(text: &str) -> bool {
    text.contains(PORT) || text.contains(SOCKET)
}

fn is_path(text: &str) -> bool {
    text.contains(SOCKET) || text.contains('/')
}

/// Chooses a place, and puts it into the server's command line.
pub fn choose(text: &str, server: &[OsString]) -> io::Result<(Address, Vec<OsString>)> {
    let put = |place: &str, by: &str| server.iter().map(|word| replaced(word, place, by.as_bytes())).collect();
    if is_path(text) {
        let path = std::env::temp_dir().join(format!("{BEGIN}{}{END}", unique()?));
        let path = path.display().to_string();
        return Ok((Address::Unix(text.replace(SOCKET, &path).into()), put(SOCKET, &path)));
    }
    if !text.contains(PORT) {
        return Ok((Address::Tcp(text.into()), server.to_vec()));
    }
    // The system does not give a port again soon; nobody else takes it meanwhile.
    let listener = TcpListener::bind(text.replace(PORT, "0"))?;
    let port = listener.local_addr()?.port().to_string();
    Ok((Address::Tcp(text.replace(PORT, &port)), put(PORT, &port)))
}

/// Numbers of processes are the same in every run, and so are random ones: the number of a file is not.
pub(crate) fn unique() -> io::Result<String> {
    use std::os::fd::AsRawFd;
    let (one, _other) = UnixStream::pair()?;
    let name = std::fs::read_link(format!("/proc/self/fd/{}", one.as_raw_fd()))?;
    Ok(name.display().to_string().chars().filter(char::is_ascii_digit).collect())
}

impl Address {
    pub fn connect(&self) -> io::Result<Box<dyn Connection>> {
        Ok(match self {
            Address::Tcp(place) => {
                let stream = TcpStream::connect(place.as_str())?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Address::Unix(path) => Box::new(UnixStream::connect(path)?),
        })
    }

    /// Leaves nothing behind.
    pub fn forget(&self) {
        if let Address::Unix(path) = self {
            // It may not be there: the server may have removed it, or never made it.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(place) => f.write_str(place),
            Address::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        for right in ["127.0.0.1:{port}", "127.0.0.1:6379", "{socket}", "./s", "/run/s"] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        for wrong in ["", "localhost", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:port", "socket"] {
            assert_eq!(check(wrong), Err(AddressError(wrong.into())), "{wrong}");
        }
    }

    #[test]
    fn a_chosen_place_is_put_into_the_command() {
        let server: Vec<OsString> = ["kv", "--port={port}", "{socket}"].map(OsString::from).to_vec();
        let (address, words) = choose("127.0.0.1:{port}", &server).unwrap();
        let Address::Tcp(place) = address else { panic!("{address}") };
        let port = place.strip_prefix("127.0.0.1:").unwrap();
        assert_eq!(words[1].to_str().unwrap(), format!("--port={port}"));
        let (one, words) = choose("{socket}", &server).unwrap();
        assert_eq!(words[2].to_str().unwrap(), one.to_string());
        assert_ne!(choose("{socket}", &server).unwrap().0, one);
        assert!(is_own(Path::new(&one.to_string())));
        assert!(!is_own(Path::new("/run/fencepost-7.socket")) && !is_own(&std::env::temp_dir().join("kv.socket")));
    }
}
