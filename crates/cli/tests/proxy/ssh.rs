//! A real sshd and a real ssh client.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::place::{HOST, PORT, Place, Running};

const SSHD: &str = "/usr/sbin/sshd";

/// A directory for keys, accessible to its owner only; removed when dropped.
struct Keys(PathBuf);

impl Keys {
    /// Generates the host's key, and the key of a permitted user.
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("rexmit-ssh-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        for name in ["host", "user"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path.join(name));
            crate::netns::output(&mut keygen);
        }
        fs::rename(path.join("user.pub"), path.join("authorized")).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The privilege separation directory of the system, or a directory of the user.
fn sshd(place: &Place, keys: &Keys) -> Running {
    // The daemon insists on it; the package makes it at its start.
    let _ = fs::create_dir_all("/run/sshd");
    let mut command = place.host.command(SSHD);
    command.args(["-D", "-e", "-f", "/dev/null", "-p", "2222", "-h", &keys.file("host")]);
    let options = [
        "ListenAddress=127.0.0.1".to_owned(),
        format!("AuthorizedKeysFile={}", keys.file("authorized")),
        "StrictModes=no".into(),
        "UsePAM=no".into(),
        "PidFile=none".into(),
        "PermitRootLogin=prohibit-password".into(),
    ];
    for option in &options {
        command.args(["-o", option]);
    }
    let mut running = Running::start(&mut command);
    running.wait_for("Server listening on 127.0.0.1 port 2222");
    running
}

fn ssh(place: &Place, keys: &Keys) -> Command {
    let mut command = place.clients.command("ssh");
    command.args(["-F", "/dev/null", "-p", &PORT.to_string(), "-i", &keys.file("user")]);
    for option in ["BatchMode=yes", "StrictHostKeyChecking=no", "LogLevel=ERROR"] {
        command.args(["-o", option]);
    }
    command.arg("-o").arg(format!("UserKnownHostsFile={}", keys.file("known")));
    command.arg(HOST.to_string());
    command
}

#[test]
fn sshd_is_served_over_a_lossy_link() {
    if !Path::new(SSHD).exists() || Command::new("ssh").arg("-V").output().is_err() {
        rexmit_testkit::not_run(
            "sshd or ssh is not installed (packages openssh-server, openssh-client)",
        );
        return;
    }
    let Some(place) = Place::over("delay 10ms loss 5%") else { return };
    let before = place.look();
    let keys = Keys::new();
    let _daemon = sshd(&place, &keys);
    let mut proxy = place.proxy("127.0.0.1:2222".parse().unwrap(), "");

    // A command, whose status comes back.
    let output = ssh(&place, &keys).arg("echo hello; exit 7").output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(output.stdout, b"hello\n");
    proxy.wait_for("finished");

    // Lines back and forth, as typed by a user.
    let mut session =
        ssh(&place, &keys).arg("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut keyboard, mut screen) =
        (session.stdin.take().unwrap(), BufReader::new(session.stdout.take().unwrap()));
    for number in 0..40 {
        let typed = format!("line {number}\n");
        keyboard.write_all(typed.as_bytes()).unwrap();
        let mut shown = String::new();
        screen.read_line(&mut shown).unwrap();
        assert_eq!(shown, typed);
    }
    drop(keyboard);
    let mut rest = Vec::new();
    screen.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty() && session.wait().unwrap().success());

    // More than fits in any buffer.
    let copy = ssh(&place, &keys).arg("head -c 1000000 /dev/zero").output().unwrap();
    assert!(copy.status.success() && copy.stdout == vec![0; 1_000_000], "{:?}", copy.status);
    proxy.stop();
    assert_eq!(place.look(), before);
}
