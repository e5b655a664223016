//! The input filter: rules for packets to this machine, which translated and forwarded packets bypass.

use std::net::SocketAddr;

use super::config::{Firewall, NAME_PREFIX};
use super::error::SetupError;
use super::host;

/// Targets that neither refuse a packet nor lead to rules that may.
const HARMLESS_TARGETS: [&str; 6] = ["ACCEPT", "CONNMARK", "LOG", "MARK", "NFLOG", "RETURN"];

/// Tables of the older iptables with a chain for input. Those of the newer one are in the ruleset of nftables.
const TABLES: [&str; 3] = ["filter", "mangle", "security"];

/// The first rule for input, or policy, that may refuse packets to `listen`; also a firewall whose rules cannot be
/// read.
pub(super) fn first_filter(listen: SocketAddr) -> Option<String> {
    let is_ipv4 = listen.is_ipv4();
    if host::is_installed(Firewall::Nft, is_ipv4) {
        let found = match host::run(&["nft".into(), "list ruleset".into()]) {
            Ok(listing) => in_ruleset(&listing, is_ipv4),
            Err(error) => Some(format!("nft cannot list its rules: {error}")),
        };
        if found.is_some() {
            return found;
        }
    }
    let program = host::program(Firewall::Iptables, is_ipv4);
    if host::is_installed(Firewall::Iptables, is_ipv4) {
        match input_chain(program, "filter") {
            Ok(listing) => {
                if let Some(rule) = in_chain(&listing) {
                    return Some(format!("{program} {rule}"));
                }
            }
            Err(error) => return Some(format!("{program} cannot list its rules: {error}")),
        }
    }
    let (legacy, existing) = if is_ipv4 {
        ("iptables-legacy", "/proc/net/ip_tables_names")
    } else {
        ("ip6tables-legacy", "/proc/net/ip6_tables_names")
    };
    // Listing a table of the older iptables would create it.
    let existing = std::fs::read_to_string(existing).unwrap_or_default();
    TABLES.into_iter().filter(|table| existing.lines().any(|it| it == *table)).find_map(|table| {
        let listing = input_chain(legacy, table).or_else(|_| input_chain(program, table));
        match listing {
            Ok(listing) => in_chain(&listing).map(|rule| format!("{legacy} -t {table} {rule}")),
            Err(error) => Some(format!("{legacy} cannot list the table {table}: {error}")),
        }
    })
}

fn input_chain(program: &str, table: &str) -> Result<String, SetupError> {
    host::run(&[program, "-w", "-t", table, "-S", "INPUT"].map(ToOwned::to_owned))
}

/// Finds such a rule in the output of `nft list ruleset`.
fn in_ruleset(listing: &str, is_ipv4: bool) -> Option<String> {
    let families = if is_ipv4 { ["ip", "inet"] } else { ["ip6", "inet"] };
    let (mut table, mut chain, mut is_of_input) = ("", "", false);
    for line in listing.lines().map(str::trim) {
        // Quoted are comments, and names of interfaces and sets.
        let unquoted = line.split('"').step_by(2);
        let words = unquoted.flat_map(|part| part.split([' ', ';'])).filter(|it| !it.is_empty());
        let words: Vec<&str> = words.collect();
        match words[..] {
            ["table", family, name, ..] => {
                let is_ours = name.starts_with(NAME_PREFIX) || !families.contains(&family);
                table = if is_ours { "" } else { name };
            }
            ["chain", name, ..] => (chain, is_of_input) = (name, false),
            ["flags", "dormant", ..] => table = "",
            ["type", "filter", "hook", "input", ..] => is_of_input = !table.is_empty(),
            _ => {}
        }
        let refuses =
            |word: &&str| ["drop", "reject", "jump", "goto", "queue", "vmap"].contains(word);
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
        let dormant =
            ruleset("ip", "input", "drop", refusing).replacen('\n', "\n\tflags dormant\n", 1);
        let cases = [
            (ruleset("ip", "input", "accept", refusing), Some(refusing)),
            (ruleset("inet", "input", "accept", "jump f2b-sshd"), Some("jump f2b-sshd")),
            (ruleset("inet", "input", "drop", "tcp dport 22 accept"), Some("policy drop;")),
            (ruleset("ip", "input", "accept", "ip saddr vmap @v"), Some("ip saddr vmap @v")),
            (ruleset("inet", "input", "accept", "tcp dport 22 accept"), None),
            (ruleset("ip6", "input", "drop", refusing), None),
            (ruleset("ip", "forward", "drop", refusing), None),
            (ruleset("ip", "input", "accept", "accept comment \"do not drop this\""), None),
            (dormant, None),
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
