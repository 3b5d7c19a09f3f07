//! `rediss://` with a real server: a trusted certificate is accepted, any other is refused, and the password is never printed.
//!
//! `cargo test --release -p fleet --features tls --test tls`

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fleet::redis::address::{Address, PASSWORD_VARIABLE};
use fleet::redis::link::Link;
use fleet::redis::survey;

struct Redis {
    port: u16,
    server: Child,
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn openssl(folder: &Path, line: &str) {
    let made = Command::new("openssl").args(line.split(' ')).current_dir(folder).stderr(Stdio::null()).status();
    assert!(made.unwrap().success(), "openssl {line}");
}

/// An authority, and a certificate of it for 127.0.0.1.
fn certificates(folder: &Path) {
    fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n").unwrap();
    openssl(folder, "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem");
    openssl(folder, "req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr");
    openssl(
        folder,
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem",
    );
    openssl(folder, "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=stranger -keyout other.key -out other.pem");
}

fn serve(folder: &Path) -> Redis {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new("redis-server");
    server.args(["--port", "0", "--tls-port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    server.args(["--tls-cert-file", "server.pem", "--tls-key-file", "server.key", "--tls-ca-cert-file", "ca.pem"]);
    server.args(["--tls-auth-clients", "no", "--requirepass", "s3cret"]);
    let server = server.current_dir(folder).stdout(Stdio::null()).spawn().unwrap();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Redis { port, server }
}

/// A process of its own: what is trusted is read once. Prints what comes of asking for a campaign.
#[test]
fn asks() {
    let Ok(url) = std::env::var("TLS_URL") else { return };
    let address = Address::given(&url).unwrap();
    let mut link = Link::new(&address, Duration::from_millis(200)).unwrap();
    match survey::status(&address, &mut link) {
        Ok(status) => println!("reached: {}", status.is_some()),
        Err(error) => println!("failed: {error} {error:?}"),
    }
}

#[test]
fn certificates_are_verified_and_passwords_stay_secret() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let redis = serve(folder.path());
    let ask = |trusted: &str, password: &str| {
        let mut asking = Command::new(std::env::current_exe().unwrap());
        asking.args(["--exact", "asks", "--nocapture"]).env(PASSWORD_VARIABLE, password);
        asking.env("TLS_URL", format!("rediss://127.0.0.1:{}/secret", redis.port));
        asking.env("SSL_CERT_FILE", folder.path().join(trusted)).env("SSL_CERT_DIR", folder.path().join("none"));
        String::from_utf8_lossy(&asking.output().unwrap().stdout).into_owned()
    };
    let trusted = ask("ca.pem", "s3cret");
    assert!(trusted.contains("reached: false"), "there is no campaign, but a server: {trusted}");
    let stranger = ask("other.pem", "s3cret");
    assert!(stranger.contains("failed: cannot reach Redis") && stranger.contains("certificate"), "{stranger}");
    let wrong = ask("ca.pem", "another s3cret");
    assert!(wrong.contains("failed: "), "{wrong}");
    for said in [trusted, stranger, wrong] {
        assert!(!said.contains("s3cret"), "{said}");
    }
}
