//! Debian's coturn, a TURN and STUN server.

use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) const USER: &str = "player";
pub(crate) const PASSWORD: &str = "secret";

/// A TURN server on this host, which is stopped when this value is dropped.
pub(crate) struct Coturn {
    process: Child,
    pub(crate) address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Drop for Coturn {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Coturn {
    /// Starts a server that listens and relays at an address of this host; `None` if it is not installed.
    pub(crate) async fn start(ip: IpAddr) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let address = UdpSocket::bind((ip, 0)).unwrap().local_addr().unwrap();
        let ip = ip.to_string();
        let process = Command::new("turnserver")
            .args(["-n", "--no-cli", "--no-tls", "--no-dtls", "--fingerprint", "--lt-cred-mech"])
            .args(["--listening-ip", &ip, "--relay-ip", &ip])
            .args(["--allow-loopback-peers", "--realm", "rexmit.test", "--log-file", "stdout"])
            .args(["--listening-port", &address.port().to_string()])
            .args(["--user", &format!("{USER}:{PASSWORD}")])
            .arg("--pidfile")
            .arg(folder.path().join("pid"))
            .arg("--db")
            .arg(folder.path().join("db"))
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(process) = process else {
            rexmit_testkit::not_run("coturn is not installed (package coturn)");
            return None;
        };
        let coturn = Self { process, address, _folder: folder };
        // It listens on TCP, too, which shows that it has started.
        for _ in 0..600 {
            if TcpListener::bind(address).is_err() {
                return Some(coturn);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("coturn did not start");
    }
}
