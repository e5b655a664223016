//! Networks for tests against the kernel's protocols: namespaces with cables or TUN devices, which are removed when
//! their values are dropped.
//!
//! If it is not permitted, each function prints "not run" with the reason, and returns `None`:
//!
//! ```ignore
//! let Some((kernel, tun)) = netns::tun_to_kernel() else { return };
//! let listener = kernel.run(|| TcpListener::bind((netns::KERNEL_V4, 80))).unwrap().unwrap();
//! let curl = kernel.command("curl").arg("http://10.91.0.2/").spawn();
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;

use rexmit::tun::{NetNamespace, Tun, TunConfig, TunError};

/// The kernel's addresses at the other end of [`tun_to_kernel`].
pub(crate) const KERNEL_V4: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 1);
pub(crate) const KERNEL_V6: Ipv6Addr = Ipv6Addr::new(0xfd91, 0, 0, 0, 0, 0, 0, 1);
/// Addresses of the user-space protocol at this end.
pub(crate) const OURS_V4: Ipv4Addr = Ipv4Addr::new(10, 91, 0, 2);
pub(crate) const OURS_V6: Ipv6Addr = Ipv6Addr::new(0xfd91, 0, 0, 0, 0, 0, 0, 2);

/// The value; if it is an error of permissions, prints a note and returns `None`.
pub(crate) fn if_permitted<T>(result: Result<T, TunError>) -> Option<T> {
    match result {
        Err(error) if error.is_not_permitted() => {
            rexmit_testkit::not_run(error);
            None
        }
        result => Some(result.expect("a network for the test")),
    }
}

/// A namespace with only its loopback interface.
pub(crate) fn namespace() -> Option<NetNamespace> {
    if_permitted(NetNamespace::new())
}

/// A namespace whose kernel is reached through the device: it has [`KERNEL_V4`] and [`KERNEL_V6`].
pub(crate) fn tun_to_kernel() -> Option<(NetNamespace, Tun)> {
    let kernel = namespace()?;
    let config = TunConfig::default().ipv4(Some((KERNEL_V4, 24))).ipv6(vec![(KERNEL_V6, 64)]);
    let tun = if_permitted(Tun::open_in(&kernel, &config))?;
    Some((kernel, tun))
}

/// Two namespaces with a cable (veth) between them, called `cable` at both ends, with these
/// addresses (`10.0.0.1/24`).
pub(crate) fn cabled(addresses: [&[&str]; 2]) -> Option<[NetNamespace; 2]> {
    cabled_by(&[("cable", addresses)])
}

/// Two namespaces with several cables, whose ends have the same name on both sides.
pub(crate) fn cabled_by(cables: &[(&str, [&[&str]; 2])]) -> Option<[NetNamespace; 2]> {
    let ends = [namespace()?, namespace()?];
    if Command::new("ip").arg("-V").output().is_err() {
        rexmit_testkit::not_run("`ip` is not installed (package iproute2)");
        return None;
    }
    for (cable, addresses) in cables {
        let other = ends[1].path();
        ip(&ends[0], &format!("link add {cable} type veth peer name {cable} netns {other}"));
        for (end, addresses) in ends.iter().zip(addresses) {
            for address in *addresses {
                let nodad = if address.contains(':') { "nodad" } else { "" };
                ip(end, &format!("address add {address} dev {cable} {nodad}"));
            }
            ip(end, &format!("link set {cable} up"));
        }
    }
    Some(ends)
}

/// Runs iproute2 in a namespace.
pub(crate) fn ip(namespace: &NetNamespace, arguments: &str) -> String {
    output(namespace.command("ip").args(arguments.split_whitespace()))
}

/// The output of a command, which must succeed.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {} {stderr}", output.status);
    String::from_utf8(output.stdout).expect("text")
}
