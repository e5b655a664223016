//! The input filter: rules for packets to this machine, which translated and forwarded packets bypass.

use std::net::SocketAddr;

use super::config::{Firewall, NAME_PREFIX};
use super::host;

/// Targets that neither refuse a packet nor lead to rules that may.
const HARMLESS_TARGETS: [&str; 4] = ["ACCEPT", "LOG", "NFLOG", "RETURN"];

/// The first rule for input, or policy, that may refuse packets to `listen`; `None` also if rules cannot be read.
pub(super) fn first_filter(listen: SocketAddr) -> Option<String> {
    let is_ipv4 = listen.is_ipv4();
    let of_nft = || {
        let listing = host::run(&["nft".into(), "list ruleset".into()]).ok()?;
        in_ruleset(&listing, is_ipv4)
    };
    let of_iptables = || {
        let program = host::program(Firewall::Iptables, is_ipv4);
        let listing = host::run(&[program, "-w", "-S", "INPUT"].map(ToOwned::to_owned)).ok()?;
        let rule = in_chain(&listing)?;
        Some(format!("{program} {rule}"))
    };
    let nft = host::is_installed(Firewall::Nft, is_ipv4).then(of_nft).flatten();
    nft.or_else(|| host::is_installed(Firewall::Iptables, is_ipv4).then(of_iptables).flatten())
}

/// Finds such a rule in the output of `nft list ruleset`.
fn in_ruleset(listing: &str, is_ipv4: bool) -> Option<String> {
    let families = if is_ipv4 { ["ip", "inet"] } else { ["ip6", "inet"] };
    let (mut table, mut chain, mut is_of_input) = ("", "", false);
    for line in listing.lines().map(str::trim) {
        let words: Vec<&str> = line.split([' ', ';']).filter(|word| !word.is_empty()).collect();
        match words[..] {
            ["table", family, name, ..] => {
                let is_ours = name.starts_with(NAME_PREFIX) || !families.contains(&family);
                table = if is_ours { "" } else { name };
            }
            ["chain", name, ..] => (chain, is_of_input) = (name, false),
            ["type", "filter", "hook", "input", ..] => is_of_input = !table.is_empty(),
            _ => {}
        }
        let refuses = |word: &&str| ["drop", "reject", "jump", "goto", "queue"].contains(word);
        if is_of_input && words.iter().any(refuses) {
            return Some(format!("nft, table {table}, chain {chain}: {line}"));
        }
    }
    None
}

/// Finds such a rule in the output of `iptables -S INPUT`.
fn in_chain(listing: &str) -> Option<&str> {
    listing.lines().find(|line| {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("-P") => words.last().is_some_and(|policy| policy != "ACCEPT"),
            Some("-A") => {
                let target = words.skip_while(|&word| word != "-j" && word != "-g").nth(1);
                target.is_some_and(|target| !HARMLESS_TARGETS.contains(&target))
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_nft_for_input_that_refuse_are_found() {
        let ruleset = |family: &str, hook: &str, policy: &str, rule: &str| {
            format!(
                "table {family} filter {{\n\tchain one {{\n\t\ttype filter hook {hook} priority filter; policy \
                 {policy};\n\t\tct state established accept\n\t\t{rule}\n\t}}\n}}\n"
            )
        };
        let refusing = "tcp dport 22 ip saddr 192.0.2.0/24 drop";
        let cases = [
            (ruleset("ip", "input", "accept", refusing), Some(refusing)),
            (ruleset("inet", "input", "accept", "jump f2b-sshd"), Some("jump f2b-sshd")),
            (ruleset("inet", "input", "drop", "tcp dport 22 accept"), Some("policy drop;")),
            (ruleset("inet", "input", "accept", "tcp dport 22 accept"), None),
            (ruleset("ip6", "input", "drop", refusing), None),
            (ruleset("ip", "forward", "drop", refusing), None),
        ];
        for (listing, expected) in cases {
            let found = in_ruleset(&listing, true);
            assert_eq!(found.is_some(), expected.is_some(), "{listing}");
            if let (Some(found), Some(expected)) = (found, expected) {
                assert!(found.starts_with("nft, table filter, chain one: "), "{found}");
                assert!(found.ends_with(expected), "{found}");
            }
        }
    }

    #[test]
    fn rules_of_iptables_for_input_that_refuse_are_found() {
        for (listing, expected) in [
            ("-P INPUT ACCEPT\n-A INPUT -p tcp -j LOG\n-A INPUT -i lo -j ACCEPT\n", None),
            ("-P INPUT DROP\n-A INPUT -p tcp -j ACCEPT\n", Some("-P INPUT DROP")),
            ("-P INPUT ACCEPT\n-A INPUT -p tcp -j f2b-sshd\n", Some("-A INPUT -p tcp -j f2b-sshd")),
            (
                "-P INPUT ACCEPT\n-A INPUT -s 192.0.2.7 -j DROP\n",
                Some("-A INPUT -s 192.0.2.7 -j DROP"),
            ),
        ] {
            assert_eq!(in_chain(listing), expected);
        }
    }
}
