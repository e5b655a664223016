//! The setup that directs clients' packets to the proxy, and refused configurations.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rexmit::tun::{Tun, TunConfig};

use crate::netns;
use crate::place::{HOST, PORT, Place, Running, expect, say};

fn talks(place: &Place, to: SocketAddr) {
    let client = place.try_connect(to).unwrap_or_else(|error| panic!("{to}: {error}"));
    say(&client, b"hello");
    expect(&client, b"hello");
}

#[test]
fn the_printed_commands_set_up_and_undo() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let before = place.look();
    for firewall in ["nft", "iptables"] {
        if Command::new(firewall).arg("-V").output().is_err() {
            rexmit_testkit::not_run(format_args!("`{firewall}` is not installed"));
            continue;
        }
        let words = format!("--print-setup --firewall {firewall}");
        let script = netns::output(&mut place.rexmit(&words));
        let (_, undo) = script.split_once("# Undoes it:\n").unwrap();
        let undo: String =
            undo.lines().map(|line| format!("{}\n", line.strip_prefix("#   ").unwrap())).collect();
        let run = |script: &str| {
            netns::output(place.host.command("sh").args(["-ec", script]));
        };
        run(&script);
        let upstream = place.echo();
        let mut proxy = Running::start(&mut place.rexmit(&format!("--upstream {upstream}")));
        proxy.wait_for("listening on");
        talks(&place, (HOST, PORT).into());
        proxy.stop();
        run(&undo);
        let remains = place.look();
        if firewall == "nft" {
            assert_eq!(remains, before);
        }
        assert!(!remains.contains("rexmit"), "{remains}");
    }
}

#[test]
fn an_unassigned_address_needs_a_route_only() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let before = place.look();
    let routed: SocketAddr = "198.51.100.1:7000".parse().unwrap();
    let upstream = place.echo();
    let command = |words: &str| {
        let mut command = place.host.command(env!("CARGO_BIN_EXE_rexmit"));
        command.args(["proxy", "--setup", "--listen", &routed.to_string()]);
        command.args(["--upstream", &upstream.to_string()]).args(words.split_whitespace());
        command
    };
    let refused = command("").output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("no interface has 198.51.100.1: name the interface"), "{said}");
    let mut proxy = Running::start(&mut command(&format!("--interface {}", place.interface)));
    proxy.wait_for("listening on");
    assert!(!place.look().contains("dnat to"), "an address is translated");
    talks(&place, routed);
    proxy.stop();
    assert_eq!(place.look(), before);
}

#[test]
fn proxies_for_several_ports_share_what_they_need() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let before = place.look();
    let upstream = place.echo();
    let first = place.proxy(upstream, "");
    let mut command = place.host.command(env!("CARGO_BIN_EXE_rexmit"));
    let listen = format!("{HOST}:7001");
    command.args(["proxy", "--setup", "--listen", &listen, "--upstream", &upstream.to_string()]);
    // The first has the network already.
    let taken = command.output().unwrap();
    let said = String::from_utf8(taken.stderr).unwrap();
    assert!(said.contains("is taken") && said.contains("--tun-network"), "{said}");
    command.args(["--tun-network", "10.94.0.4/30"]);
    let mut second = Running::start(&mut command);
    second.wait_for("listening on");
    for port in [PORT, 7001] {
        talks(&place, (HOST, port).into());
    }
    first.stop();
    talks(&place, (HOST, 7001).into());
    second.stop();
    assert_eq!(place.look(), before);
}

#[test]
fn nothing_else_is_forwarded() {
    let Some(place) = Place::over("delay 1ms") else { return };
    // Another network behind the host, which it did not forward to before.
    let inside = TunConfig::default().ipv4(Some(([10, 77, 0, 1].into(), 24)));
    let inside = Tun::open_in(&place.host, &inside).unwrap();
    let came = || inside.receive(&mut [0; 1500]).is_ok();
    let knock = || {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        for _ in 0..10 {
            socket.send_to(b"knock", "10.77.0.9:9").unwrap();
        }
    };
    let proxy = place.proxy(place.echo(), "");
    place.clients.run(knock).unwrap();
    talks(&place, (HOST, PORT).into()); // Behind them on the same link.
    assert!(!came());
    proxy.stop();
    // With forwarding enabled for all interfaces, the same packets arrive.
    let switch = "echo 1 > /proc/sys/net/ipv4/ip_forward";
    netns::output(place.host.command("sh").args(["-c", switch]));
    while !came() {
        place.clients.run(knock).unwrap();
    }
    // A proxy does not change this setting.
    place.proxy(place.echo(), "").stop();
    while !came() {
        place.clients.run(knock).unwrap();
    }
}

#[test]
fn ipv6_is_served_where_it_is_forwarded() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let (upstream, listen) = (place.echo(), "[fd92::1]:7000");
    let command = || {
        let mut command = place.host.command(env!("CARGO_BIN_EXE_rexmit"));
        command.args(["proxy", "--setup", "--listen", listen, "--upstream", &upstream.to_string()]);
        command
    };
    let refused = command().output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("sysctl -w net.ipv6.conf.all.forwarding=1"), "{said}");
    let switch = "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding";
    netns::output(place.host.command("sh").args(["-c", switch]));
    let before = place.look();
    let mut proxy = Running::start(&mut command());
    proxy.wait_for("listening on");
    talks(&place, listen.parse().unwrap());
    proxy.stop();
    assert_eq!(place.look(), before);
}

#[test]
fn a_failed_start_leaves_no_state() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let before = place.look();
    let busy = place.service().0;
    let busy = format!("--metrics {}", busy.local_addr().unwrap());
    let cases = [
        ("--upstream 127.0.0.1:7 --setup --profile lksctp", 2, "`lksctp` is a profile of SCTP"),
        ("--upstream 127.0.0.1:7 --setup --device eth0", 2, "cannot be called eth0"),
        ("--upstream 127.0.0.1:7 --setup --interface none", 2, "no network interface none"),
        ("--upstream 10.94.0.2:7000 --setup", 2, "--upstream is the proxy's own address"),
        ("--upstream 127.0.0.1:7 --setup --mtu 60", 2, "its MTU is 60"),
        ("--upstream 127.0.0.1:7", 3, "there is no network interface rexmit7000: run as root"),
        ("--upstream 127.0.0.1:7 --setup --tun-network fd00::/126", 2, "different families"),
        (&format!("--upstream 127.0.0.1:7 --setup {busy}"), 3, "choose another address or port"),
        ("", 2, "--upstream"),
    ];
    for (words, code, said) in cases {
        // The port stays in use while this value exists.
        let _held = place.host.run(|| {
            busy.split(' ').next_back().map(|address| std::net::TcpListener::bind(address).ok())
        });
        let output = place.rexmit(words).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words}: {stderr}");
        assert!(stderr.contains(said), "{words}: {stderr}");
        assert_eq!(place.look(), before, "{words}");
    }
}

#[test]
fn a_missing_privilege_names_the_command() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let mut command = place.host.command("setpriv");
    command.args(["--bounding-set", "-net_admin", env!("CARGO_BIN_EXE_rexmit"), "proxy"]);
    command.args(["--listen", "10.92.0.1:7000", "--upstream", "127.0.0.1:7", "--setup"]);
    let Ok(output) = command.output() else {
        rexmit_testkit::not_run("setpriv is not installed");
        return;
    };
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "rexmit proxy --listen 10.92.0.1:7000 --upstream 127.0.0.1:7 --setup`";
    assert!(said.contains("this needs root: `sudo ") && said.contains(expected), "{said}");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// Rules in INPUT that protect the service do not apply to forwarded packets.
#[test]
fn a_filter_of_input_that_would_be_bypassed_is_named() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let rule = "ip saddr 10.92.0.66 tcp dport 7000 drop";
    let filter = format!(
        "add table inet guard ; add chain inet guard in {{ type filter hook input priority filter ; }} ; \
         add rule inet guard in {rule}"
    );
    netns::output(place.host.command("nft").arg(filter));
    let before = place.look();
    let upstream = place.echo();
    let output = place.rexmit(&format!("--upstream {upstream} --setup")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&format!("table guard, chain in: {rule}")), "{said}");
    assert!(!output.status.success());
    assert_eq!(place.look(), before);
    place.proxy(upstream, "--ignore-input-filter").stop();
}

#[test]
fn the_inner_address_accepts_redirected_connections_only() {
    let Some(place) = Place::over("delay 1ms") else { return };
    for firewall in ["nft", "iptables"] {
        if Command::new(firewall).arg("-V").output().is_err() {
            rexmit_testkit::not_run(format_args!("`{firewall}` is not installed"));
            continue;
        }
        let proxy = place.proxy(place.echo(), &format!("--firewall {firewall}"));
        // The clients' default route leads to the host.
        let inner: SocketAddr = ([10, 94, 0, 2], PORT).into();
        let connect = || TcpStream::connect_timeout(&inner, Duration::from_secs(2));
        for (where_from, namespace) in [("a client", &place.clients), ("the host", &place.host)] {
            let answer = namespace.run(connect).unwrap();
            assert!(answer.is_err(), "{firewall}: {inner} answers {where_from}");
        }
        talks(&place, (HOST, PORT).into());
        proxy.stop();
    }
}

/// As Ctrl-C does that is held: the programs that remove the rules are not of the group that gets the signals.
#[test]
fn signals_to_the_group_do_not_interrupt_the_removal_of_rules() {
    let Some(place) = Place::over("delay 1ms") else { return };
    let before = place.look();
    let words = format!("--upstream {} --setup", place.echo());
    let mut proxy = Running::start(place.rexmit(&words).process_group(0));
    proxy.wait_for("listening on");
    let group = format!("-{}", proxy.id());
    while Command::new("kill").args(["-s", "INT", "--", &group]).output().unwrap().status.success()
    {
        if proxy.has_ended() {
            break;
        }
    }
    let (_, told) = proxy.end();
    assert_eq!(place.look(), before, "{told}");
}

#[test]
fn a_proxy_that_serves_may_only_undo_its_setup() {
    const CAP_NET_ADMIN: u64 = 1 << 12;
    let Some(place) = Place::over("delay 1ms") else { return };
    let before = place.look();
    let proxy = place.proxy(place.echo(), "");
    talks(&place, (HOST, PORT).into());
    let tasks = std::fs::read_dir(format!("/proc/{}/task", proxy.id())).unwrap();
    for task in tasks {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let set = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        for name in ["CapEff:", "CapPrm:", "CapBnd:"] {
            assert_eq!(set(name) & !CAP_NET_ADMIN, 0, "{name} {status}");
        }
    }
    proxy.stop();
    assert_eq!(place.look(), before);
}
