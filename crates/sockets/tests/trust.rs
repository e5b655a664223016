//! Which engines a program accepts: those of its own user, and root's.
#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rexmit_sockets::client;

/// A program that binds the name of an engine and answers registrations.
const IMPOSTOR: &str = "
import socket, struct, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(b'\\0rexmit-run' + struct.pack('=Q', int(sys.argv[1])))
listener.listen()
print('ready', flush=True)
while True:
    connection, _ = listener.accept()
    connection.settimeout(5)
    connection.recv(100)
    connection.send(bytes(16))
";

fn registered_with(user: u32, number: u64) -> std::io::Result<u64> {
    let mut impostor = Command::new("python3");
    impostor.args(["-c", IMPOSTOR, &number.to_string()]).uid(user).stdout(Stdio::piped());
    let mut impostor = impostor.spawn().expect("python3");
    let mut line = String::new();
    let output = impostor.stdout.take().expect("piped");
    BufReader::new(output).read_line(&mut line).expect("it is ready");
    let outcome = client::register(number, "").map(|registration| registration.key);
    impostor.kill().and_then(|()| impostor.wait()).expect("it is ours");
    outcome
}

#[test]
fn an_engine_of_another_user_is_not_taken() {
    if !rustix::process::geteuid().is_root() {
        rexmit_testkit::not_run("only root can be another user");
        return;
    }
    let number = 1 << 63 | u64::from(std::process::id());
    assert!(registered_with(0, number).is_ok());
    let error = registered_with(65_534, number).expect_err("it is not root's");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
}
