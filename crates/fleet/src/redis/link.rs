//! A connection to Redis that reconnects: a command that fails because the server or the network is down is sent again.
//!
//! Every command can be sent twice without harm, so it does not matter whether the command or only its answer was lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redis::{
    Client, Cmd, Connection, ConnectionAddr, FromRedisValue, IntoConnectionInfo, Pipeline, RedisConnectionInfo,
    RedisError,
};

use super::address::Address;

/// Silence of a server that answers, beside what a command waits itself.
const SILENCE: Duration = Duration::from_secs(10);
const TO_CONNECT: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("cannot reach Redis at {server} for {} s: {why}", .away_limit.as_secs())]
    Unreachable { server: String, away_limit: Duration, why: String },
    #[error("Redis at {server} refuses: {why}")]
    Refused { server: String, code: String, why: String },
    #[error(
        "this Fencepost was built without TLS; build it with `--features tls`, or use redis:// through a tunnel (ssh -L, stunnel)"
    )]
    NoTls,
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

/// One connection.
pub struct Link {
    client: Client,
    server: String,
    connection: Option<Connection>,
    /// How long a server that is gone is waited for.
    pub away_limit: Duration,
    /// Set from outside: do not wait any longer.
    pub give_up: Option<Arc<AtomicBool>>,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Link {
    /// Connects when it is needed.
    pub fn new(address: &Address, away_limit: Duration) -> Result<Link, LinkError> {
        let client = client(address)?;
        Ok(Link { client, server: address.server(), connection: None, away_limit, give_up: None })
    }

    /// Another connection to the same server.
    pub fn another(&self) -> Link {
        Link {
            client: self.client.clone(),
            server: self.server.clone(),
            connection: None,
            away_limit: self.away_limit,
            give_up: self.give_up.clone(),
        }
    }

    pub fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, LinkError> {
        self.trying(|connection| command.query(connection))
    }

    pub fn pipeline<T: FromRedisValue>(&mut self, pipeline: &Pipeline) -> Result<T, LinkError> {
        self.trying(|connection| pipeline.query(connection))
    }

    /// Tried once.
    pub fn once<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, RedisError> {
        self.attempt(&mut |connection| command.query(connection))
    }

    fn attempt<T>(&mut self, ask: &mut dyn FnMut(&mut Connection) -> Result<T, RedisError>) -> Result<T, RedisError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            missing => {
                let connection = self.client.get_connection_with_timeout(TO_CONNECT)?;
                connection.set_read_timeout(Some(SILENCE))?;
                connection.set_write_timeout(Some(SILENCE))?;
                missing.insert(connection)
            }
        };
        // After a failure nobody knows which answer would come next.
        ask(connection).inspect_err(|error| {
            if !is_an_answer(error) {
                self.connection = None;
            }
        })
    }

    fn trying<T>(&mut self, mut ask: impl FnMut(&mut Connection) -> Result<T, RedisError>) -> Result<T, LinkError> {
        let begun = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.attempt(&mut ask) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if is_an_answer(&error) && !is_passing(&error) {
                return Err(refusal(&self.server, &error));
            }
            if self.gives_up() {
                return Err(LinkError::Interrupted);
            }
            if begun.elapsed() > self.away_limit {
                let (server, away_limit) = (self.server.clone(), self.away_limit);
                return Err(LinkError::Unreachable { server, away_limit, why: error.to_string() });
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn gives_up(&self) -> bool {
        self.give_up.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

/// The server has answered, though not as it should.
fn is_an_answer(error: &RedisError) -> bool {
    error.code().is_some()
}

/// The server will answer otherwise after a while: it reads its files, has no room for now, or is about to be replaced.
fn is_passing(error: &RedisError) -> bool {
    let passing =
        ["LOADING", "BUSY", "MISCONF", "OOM", "MASTERDOWN", "READONLY", "TRYAGAIN", "CLUSTERDOWN", "NOREPLICAS"];
    error.code().is_some_and(|code| passing.contains(&code))
}

fn refusal(server: &str, error: &RedisError) -> LinkError {
    let code = error.code().unwrap_or_default().to_owned();
    LinkError::Refused { server: server.to_owned(), code, why: error.to_string() }
}

/// The group, or the whole stream, is not there: the campaign is over, or Redis has forgotten it. Whoever waits at a stream that is
/// removed is told `UNBLOCKED`.
pub(super) fn is_forgotten(error: &LinkError) -> bool {
    matches!(error, LinkError::Refused { code, .. } if code == "NOGROUP" || code == "UNBLOCKED")
}

fn client(address: &Address) -> Result<Client, LinkError> {
    let refused = |error: RedisError| refusal(&address.server(), &error);
    let mut settings = RedisConnectionInfo::default();
    if let Some(user) = address.user() {
        settings = settings.set_username(user);
    }
    if let Some(password) = address.password() {
        settings = settings.set_password(password);
    }
    let place = place(address)?;
    let info = place.into_connection_info().map_err(refused)?.set_redis_settings(settings);
    Client::open(info).map_err(refused)
}

fn place(address: &Address) -> Result<ConnectionAddr, LinkError> {
    let (host, port) = (address.host.clone(), address.port);
    match address.tls {
        false => Ok(ConnectionAddr::Tcp(host, port)),
        // Certificates are those that the system trusts, or of SSL_CERT_FILE.
        #[cfg(feature = "tls")]
        true => Ok(ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }),
        #[cfg(not(feature = "tls"))]
        true => Err(LinkError::NoTls),
    }
}
