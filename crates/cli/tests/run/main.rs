//! `rexmit run`: programs whose SCTP sockets are served, two processes over loopback.
//!
//! `sockets.py` has the test programs; iperf3 and lksctp-tools are unmodified programs of Debian.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_rexmit");

/// Builds the preloaded library with the profile of these tests, because cargo does not build it for them.
fn library() -> &'static PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let profile = PathBuf::from(BINARY);
        let folder = profile.parent().expect("a folder of binaries");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "-p", "rexmit-preload"]);
        if folder.ends_with("release") {
            cargo.arg("--release");
        }
        cargo.arg("--target-dir").arg(folder.parent().expect("a target folder"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(cargo.status().expect("cargo runs this test").success());
        folder.join("librexmit_preload.so")
    })
}

/// An engine for one test: its UDP port.
struct Engine(String);

impl Engine {
    fn new() -> Self {
        // The port is free again at once. Another program could bind it in between, which is unlikely.
        let free = UdpSocket::bind("[::]:0").or_else(|_| UdpSocket::bind("0.0.0.0:0"));
        let address = free.and_then(|socket| socket.local_addr());
        Self(address.expect("a free port").port().to_string())
    }

    /// A command whose sockets this engine serves.
    fn command(&self, program: &[&str]) -> Command {
        self.command_to(self, program)
    }

    /// The same command, for peers that another engine serves.
    fn command_to(&self, peers: &Self, program: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.env("REXMIT_PRELOAD", library());
        command.args(["run", "--always", "--udp-port", &self.0, "--peer-udp-port", &peers.0, "--"]);
        command.args(program);
        command
    }

    fn output(&self, program: &[&str]) -> Output {
        self.command(program).output().expect("the binary runs")
    }
}

impl Drop for Engine {
    /// Checks that the engine ends with its last program, and removes its files.
    fn drop(&mut self) {
        let port = self.0.parse().unwrap_or(0);
        let is_free = || UdpSocket::bind(("0.0.0.0", port)).is_ok();
        let ended = (0..1500).any(|_| {
            pause();
            is_free()
        });
        if !std::thread::panicking() {
            assert!(ended, "the engine at UDP port {port} does not end");
        }
    }
}

/// A program that is killed at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn script() -> String {
    format!("{}/tests/run/sockets.py", env!("CARGO_MANIFEST_DIR"))
}

/// Whether the program is installed; otherwise prints what to install.
fn is_there(program: &str, package: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        rexmit_testkit::not_run(format_args!(
            "{program} is missing; install the package {package}"
        ));
    }
    found
}

/// Reads a program's output up to the line that contains `wanted`.
fn wait_for(lines: &mut Lines<BufReader<ChildStdout>>, wanted: &str) {
    let found = lines.any(|line| line.is_ok_and(|line| line.contains(wanted)));
    assert!(found, "no line contains {wanted:?}");
}

fn passes(test: &str) {
    let output = Engine::new().output(&["python3", &script(), test]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", output.status);
}

#[test]
fn messages_keep_their_boundaries() {
    passes("messages");
}

#[test]
fn an_association_ends_as_the_kernels() {
    passes("ends");
}

#[test]
fn close_waits_for_the_time_of_so_linger() {
    passes("lingers");
}

#[test]
fn calls_wait_or_do_not() {
    passes("waiting");
}

#[test]
fn descriptors_survive_fork_dup_exec_and_passing() {
    passes("descriptors");
}

#[test]
fn options_are_read_as_they_were_set() {
    passes("options");
}

#[test]
fn data_is_not_moved_past_the_library() {
    passes("moves");
}

#[test]
fn bad_input_has_the_errno_of_the_kernel() {
    passes("bad_input");
}

#[test]
fn options_that_are_not_served_have_the_errno_of_the_kernel() {
    passes("refused");
}

#[test]
fn ancillary_data_of_a_wrong_kind_is_refused() {
    passes("ancillary");
}

#[test]
fn arguments_that_linux_refuses_have_its_errno() {
    passes("arguments");
}

#[test]
fn sockets_without_an_association_are_as_the_kernels() {
    passes("unconnected");
}

#[test]
fn a_socket_outlives_its_association() {
    passes("ended");
}

#[test]
fn the_end_of_the_association_ends_a_call_that_waits() {
    passes("blocked");
}

#[test]
fn options_are_read_into_the_rooms_of_the_kernel() {
    passes("reading");
}

#[test]
fn switches_are_kept() {
    passes("reuse");
}

#[test]
fn failed_messages_are_notified_after_the_end() {
    passes("failed");
}

#[test]
fn ipv6_sockets_refuse_ipv4_if_asked_to() {
    passes("v6only");
}

#[test]
fn streams_are_reset() {
    passes("resets");
}

#[test]
fn a_call_that_waits_stays_with_its_socket() {
    passes("replaced");
}

#[test]
fn signals_interrupt_calls_or_do_not() {
    passes("signals");
}

#[test]
fn the_first_signal_ends_a_send_that_waits() {
    passes("waiting_sends");
    passes("filling");
}

#[test]
fn poll_waits_for_data_and_its_end() {
    passes("polling");
}

#[test]
fn a_program_connects_to_several_addresses() {
    passes("connectx");
}

#[test]
fn an_association_is_peeled_off() {
    passes("peeled");
}

#[test]
fn sockets_are_bounded() {
    let output = Engine::new().output(&["python3", &script(), "many"]);
    let text = String::from_utf8_lossy(&output.stdout);
    let reached = text.trim().strip_suffix(" sockets").and_then(|count| count.parse().ok());
    assert!(output.status.success() && reached.is_some_and(|count: u32| count > 100), "{output:?}");
    if reached != Some(10_000) {
        rexmit_testkit::not_run(format_args!(
            "the limit of descriptors allows {} sockets of 10,000",
            text.trim()
        ));
    }
}

#[test]
fn the_engine_keeps_nothing_of_programs_that_were_killed() {
    let engine = Engine::new();
    let mut program = engine.command(&["python3", &script(), "killed"]);
    program.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Running(program.spawn().expect("the binary runs"));
    let mut input = program.0.stdin.take().expect("piped");
    let mut lines = BufReader::new(program.0.stdout.take().expect("piped")).lines();
    let process = |engine| PathBuf::from("/proc").join(process_of(engine));
    let descriptors = || {
        let folder = process(&engine).join("fd");
        std::fs::read_dir(folder).expect("the engine runs").count()
    };
    wait_for(&mut lines, "ready");
    let before = descriptors();
    input.write_all(b"go\n").expect("it reads");
    wait_for(&mut lines, "done");
    let is_free = |_| {
        pause();
        descriptors() <= before
    };
    assert!((0..1500).any(is_free), "{} descriptors, {before} before", descriptors());
}

#[expect(clippy::disallowed_methods, reason = "waits for another process")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

#[test]
fn associations_of_a_one_to_many_socket_share_its_receive_window() {
    passes("unread");
}

#[test]
fn a_one_to_many_socket_serves_several_associations() {
    passes("one_to_many");
}

#[test]
fn processes_that_share_a_socket_receive_each_message_once() {
    passes("sharing");
}

#[test]
fn a_peer_has_several_addresses() {
    passes("addresses");
}

/// Runs a script for the shell as root of its own network; `None`, with a message, if the system does not permit that.
fn in_network(script: &str) -> Option<Output> {
    let inside = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "sh", "-ec", script]);
        command.env("REXMIT_PRELOAD", library()).output()
    };
    if inside("ip link set lo up").is_ok_and(|output| output.status.success()) {
        return Some(inside(script).expect("unshare runs"));
    }
    rexmit_testkit::not_run(format_args!(
        "it needs namespaces of users and networks, and the package iproute2"
    ));
    None
}

/// The addresses are those of calls/wildcards.py: they have to be there when an association begins.
#[test]
fn a_wildcard_stands_for_all_addresses_of_the_host() {
    let add = |address: &str| format!("ip address add {address} dev lo nodad");
    let addresses = ["10.71.0.1/24", "10.72.0.1/24", "fd71::1/64"].map(add).join("; ");
    for test in ["wildcards", "bound_again"] {
        let script = script();
        let Some(output) = in_network(&format!(
            "ip link set lo up; {addresses}; exec {BINARY} run --always -- python3 {script} {test}"
        )) else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}", output.status);
    }
}

#[test]
fn a_list_of_addresses_is_whole_or_none() {
    let script = script();
    let Some(output) = in_network(&format!(
        "ip link set lo up
        for last in $(seq 0 599); do echo address add 10.75.$((last / 200)).$((last % 200 + 1))/32 dev lo; done | ip -batch -
        exec {BINARY} run --always -- python3 {script} many_addresses"
    )) else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", output.status);
}

#[test]
fn new_data_leaves_a_path_that_has_failed() {
    let (run, script) = (format!("{BINARY} run --always -- python3"), script());
    let Some(output) = in_network(&format!(
        r#"
        export REXMIT_TRANSPORT="* udp"
        unshare --net sleep 60 & other=$!
        while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.1; done
        there="nsenter --net --target $other"
        ip link add near type veth peer name far netns $other
        for network in 90 91; do
            ip address add 10.$network.0.1/24 dev near
            $there ip address add 10.$network.0.2/24 dev far
        done
        ip link set near up; $there ip link set far up
        $there {run} {script} path_server & server=$!
        {run} {script} path_client && result=0 || result=$?
        kill $other $server || true
        exit $result"#
    )) else {
        return;
    };
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}", output.status);
}

#[test]
fn both_sides_on_one_host_use_large_packets() {
    passes("packets");
}

#[test]
fn a_daemon_is_served_after_its_parent_has_ended() {
    let output = Engine::new().output(&["python3", &script(), "daemon"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "served\n", "{output:?}");
}

#[test]
fn a_program_that_becomes_another_user_keeps_its_sockets() {
    if is_root() {
        passes("another_user");
    }
}

#[test]
fn other_users_neither_get_sockets_nor_stop_the_engine() {
    if is_root() {
        passes("stranger");
    }
}

/// Whether this is root; otherwise prints that the test needs it.
fn is_root() -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root {
        rexmit_testkit::not_run("only root can be another user");
    }
    is_root
}

/// The engine inherits what the command has; a root without CAP_NET_BIND_SERVICE is as another user.
#[test]
fn reserved_ports_need_the_capability() {
    if !is_root() {
        return;
    }
    let engine = Engine::new();
    for (privileges, expected) in [("+net_bind_service", "bound"), ("-net_bind_service", "EACCES")]
    {
        let command = engine.command(&["python3", &script(), "reserved", expected]);
        let mut dropped = Command::new("setpriv");
        dropped.args(["--bounding-set", privileges]).arg(command.get_program());
        dropped.args(command.get_args()).env("REXMIT_PRELOAD", library());
        let output = dropped.output().expect("setpriv of util-linux");
        assert!(
            output.status.success(),
            "{privileges}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        // The next one has an engine of its own.
        drop(Engine(engine.0.clone()));
    }
}

#[test]
fn transports_of_a_later_program_are_reported_as_not_used() {
    let engine = Engine::new();
    let mut first = engine.command(&["cat"]);
    let first =
        first.env("REXMIT_TRANSPORT", "* udp:9901").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut first = Running(first.spawn().expect("it runs"));
    // It runs once it copies: its engine has been started.
    writeln!(first.0.stdin.as_ref().expect("piped"), "ready").expect("it reads");
    wait_for(&mut BufReader::new(first.0.stdout.take().expect("piped")).lines(), "ready");
    for (transports, is_used) in [("* udp:9901 # the same", true), ("* udp:9900", false)] {
        let mut later = engine.command(&["true"]);
        let output = later.env("REXMIT_TRANSPORT", transports).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}");
        assert_eq!(text.contains("differ from those of REXMIT_TRANSPORT:"), !is_used, "{text}");
    }
    // The default transports are compared, too.
    let output =
        engine.command(&["true"]).env_remove("REXMIT_TRANSPORT").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("differ from those of "), "{text}");
}

#[test]
fn a_static_program_is_reported_as_not_served() {
    let ldconfig = "/sbin/ldconfig";
    if is_there(ldconfig, "libc-bin") {
        let output = Engine::new().output(&[ldconfig, "--version"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("is statically linked"), "{text}");
    }
}

#[test]
fn a_program_whose_engine_is_killed_is_told_so() {
    let engine = Engine::new();
    passes_after(&engine, "without_engine", || kill_engine(&engine, "-KILL"));
}

/// Runs a test of the script that waits in its middle, where `act` is called.
fn passes_after(engine: &Engine, test: &str, act: impl FnOnce()) {
    let mut program = engine.command(&["python3", &script(), test]);
    let mut program =
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let output = BufReader::new(program.stdout.take().expect("piped"));
    wait_for(&mut output.lines(), "ready");
    act();
    drop(program.stdin.take());
    let status = program.wait().expect("it ends");
    assert!(status.success(), "{status}");
}

#[test]
fn signals_that_end_a_service_leave_its_engine_to_the_last_program() {
    let engine = Engine::new();
    passes_after(&engine, "terminated", || {
        for signal in ["-HUP", "-INT", "-TERM"] {
            kill_engine(&engine, signal);
        }
    });
}

#[test]
fn the_peer_is_notified_when_a_program_is_killed() {
    let engine = Engine::new();
    let mut server = engine.command(&["python3", &script(), "serve"]);
    let mut server = Running(server.stdout(Stdio::piped()).spawn().expect("the binary runs"));
    let mut lines = BufReader::new(server.0.stdout.take().expect("piped")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    let port = next();
    let mut client = engine.command(&["python3", &script(), "vanish", &port]);
    let client = Running(client.spawn().expect("the binary runs"));
    assert_eq!(next(), "connected");
    drop(client);
    let status = server.0.wait().expect("it ends");
    assert!(status.success(), "{status}");
}

/// Kills the process that serves this UDP port, as if the host had lost its power: no ABORT is sent.
fn kill_engine(engine: &Engine, signal: &str) {
    let status = Command::new("kill").args([signal, &process_of(engine)]).status();
    assert!(status.expect("there is kill").success());
}

/// The number of the process that serves this UDP port.
fn process_of(engine: &Engine) -> String {
    let mark = format!("--udp-port\0{}\0", engine.0);
    let of_process = |entry: std::fs::DirEntry| -> Option<String> {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let is_engine = line.contains("\0--engine\0") && line.contains(&mark);
        is_engine.then(|| entry.file_name().to_string_lossy().into_owned())
    };
    let processes = std::fs::read_dir("/proc").expect("Linux has it");
    let mut found = processes.flatten().filter_map(of_process);
    found.next().expect("an engine runs")
}

#[test]
fn a_peer_that_vanishes_is_noticed_in_recv() {
    let (near, far) = (Engine::new(), Engine::new());
    let mut server = far.command(&["python3", &script(), "serve"]);
    let mut server = Running(server.stdout(Stdio::piped()).spawn().expect("the binary runs"));
    let mut lines = BufReader::new(server.0.stdout.take().expect("piped")).lines();
    let mut next = || lines.next().expect("a line").expect("text");
    let port = next();
    let mut client = near.command_to(&far, &["python3", &script(), "vanished", &port]);
    client.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = Running(client.spawn().expect("the binary runs"));
    let output = BufReader::new(client.0.stdout.take().expect("piped"));
    let mut output = output.lines();
    assert_eq!(output.next().expect("a line").expect("text"), "sent");
    assert_eq!(next(), "connected");
    kill_engine(&far, "-KILL");
    drop(client.0.stdin.take());
    let status = client.0.wait().expect("it ends");
    assert!(status.success(), "{status}");
}

#[test]
fn a_tcp_program_speaks_sctp() {
    let engine = Engine::new();
    let code = "import socket as s
l = s.create_server(('127.0.0.1', 0)); c = s.create_connection(l.getsockname()); a = l.accept()[0]
c.setsockopt(s.IPPROTO_TCP, s.TCP_NODELAY, 1); c.sendall(b'over SCTP'); c.close()
assert (a.recv(100), a.recv(100)) == (b'over SCTP', b'')
assert a.getsockopt(s.SOL_SOCKET, s.SO_PROTOCOL) == 132";
    let mut command = Command::new(BINARY);
    command.env("REXMIT_PRELOAD", library());
    command.args(["run", "--always", "--tcp-as-sctp", "--udp-port", &engine.0]);
    command.args(["--peer-udp-port", &engine.0, "--", "python3", "-c", code]);
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{output:?}");
    let output = engine.output(&["withsctp", "python3", "-c", code]);
    assert!(output.status.success(), "{output:?}");
}

/// A program may wait for all of its children, and the reader of a pipe for its end; the engine outlives both.
#[test]
fn the_engine_is_no_child_of_the_program_and_has_none_of_its_descriptors() {
    let engine = Engine::new();
    // A child that does not end would have the alarm kill the program.
    let script = "import os, signal\nsignal.alarm(60)\n\
                  try: os.wait()\nexcept ChildProcessError: print('alone')";
    let output = engine.output(&["python3", "-c", script]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "alone\n");

    let engine = Engine::new();
    // The first program starts the engine with a pipe as descriptor 3, which the program itself does not keep; the
    // second has the engine stay.
    let mut first = Command::new("sh");
    first.args(["-c", "exec 3>&1; exec \"$@\"", "sh", BINARY, "run", "--always"]);
    first.args(["--udp-port", &engine.0, "--", "sh", "-c", "echo started; read line"]);
    first.env("REXMIT_PRELOAD", library()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut first = Running(first.spawn().expect("sh"));
    let mut lines = BufReader::new(first.0.stdout.take().expect("piped")).lines();
    wait_for(&mut lines, "started");
    let mut second = engine.command(&["sh", "-c", "echo started; exec sleep 600"]);
    let mut second = Running(second.stdout(Stdio::piped()).spawn().expect("the binary runs"));
    wait_for(&mut BufReader::new(second.0.stdout.take().expect("piped")).lines(), "started");
    drop(first.0.stdin.take());
    assert!(!first.0.wait().expect("it ends").success(), "`read` saw the end of its input");
    let (done, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(lines.next().is_none()));
    assert_eq!(end.recv_timeout(Duration::from_secs(60)), Ok(true), "the engine holds the pipe");
    let port: u16 = engine.0.parse().expect("a port");
    assert!(UdpSocket::bind(("0.0.0.0", port)).is_err(), "the engine still runs");
}

#[test]
fn a_library_that_ld_so_would_not_load_is_refused() {
    let folder = std::env::temp_dir().join(format!("rexmit {}", std::process::id()));
    let library = folder.join("x.so");
    for (exists, expected) in [(false, "names no file"), (true, "space or colon")] {
        if exists {
            std::fs::create_dir(&folder).expect("a folder");
            std::fs::write(&library, "").expect("a file");
        }
        let mut command = Engine::new().command(&["true"]);
        let output = command.env("REXMIT_PRELOAD", &library).output().expect("it runs");
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{output:?}");
    }
    std::fs::remove_dir_all(folder).expect("it was made");
}

#[test]
fn iperf3_measures_over_sctp() {
    if !is_there("iperf3", "iperf3") {
        return;
    }
    let engine = Engine::new();
    let port = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = port.expect("a free port").port().to_string();
    let mut server = engine.command(&["iperf3", "-s", "-1", "-p", &port, "--forceflush"]);
    let mut server = Running(server.stdout(Stdio::piped()).spawn().expect("the binary runs"));
    let mut lines = BufReader::new(server.0.stdout.take().expect("piped")).lines();
    wait_for(&mut lines, "listening");
    let client = ["iperf3", "--sctp", "-c", "127.0.0.1", "-p", &port, "-n", "20M"];
    let output = engine.output(&client);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("receiver"), "{output:?}");
    assert!(server.0.wait().expect("it ends").success());
}

#[test]
fn lksctp_tools_send_and_receive() {
    if !is_there("sctp_test", "lksctp-tools") {
        return;
    }
    let engine = Engine::new();
    assert!(engine.output(&["checksctp"]).status.success());
    let server = ["stdbuf", "-oL", "sctp_test", "-H", "127.0.0.1", "-P", "7200", "-l"];
    let mut server = engine.command(&server);
    let mut server = Running(server.stdout(Stdio::piped()).spawn().expect("the binary runs"));
    let mut lines = BufReader::new(server.0.stdout.take().expect("piped")).lines();
    wait_for(&mut lines, "Receiving packets");
    let client = [
        "sctp_test",
        "-H",
        "127.0.0.1",
        "-P",
        "7201",
        "-h",
        "127.0.0.1",
        "-p",
        "7200",
        "-s",
        "-x",
        "3",
    ];
    let output = engine.output(&client);
    assert!(output.status.success(), "{output:?}");
    // Its peer sees the data, and a graceful end.
    let seen = ["COMMUNICATION_UP", "Data", "SHUTDOWN_COMPLETE"];
    for wanted in seen {
        wait_for(&mut lines, wanted);
    }
}

#[test]
fn a_transport_that_is_none_is_reported() {
    let engine = Engine::new();
    let mut command = engine.command(&["true"]);
    let output = command.env("REXMIT_TRANSPORT", "* carrier-pigeon").output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && text.contains("carrier-pigeon is not a transport"),
        "{text}"
    );
}

#[test]
fn a_program_that_does_not_exist_is_reported() {
    let output = Engine::new().output(&["/nowhere/at-all"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot run /nowhere/at-all"));
}
