//! Rules of iptables, each with a comment by which it is found again.

use std::net::SocketAddr;

use super::config::{DEVICE_PREFIX, Firewall, GUARD, NAME_PREFIX, name};
use super::error::SetupError;
use super::host;
use super::rules::{Found, Rules};

/// The tables that contain our rules.
const TABLES: [&str; 2] = ["nat", "filter"];

fn iptables(listen: SocketAddr, words: &str) -> Vec<String> {
    let program = host::program(Firewall::Iptables, listen.is_ipv4());
    // -w: others may be changing rules just now.
    let start = [program, "-w"].into_iter();
    start.chain(words.split_whitespace()).map(ToOwned::to_owned).collect()
}

/// The commands that make the rules.
pub(super) fn add(rules: &Rules<'_>) -> Vec<Vec<String>> {
    rules_of(rules).iter().map(|rule| iptables(rules.listen, rule)).collect()
}

/// One rule per line.
fn rules_of(rules: &Rules<'_>) -> Vec<String> {
    let Rules { listen, device, translated, guarded } = rules;
    let (name, address, port) = (name(*listen), listen.ip(), listen.port());
    let comment = format!("-m comment --comment {name}");
    let mut lines = Vec::new();
    // Rules are inserted at the front, so the last one is the first in the chain.
    for interface in *guarded {
        let others = format!("-i {interface} ! -o {DEVICE_PREFIX}+");
        let untranslated = "-m conntrack ! --ctstate SNAT,DNAT";
        let comment = format!("-m comment --comment {name}:{GUARD}");
        lines.push(format!("-t filter -I FORWARD {others} {untranslated} {comment} -j DROP"));
    }
    // Ahead of all other rules of the chain: the administrator who starts a proxy wants these packets forwarded.
    lines.push(format!("-t filter -I FORWARD -i {device} {comment} -j ACCEPT"));
    lines.push(format!("-t filter -I FORWARD -o {device} {comment} -j ACCEPT"));
    if let Some(ours) = translated {
        let reset = format!("{comment} -j REJECT --reject-with tcp-reset");
        lines.push(format!("-t filter -I FORWARD -d {ours} ! -o {device} -p tcp {reset}"));
        // Only clients of the listening address reach the stack.
        let direct = "-m conntrack ! --ctstate DNAT";
        lines.push(format!("-t filter -I FORWARD -d {ours} {direct} {comment} -j DROP"));
        lines.push(format!("-t filter -I OUTPUT -d {ours} {direct} {comment} -j DROP"));
        let unknown = "-m conntrack --ctstate NEW,INVALID";
        lines.push(format!("-t filter -I FORWARD -i {device} {unknown} {comment} -j DROP"));
        let to = if ours.is_ipv4() { format!("{ours}:{port}") } else { format!("[{ours}]:{port}") };
        let clients = format!("-d {address} -p tcp --dport {port}");
        let translate = format!("-j DNAT --to-destination {to}");
        lines.push(format!("-t nat -A PREROUTING {clients} {comment} {translate}"));
    }
    lines
}

/// The commands that remove rules, derived from those that added them.
pub(super) fn delete(rules: &Rules<'_>) -> Vec<Vec<String>> {
    let lines = rules_of(rules);
    let undo = lines.iter().rev().map(|line| line.replace(" -I ", " -D ").replace(" -A ", " -D "));
    undo.map(|line| iptables(rules.listen, &line)).collect()
}

/// The existing rules of proxies.
pub(super) fn find(listen: SocketAddr) -> Result<Found, SetupError> {
    let mut found = Found::default();
    for table in TABLES {
        for rule in list(listen, table)?.lines().filter_map(Rule::parse) {
            let is_ours = rule.name == name(listen);
            found.is_there |= is_ours;
            if let Some(interface) = rule.guarded {
                let guarded =
                    if is_ours { &mut found.guarded } else { &mut found.guarded_by_others };
                guarded.push(interface);
            }
        }
    }
    Ok(found)
}

/// Removes all rules of this listening address.
pub(super) fn delete_found(listen: SocketAddr) -> Result<(), SetupError> {
    for table in TABLES {
        for line in list(listen, table)?.lines() {
            if Rule::parse(line).is_some_and(|rule| rule.name == name(listen)) {
                let line = line.replacen("-A ", "-D ", 1).replace('"', "");
                host::run(&iptables(listen, &format!("-t {table} {line}")))?;
            }
        }
    }
    Ok(())
}

fn list(listen: SocketAddr, table: &str) -> Result<String, SetupError> {
    host::run(&iptables(listen, &format!("-t {table} -S")))
}

/// A rule of some proxy.
#[derive(Debug, PartialEq, Eq)]
struct Rule {
    name: String,
    /// The interface on which the rule prevents all other forwarding; `None` for other rules.
    guarded: Option<String>,
}

impl Rule {
    /// A line of `iptables -S`.
    fn parse(line: &str) -> Option<Self> {
        let line = line.replace('"', "");
        let after = |option: &str| {
            let mut words = line.split_whitespace();
            words.find(|word| *word == option).and_then(|_| words.next())
        };
        let comment = after("--comment")?;
        let (name, mark) = comment.split_once(':').unwrap_or((comment, ""));
        if !line.starts_with("-A ") || !name.starts_with(NAME_PREFIX) {
            return None;
        }
        let guarded = if mark == GUARD { after("-i").map(ToOwned::to_owned) } else { None };
        Some(Self { name: name.into(), guarded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_identified_by_their_comments() {
        let name = "rexmit_proxy_192.0.2.1_22".to_owned();
        let table = [
            ("-P FORWARD ACCEPT", None),
            ("-A FORWARD -i eth0 -m comment --comment docker -j DROP", None),
            (
                "-A PREROUTING -d 192.0.2.1/32 -p tcp -m comment --comment \
                 rexmit_proxy_192.0.2.1_22 -j DNAT --to-destination 10.94.0.2:22",
                Some(Rule { name: name.clone(), guarded: None }),
            ),
            (
                "-A FORWARD -i eth0 ! -o rexmit+ -m comment --comment \
                 \"rexmit_proxy_192.0.2.1_22:forwarding-was-off\" -j DROP",
                Some(Rule { name, guarded: Some("eth0".into()) }),
            ),
        ];
        for (line, expected) in table {
            assert_eq!(Rule::parse(line), expected, "{line}");
        }
    }
}
