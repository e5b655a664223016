//! A host with a service and a proxy, and clients that reach it over an emulated link.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rexmit::emulator::{LinkConfig, TunEmulator};
use rexmit::tun::{NetNamespace, Tun, TunConfig};

use crate::netns;

/// The host's address, to which clients connect, and the clients' address.
pub(crate) const HOST: Ipv4Addr = Ipv4Addr::new(10, 92, 0, 1);
pub(crate) const CLIENTS: Ipv4Addr = Ipv4Addr::new(10, 92, 0, 2);
/// Where clients connect to.
pub(crate) const PORT: u16 = 7000;
/// Time limit of every step; only a failing test reaches it.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Both networks; dropping this value removes them.
pub(crate) struct Place {
    pub(crate) host: NetNamespace,
    pub(crate) clients: NetNamespace,
    /// The host's interface towards the clients.
    pub(crate) interface: String,
    _link: TunEmulator,
}

impl Place {
    /// A host and clients over a link that is `path` in both directions; prints a note and returns `None` if not permitted.
    pub(crate) fn over(path: &str) -> Option<Self> {
        for (program, package) in [("nft", "nftables"), ("ip", "iproute2")] {
            if Command::new(program).arg("-V").output().is_err() {
                rexmit_testkit::not_run(format_args!(
                    "`{program}` is not installed (package {package})"
                ));
                return None;
            }
        }
        let (host, clients) = (netns::namespace()?, netns::namespace()?);
        if !may_have_rules(&host) {
            return None;
        }
        let end = |address, v6: &str, is_default_route| {
            TunConfig::default()
                .ipv4(Some((address, 24)))
                .ipv6(vec![(v6.parse().expect("an address"), 64)])
                .is_default_route(is_default_route)
        };
        // The host has a default route, as most hosts do.
        let far = Tun::open_in(&host, &end(HOST, "fd92::1", true)).expect("a device");
        let near = Tun::open_in(&clients, &end(CLIENTS, "fd92::2", true)).expect("a device");
        let interface = far.name().to_owned();
        let path: rexmit::path::PathConfig = path.parse().expect("a path");
        let config = LinkConfig::default().forward(path.clone()).backward(path);
        let link = TunEmulator::start(&config, near, far).expect("an emulator");
        Some(Self { host, clients, interface, _link: link })
    }

    /// Starts a service on loopback, and returns its address.
    pub(crate) fn service(&self) -> (TcpListener, SocketAddr) {
        let bind = || TcpListener::bind("127.0.0.1:0");
        let listener = self.host.run(bind).expect("the namespace").expect("a listener");
        let address = listener.local_addr().expect("an address");
        (listener, address)
    }

    /// An echo service for any client.
    pub(crate) fn echo(&self) -> SocketAddr {
        let (listener, address) = self.service();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    // A client that was reset receives nothing more.
                    let _ = std::io::copy(&mut &stream, &mut &stream);
                });
            }
        });
        address
    }

    pub(crate) fn connect(&self) -> TcpStream {
        self.try_connect((HOST, PORT).into()).expect("a connection")
    }

    pub(crate) fn try_connect(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        let connect = || TcpStream::connect_timeout(&to, TIME_LIMIT);
        self.clients.run(connect).expect("the namespace").map(with_time_limit)
    }

    /// The command `rexmit proxy` on the host; the caller adds arguments.
    pub(crate) fn rexmit(&self, words: &str) -> Command {
        let mut command = self.host.command(env!("CARGO_BIN_EXE_rexmit"));
        command.args(["proxy", "--listen", &format!("{HOST}:{PORT}")]);
        command.args(words.split_whitespace());
        command
    }

    /// Starts a proxy, and waits until it has made its setup and listens.
    pub(crate) fn proxy(&self, upstream: SocketAddr, words: &str) -> Running {
        let words = format!("--upstream {upstream} --setup {words}");
        let mut running = Running::start(&mut self.rexmit(&words));
        running.wait_for("listening on");
        running
    }

    /// A snapshot of rules, interfaces, routes and kernel settings of the host.
    pub(crate) fn look(&self) -> String {
        let all = "nft list ruleset; ip -o link; ip -o address; ip route; \
                   grep -H . /proc/sys/net/ipv4/conf/*/forwarding";
        netns::output(self.host.command("sh").args(["-c", all]))
    }
}

/// Whether this kernel can translate addresses.
fn may_have_rules(host: &NetNamespace) -> bool {
    let chain = "add table ip try ; add chain ip try try { type nat hook prerouting priority dstnat ; } ; \
                 add rule ip try try ct status dnat accept ; delete table ip try";
    let output = host.command("nft").arg(chain).output().expect("nft");
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        rexmit_testkit::not_run(format_args!("nft: {error}"));
    }
    output.status.success()
}

/// Sets time limits on the socket, so that a failing test ends.
pub(crate) fn with_time_limit(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(TIME_LIMIT)).expect("a socket");
    stream.set_write_timeout(Some(TIME_LIMIT)).expect("a socket");
    stream
}

pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    with_time_limit(listener.accept().expect("a connection").0)
}

pub(crate) fn rest(mut from: &TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).map(|_| bytes)
}

pub(crate) fn expect(mut from: &TcpStream, expected: &[u8]) {
    let mut bytes = vec![0; expected.len()];
    from.read_exact(&mut bytes).expect("bytes");
    assert_eq!(bytes, expected);
}

pub(crate) fn say(mut to: &TcpStream, bytes: &[u8]) {
    to.write_all(bytes).expect("room");
}

/// A program whose standard error is read; killed when dropped.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    pub(crate) output: String,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("a program");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (send, lines) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).all(|it| send.send(it).is_ok())
        });
        Self { child, lines, output: String::new() }
    }

    /// Waits until it prints `what`, and returns the line.
    pub(crate) fn wait_for(&mut self, what: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(TIME_LIMIT);
            let line = line.unwrap_or_else(|error| panic!("{error}; it said: {}", self.output));
            self.output.push_str(&line);
            self.output.push('\n');
            if line.contains(what) {
                return line;
            }
        }
    }

    /// Closes the pipe of its output after the next line.
    pub(crate) fn stop_listening(&mut self) {
        self.lines = channel().1;
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let kill = Command::new("kill").args(["-s", name, &pid]).status().expect("kill");
        assert!(kill.success());
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("an end");
        let mut told = std::mem::take(&mut self.output);
        for line in &self.lines {
            told.push_str(&line);
            told.push('\n');
        }
        (status, told)
    }

    /// Stops it, and checks that it reports no error.
    pub(crate) fn stop(self) -> String {
        self.signal("TERM");
        let (status, told) = self.end();
        assert!(status.success(), "{told}");
        told
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
