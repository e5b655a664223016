//! Rules of nftables: one table per proxy, created and deleted as a whole.

use std::net::SocketAddr;

use super::config::{DEVICE_PREFIX, GUARD, NAME_PREFIX, name};
use super::error::SetupError;
use super::host;
use super::rules::{Found, Rules};

fn nft(script: String) -> Vec<String> {
    vec!["nft".into(), script]
}

const fn family(listen: SocketAddr) -> &'static str {
    if listen.is_ipv4() { "ip" } else { "ip6" }
}

/// The commands that make the rules.
pub(super) fn add(rules: &Rules<'_>) -> Vec<Vec<String>> {
    let Rules { listen, device, translated, guarded } = rules;
    let (family, name) = (family(*listen), name(*listen));
    let (address, port) = (listen.ip(), listen.port());
    let table = format!("{family} {name}");
    let mut script = vec![format!("add table {table}")];
    let forward = "type filter hook forward priority filter ;";
    script.push(format!("add chain {table} forward {{ {forward} }}"));
    if let Some(ours) = translated {
        let hook = "type nat hook prerouting priority dstnat ;";
        let to = if ours.is_ipv4() { format!("{ours}:{port}") } else { format!("[{ours}]:{port}") };
        let clients = format!("{family} daddr {address} tcp dport {port}");
        script.push(format!("add chain {table} prerouting {{ {hook} }}"));
        script.push(format!("add rule {table} prerouting {clients} dnat to {to}"));
        // If the device is gone, clients get a RST, and their packets are sent nowhere else.
        let gone = format!("{family} daddr {ours} oifname != \"{device}\" meta l4proto tcp");
        script.push(format!("add rule {table} forward {gone} reject with tcp reset"));
        // Only clients of the listening address reach the stack.
        let direct = format!("{family} daddr {ours} ct status & dnat == 0");
        script.push(format!("add rule {table} forward {direct} drop"));
        let local = "type filter hook output priority filter ;";
        script.push(format!("add chain {table} output {{ {local} }}"));
        script.push(format!("add rule {table} output {direct} drop"));
        // Packets other than replies would stay untranslated.
        script.push(format!("add rule {table} forward iifname {device} ct state new,invalid drop"));
    }
    for interface in *guarded {
        let others = format!("iifname \"{interface}\" oifname != \"{DEVICE_PREFIX}*\"");
        let rule = format!("{others} ct status & (snat | dnat) == 0 drop comment \"{GUARD}\"");
        script.push(format!("add rule {table} forward {rule}"));
    }
    vec![nft(script.join(" ; "))]
}

/// The commands that remove the rules of a proxy at `listen`.
pub(super) fn delete(listen: SocketAddr) -> Vec<Vec<String>> {
    vec![nft(format!("delete table {} {}", family(listen), name(listen)))]
}

/// The existing rules of proxies.
pub(super) fn find(listen: SocketAddr) -> Result<Found, SetupError> {
    let tables = host::run(&nft(format!("list tables {}", family(listen))))?;
    let mut found = Found::default();
    for table in tables.lines() {
        let Some(table) = table.split_whitespace().last() else { continue };
        if !table.starts_with(NAME_PREFIX) {
            continue;
        }
        let is_ours = table == name(listen);
        let text = host::run(&nft(format!("list table {} {table}", family(listen))));
        let guarded = match text {
            Ok(text) => guarded(&text),
            Err(error) if is_ours => return Err(error),
            // The table of another process, deleted meanwhile.
            Err(_) => continue,
        };
        if is_ours {
            found.is_there = true;
            found.guarded.extend(guarded);
        } else {
            found.guarded_by_others.extend(guarded);
        }
    }
    Ok(found)
}

/// The interfaces with a rule that prevents all other forwarding, from the listing of a table.
fn guarded(listing: &str) -> Vec<String> {
    let guards = listing.lines().filter(|line| line.contains(&format!("comment \"{GUARD}\"")));
    guards.filter_map(|line| Some(line.split('"').nth(1)?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guarded_interfaces_are_read_from_a_listing() {
        let listing = "table ip rexmit_proxy_192.0.2.1_22 {\n\tchain forward {\n\
            \t\tip daddr 10.94.0.2 oifname != \"rexmit22\" meta l4proto tcp reject with tcp reset\n\
            \t\tiifname \"eth0.7\" oifname != \"rexmit*\" ct status ! snat,dnat drop comment \
            \"forwarding-was-off\"\n\t}\n}\n";
        assert_eq!(guarded(listing), ["eth0.7"]);
    }
}
