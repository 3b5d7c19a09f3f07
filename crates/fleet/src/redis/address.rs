//! `redis://HOST[:PORT]/CAMPAIGN`: which server, and which campaign there.
//!
//! Everybody who can list processes sees command lines, so passwords are not accepted there: they come from the environment, or from a
//! file that holds the URL. Nothing here prints a password.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// The user's name, if the server has several.
pub const USER_VARIABLE: &str = "FENCEPOST_FLEET_USER";
pub const PASSWORD_VARIABLE: &str = "FENCEPOST_FLEET_PASSWORD";

const PORT: u16 = 6379;

/// What the environment held when the process began.
static TAKEN: OnceLock<[Option<String>; 2]> = OnceLock::new();

/// Takes the credentials out of the environment, so that no process that this one starts has them: neither the target, nor what is
/// kept of its environment.
///
/// # Safety
/// No other thread may run yet.
pub unsafe fn take_credentials() {
    let names = [USER_VARIABLE, PASSWORD_VARIABLE];
    let _ = TAKEN.set(names.map(|name| std::env::var(name).ok()));
    for name in names {
        // SAFETY: by the contract of this function nobody else uses the environment.
        unsafe { std::env::remove_var(name) };
    }
}

/// The user's name and the password of the environment, for a process that needs them.
pub fn credentials() -> [(&'static str, Option<String>); 2] {
    let names = [USER_VARIABLE, PASSWORD_VARIABLE];
    let now = || names.map(|name| std::env::var(name).ok());
    let [user, password] = TAKEN.get().cloned().unwrap_or_else(now);
    [(USER_VARIABLE, user), (PASSWORD_VARIABLE, password)]
}

/// Where a campaign is. `Display` leaves the credentials out.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    pub tls: bool,
    pub host: String,
    pub port: u16,
    pub campaign: String,
    user: Option<String>,
    password: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("the address of a fleet is redis://HOST[:PORT]/CAMPAIGN, or @FILE for a file that has it")]
    Form,
    #[error("`{0}` is no port")]
    Port(String),
    #[error("`{0}` is no name of a campaign; use letters, digits, `.`, `-` and `_`")]
    Campaign(String),
    #[error(
        "a password on the command line can be read by everybody on this machine; set {PASSWORD_VARIABLE}, or write the URL into a \
         file and give @FILE"
    )]
    PasswordInArguments,
    #[error("cannot read the address from {path}: {why}")]
    File { path: String, why: String },
}

impl Address {
    /// What the user gave: a URL without a password, or `@FILE`. Credentials that the URL lacks come from the environment.
    pub fn given(text: &str) -> Result<Address, AddressError> {
        let address = match text.strip_prefix('@') {
            Some(file) => Address::from_file(Path::new(file))?,
            None => {
                let address = Address::parse(text)?;
                if address.password.is_some() {
                    return Err(AddressError::PasswordInArguments);
                }
                address
            }
        };
        let [user, password] = credentials().map(|(_, value)| value.filter(|value| !value.is_empty()));
        Ok(Address { user: address.user.or(user), password: address.password.or(password), ..address })
    }

    fn from_file(path: &Path) -> Result<Address, AddressError> {
        let failed = |why: String| AddressError::File { path: path.display().to_string(), why };
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        // The file may hold a password: what is wrong with it is said without quoting it.
        Address::parse(text.trim()).map_err(|error| match error {
            AddressError::Form => error,
            _ => failed("it does not hold redis://[USER:PASSWORD@]HOST[:PORT]/CAMPAIGN".into()),
        })
    }

    fn parse(text: &str) -> Result<Address, AddressError> {
        let (scheme, rest) = text.split_once("://").ok_or(AddressError::Form)?;
        let tls = match scheme {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return Err(AddressError::Form),
        };
        let (place, campaign) = rest.rsplit_once('/').ok_or(AddressError::Form)?;
        let (credentials, server) = match place.rsplit_once('@') {
            Some((credentials, server)) => (Some(credentials), server),
            None => (None, place),
        };
        let (user, password) = match credentials.map(|text| text.split_once(':').unwrap_or((text, ""))) {
            Some((user, password)) => (Some(decoded(user)?), Some(decoded(password)?)),
            None => (None, None),
        };
        let (host, port) = match server.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'))
        {
            Some((host, port)) => (host, port.parse().map_err(|_| AddressError::Port(port.to_owned()))?),
            None => (server, PORT),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(AddressError::Form);
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if campaign.is_empty() || campaign.len() > 128 || !campaign.chars().all(is_plain) {
            return Err(AddressError::Campaign(campaign.to_owned()));
        }
        let non_empty = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(Address {
            tls,
            host: host.to_owned(),
            port,
            campaign: campaign.to_owned(),
            user: non_empty(user),
            password: non_empty(password),
        })
    }

    pub(super) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(super) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// `HOST:PORT`, for messages.
    pub fn server(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{host}:{}", self.port)
    }
}

/// `%40` and the like.
fn decoded(text: &str) -> Result<String, AddressError> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16)).ok_or(AddressError::Form);
        let (high, low) = (digit(rest.next())?, digit(rest.next())?);
        bytes.push((high << 4 | low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| AddressError::Form)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "rediss" } else { "redis" };
        write!(f, "{scheme}://{}/{}", self.server(), self.campaign)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let address = Address::parse("redis://example.org/nightly").unwrap();
        assert_eq!((address.tls, address.host.as_str(), address.port), (false, "example.org", 6379));
        assert_eq!(address.campaign, "nightly");
        let address = Address::parse("rediss://[::1]:7000/a.b-c_1").unwrap();
        assert_eq!((address.tls, address.host.as_str(), address.port), (true, "::1", 7000));
        assert_eq!(address.to_string(), "rediss://[::1]:7000/a.b-c_1");
        for wrong in
            ["", "localhost/x", "http://h/x", "redis://h", "redis:///x", "redis://h/", "redis://h/a b", "redis://h:x/a"]
        {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn passwords_are_neither_shown_nor_taken_from_the_command_line() {
        let address = Address::parse("redis://me:s%40crx@h:1/c").unwrap();
        assert_eq!((address.user(), address.password()), (Some("me"), Some("s@crx")));
        assert_eq!(format!("{address} {address:?}"), "redis://h:1/c Address(redis://h:1/c)");
        let refused = Address::given("redis://:s3cret@h/c").unwrap_err();
        assert_eq!(refused, AddressError::PasswordInArguments);
        assert!(!refused.to_string().contains("s3cret"));
    }

    #[test]
    fn a_file_may_hold_a_password() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "redis://:s3cret@h/c\n").unwrap();
        let address = Address::given(&format!("@{}", file.path().display())).unwrap();
        assert_eq!(address.password(), Some("s3cret"));
        fs::write(file.path(), "redis://:s3cret@h:port/c\n").unwrap();
        let error = Address::given(&format!("@{}", file.path().display())).unwrap_err();
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}
