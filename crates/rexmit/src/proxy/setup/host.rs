//! Queries and changes of the machine's settings.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nix::ifaddrs::getifaddrs;
use rustix::process::Signal;
use rustix::thread::{CapabilitySet, capabilities};

use super::config::Firewall;
use super::error::SetupError;

/// Directories of root's programs, which may be missing in the PATH of other users.
const SBIN: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];

/// The program of a firewall.
pub(super) const fn program(firewall: Firewall, is_ipv4: bool) -> &'static str {
    match (firewall, is_ipv4) {
        (Firewall::Nft, _) => "nft",
        (Firewall::Iptables, true) => "iptables",
        (Firewall::Iptables, false) => "ip6tables",
    }
}

pub(super) fn is_installed(firewall: Firewall, is_ipv4: bool) -> bool {
    find(program(firewall, is_ipv4)).is_some()
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SBIN.iter().map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The signals that the proxy handles, and that reach its process group.
const GROUP_SIGNALS: [Signal; 3] = [Signal::HUP, Signal::INT, Signal::TERM];
/// The number of times that a program is started if one of them ends it.
const MAX_STARTS: u32 = 10;

/// Runs `arguments`, the first of which is the program, and returns the output.
///
/// # Errors
/// If it cannot be run, or fails.
pub(super) fn run(arguments: &[String]) -> Result<String, SetupError> {
    let [program, rest @ ..] = arguments else { return Ok(String::new()) };
    let file = find(program).unwrap_or_else(|| program.into());
    let mut command = Command::new(file);
    // A signal to the group of this process, as a second Ctrl-C, must not end what removes the rules.
    command.args(rest).stdin(Stdio::null()).process_group(0);
    let output = output(|| command.output()).map_err(|source| SetupError::NoProgram {
        program: program.clone(),
        package: package(program),
        source,
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let mut said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    if said.is_empty() {
        said = output.status.to_string();
    }
    Err(SetupError::Command { command: shell(arguments), said })
}

/// The output of a program that `run` runs. A signal to the process group of the proxy can end the program between fork and
/// setpgid: then it was not executed, and is started again.
fn output(mut run: impl FnMut() -> io::Result<Output>) -> io::Result<Output> {
    let mut starts = 1;
    loop {
        let output = run()?;
        let signal = output.status.signal().and_then(Signal::from_named_raw);
        if starts == MAX_STARTS || signal.is_none_or(|it| !GROUP_SIGNALS.contains(&it)) {
            return Ok(output);
        }
        starts += 1;
    }
}

fn package(program: &str) -> &'static str {
    match program {
        "nft" => "nftables",
        "ip" => "iproute2",
        _ => "iptables",
    }
}

/// A command line as text for a shell.
pub(super) fn shell(arguments: &[String]) -> String {
    arguments.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The interface that has this address.
pub(super) fn owner(of: IpAddr) -> Result<Option<String>, SetupError> {
    let mut all = getifaddrs().map_err(|error| SetupError::Io {
        doing: "the addresses of this machine cannot be read",
        source: error.into(),
    })?;
    let found = all.find(|one| {
        one.address.as_ref().is_some_and(|found| match of {
            IpAddr::V4(of) => found.as_sockaddr_in().is_some_and(|found| found.ip() == of),
            IpAddr::V6(of) => found.as_sockaddr_in6().is_some_and(|found| found.ip() == of),
        })
    });
    Ok(found.map(|interface| interface.interface_name))
}

/// Returns an error for interfaces that do not exist.
pub(super) fn check_interface(name: &str) -> Result<(), SetupError> {
    // The name becomes a part of firewall rules, and the kernel allows nearly any character in it.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@:".contains(c);
    if name.chars().all(is_plain) && nix::net::if_::if_nametoindex(name).is_ok() {
        Ok(())
    } else {
        Err(SetupError::NoInterface(name.into()))
    }
}

/// The kernel setting that makes an interface forward packets that it receives; `all` for the whole machine.
pub(super) fn forwarding(is_ipv4: bool, interface: &str) -> PathBuf {
    let family = if is_ipv4 { "ipv4" } else { "ipv6" };
    Path::new("/proc/sys/net").join(family).join("conf").join(interface).join("forwarding")
}

pub(super) fn is_on(switch: &Path) -> Result<bool, SetupError> {
    let text = std::fs::read_to_string(switch);
    let text = text.map_err(|source| SetupError::KernelSetting { path: switch.into(), source })?;
    Ok(text.trim() != "0")
}

pub(super) fn write(switch: &Path, value: &str) -> Result<(), SetupError> {
    std::fs::write(switch, value)
        .map_err(|source| SetupError::KernelSetting { path: switch.into(), source })
}

/// Checks that this process has the privileges to change networks.
pub(super) fn check_permission() -> Result<(), SetupError> {
    let may = capabilities(None).is_ok_and(|it| it.effective.contains(CapabilitySet::NET_ADMIN));
    // Programs that are started get root's privileges, not those of this program's file.
    if may && rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let command = std::env::args().collect::<Vec<_>>();
    Err(SetupError::Permission { command: shell(&command) })
}

/// Returns an error for a listening address that clients cannot connect to.
pub(super) fn check_place(listen: SocketAddr) -> Result<(), SetupError> {
    let ip = listen.ip();
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    if ip.is_unspecified() || ip.is_multicast() || is_broadcast || listen.port() == 0 {
        return Err(SetupError::InvalidAddress(listen));
    }
    if ip.is_loopback() { Err(SetupError::Loopback(listen)) } else { Ok(()) }
}

/// Whether the error says that the object does not exist, as on a machine without an earlier setup.
pub(super) fn is_absent(error: &SetupError) -> bool {
    let source = match error {
        SetupError::KernelSetting { source, .. } => source,
        _ => return false,
    };
    source.kind() == io::ErrorKind::NotFound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        let words = ["nft", "add rule ip t c accept", "it's", "", "10.0.0.1:22"];
        let words: Vec<_> = words.map(String::from).into();
        assert_eq!(shell(&words), r"nft 'add rule ip t c accept' 'it'\''s' '' 10.0.0.1:22");
    }

    #[test]
    fn a_program_that_a_signal_to_the_group_ended_is_started_again() {
        let starts = |scripts: &[&str]| {
            let mut rest = scripts.iter();
            // These tests may have been started by a shell that ignores signals for them.
            let sh = ["--default-signal=INT,HUP,TERM", "sh", "-c"];
            let script =
                || Command::new("env").args(sh).arg(rest.next().unwrap_or(&"true")).output();
            let success = output(script).unwrap().status.success();
            (scripts.len() - rest.len(), success)
        };
        assert_eq!(starts(&["kill -INT $$", "kill -HUP $$", "true", "true"]), (3, true));
        assert_eq!(starts(&["kill -TERM $$"; 20]), (MAX_STARTS as usize, false));
        assert_eq!(starts(&["exit 1", "true"]), (1, false));
        assert_eq!(starts(&["kill -KILL $$", "true"]), (1, false), "it may have done something");
    }

    #[test]
    fn a_program_that_a_signal_ended_is_reported_with_the_signal() {
        let error = run(&["sh", "-c", "kill -KILL $$"].map(String::from)).unwrap_err();
        assert!(error.to_string().contains("signal: 9"), "{error}");
    }

    #[test]
    fn addresses_without_clients_are_refused() {
        for text in ["0.0.0.0:22", "224.0.0.1:22", "255.255.255.255:1", "10.0.0.1:0", "[::]:1"] {
            let error = check_place(text.parse().unwrap()).unwrap_err();
            assert!(matches!(error, SetupError::InvalidAddress(_)), "{text}");
        }
        for text in ["127.0.0.1:22", "[::1]:22"] {
            let error = check_place(text.parse().unwrap()).unwrap_err();
            assert!(matches!(error, SetupError::Loopback(_)), "{text}");
        }
        check_place("192.0.2.1:22".parse().unwrap()).unwrap();
    }
}
