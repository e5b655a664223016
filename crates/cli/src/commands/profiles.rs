//! `rexmit profiles`.

use std::fmt::Write;

use clap::Args;
use rexmit::RecoveryConfig;
use rexmit::recovery::{FIELDS, PROFILES, TCP_PROFILES};
use serde::Serialize;
use serde_json::Value;

use crate::commands::examples::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::names::unknown;
use crate::output::Format;

/// List the recovery profiles, show one field by field, or compare two.
#[derive(Debug, Args)]
#[command(after_help = examples!("  rexmit profiles\n  rexmit profiles interactive\n  \
    rexmit profiles --diff lksctp thin\n  rexmit profiles --json"))]
pub(crate) struct Arguments {
    /// Show every field of these profiles.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Show the fields in which two profiles differ.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "names")]
    diff: Vec<String>,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Profile {
    name: &'static str,
    about: &'static str,
    recovery: RecoveryConfig,
    fields: Vec<Field>,
}

#[derive(Serialize)]
struct Comparison {
    profiles: [&'static str; 2],
    differences: Vec<Difference>,
}

/// A field of a profile.
#[derive(Serialize)]
struct Field {
    name: &'static str,
    value: String,
    meaning: &'static str,
}

/// A field whose value differs between two profiles.
#[derive(Serialize)]
struct Difference {
    name: &'static str,
    values: [String; 2],
    meaning: &'static str,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { names, diff, format } = arguments;
    let profiles = all();
    if let [first, second] = diff.as_slice() {
        let comparison = Comparison::of([find(&profiles, first)?, find(&profiles, second)?]);
        return format.print(&comparison, Comparison::text);
    }
    if names.is_empty() {
        return format.print(&profiles, |profiles| list(profiles));
    }
    let chosen = names.iter().map(|name| find(&profiles, name));
    let chosen = chosen.collect::<Result<Vec<_>, _>>()?;
    format.print(&chosen, |chosen| details(chosen))
}

/// The profiles of SCTP, then those of TCP.
fn all() -> Vec<Profile> {
    let sctp = PROFILES.iter().map(|named| (named, RecoveryConfig::profile(named.0)));
    let tcp = TCP_PROFILES.iter().map(|named| (named, RecoveryConfig::tcp_profile(named.0)));
    sctp.chain(tcp)
        .filter_map(|(&(name, about), recovery)| {
            let recovery = recovery?;
            Some(Profile { name, about, fields: fields(&recovery), recovery })
        })
        .collect()
}

/// The fields of `recovery`, with their values as in files.
fn fields(recovery: &RecoveryConfig) -> Vec<Field> {
    let values = serde_json::to_value(recovery).unwrap_or_default();
    let value = |name: &str| text(values.pointer(&format!("/{}", name.replace('.', "/"))));
    FIELDS.iter().map(|&(name, meaning)| Field { name, value: value(name), meaning }).collect()
}

/// A value as in files; `off` if it is missing.
fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => "off".into(),
        Some(Value::Bool(true)) => "on".into(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(parts)) => {
            let inner = |part: &Value| match part {
                Value::Object(_) => text(Some(part)),
                _ => part.to_string(),
            };
            let parts = parts.iter().map(|(name, part)| format!("{name} = {}", inner(part)));
            format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
        }
        Some(value) => value.to_string(),
    }
}

fn find<'a>(profiles: &'a [Profile], name: &str) -> Result<&'a Profile, Failure> {
    profiles.iter().find(|profile| profile.name == name).ok_or_else(|| {
        let known = profiles.iter().map(|profile| profile.name);
        Failure::new(Kind::Usage, unknown("profile", name, known))
    })
}

/// A line per profile.
fn list(profiles: &[Profile]) -> String {
    let names = width(profiles.iter().map(|profile| profile.name));
    let mut text = String::new();
    for (title, is_tcp) in [("SCTP", false), ("TCP", true)] {
        let _ = writeln!(text, "{title}:");
        for Profile { name, about, .. } in profiles.iter().filter(|p| is_of_tcp(p) == is_tcp) {
            let _ = writeln!(text, "  {name:<names$}{about}");
        }
    }
    text + "All fields of a profile: rexmit profiles NAME. Differences: rexmit profiles --diff A B.\n"
}

fn is_of_tcp(profile: &Profile) -> bool {
    TCP_PROFILES.iter().any(|(name, _)| *name == profile.name)
}

fn details(profiles: &[&Profile]) -> String {
    let mut text = String::new();
    for Profile { name, about, fields, .. } in profiles {
        let _ = writeln!(text, "{name}: {about}");
        let names = width(fields.iter().map(|field| field.name));
        let values = width(fields.iter().map(|field| &*field.value));
        for Field { name, value, meaning } in fields {
            let _ = writeln!(text, "  {name:<names$}{value:<values$}{meaning}");
        }
        text.push('\n');
    }
    text
}

impl Comparison {
    fn of([first, second]: [&Profile; 2]) -> Self {
        let differences = first
            .fields
            .iter()
            .zip(&second.fields)
            .filter(|(a, b)| a.value != b.value)
            .map(|(a, b)| Difference {
                name: a.name,
                values: [a.value.clone(), b.value.clone()],
                meaning: a.meaning,
            })
            .collect();
        Self { profiles: [first.name, second.name], differences }
    }

    fn text(&self) -> String {
        let [first, second] = self.profiles;
        if self.differences.is_empty() {
            return format!("{first} and {second} are the same\n");
        }
        let names = width(self.differences.iter().map(|difference| difference.name));
        let values = self.differences.iter().flat_map(|difference| &difference.values);
        let values = width(values.map(String::as_str).chain(self.profiles));
        let mut text = format!("{:<names$}{first:<values$}{second}\n", "");
        for Difference { name, values: [a, b], meaning } in &self.differences {
            let _ = writeln!(text, "{name:<names$}{a:<values$}{b:<values$}{meaning}");
        }
        text
    }
}

/// The width of a column: the longest of `texts` and two spaces.
fn width<'a>(texts: impl IntoIterator<Item = &'a str>) -> usize {
    texts.into_iter().map(str::len).max().unwrap_or(0) + 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexmit::recovery::CmtConfig;

    /// Every leaf of a configuration as JSON, with names joined by dots.
    fn leaves(prefix: &str, value: &Value, found: &mut Vec<String>) {
        let is_named = FIELDS.iter().any(|(name, _)| *name == prefix);
        match value {
            Value::Object(parts) if !is_named => {
                let dot = if prefix.is_empty() { "" } else { "." };
                parts.iter().for_each(|(name, part)| {
                    leaves(&format!("{prefix}{dot}{name}"), part, found);
                });
            }
            _ => found.push(prefix.into()),
        }
    }

    #[test]
    fn every_field_has_a_meaning() {
        let mut found = Vec::new();
        let mut everything = RecoveryConfig::interactive_redundant();
        everything.sctp.cmt = Some(CmtConfig::ON);
        leaves("", &serde_json::to_value(everything).expect("JSON"), &mut found);
        found.sort_unstable();
        let mut named: Vec<_> = FIELDS.iter().map(|(name, _)| *name).collect();
        named.sort_unstable();
        assert_eq!(found, named);
    }

    /// The fields of `b` that differ from those of `a`, and their values.
    fn differing(a: &RecoveryConfig, b: &RecoveryConfig) -> Vec<(&'static str, String)> {
        let differing = fields(a).into_iter().zip(fields(b)).filter(|(a, b)| a.value != b.value);
        differing.map(|(_, b)| (b.name, b.value)).collect()
    }

    fn want(fields: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
        fields.iter().map(|&(name, value)| (name, value.to_owned())).collect()
    }

    #[test]
    fn a_changed_value_shows_in_its_field_alone() {
        let fields = [
            ("rto.min_variation", "10ms"),
            ("thin.rto_min", "200ms"),
            ("thin.restart_by_age", "on"),
            ("thin.linear_timeouts", "6"),
            ("thin.first_indication", "on"),
            ("thin.ack_delay_samples", "on"),
        ];
        assert_eq!(differing(&RecoveryConfig::lksctp(), &RecoveryConfig::thin()), want(&fields));
    }

    #[test]
    fn the_interactive_profiles_have_these_fields() {
        let [rfc9260, interactive, bundling, redundant, multipath] = [
            RecoveryConfig::rfc9260(),
            RecoveryConfig::interactive(),
            RecoveryConfig::interactive_bundling(),
            RecoveryConfig::interactive_redundant(),
            RecoveryConfig::interactive_multipath(),
        ];
        let of_interactive = [
            ("loss_detection", "rack"),
            ("single_packet_after_timeout", "off"),
            ("spurious.duplicates", "undo"),
            ("thin.test", "{ packets = 16 }"),
            ("thin.rto_min", "200ms"),
            ("thin.restart_by_age", "on"),
            ("thin.ack_delay_samples", "on"),
            ("thin.probe_timer.min_margin", "1500us"),
            ("thin.probe_timer.late_per_mille", "10"),
            ("thin.probe_timer.silence", "300ms"),
            ("thin.queue_delay_limit", "25ms"),
            ("thin.sctp.sack_immediately", "on"),
            ("thin.sctp.heartbeat_samples", "on"),
            ("thin.tcp.no_delay", "on"),
            ("sctp.setup_by_rtt", "on"),
        ];
        let mut found = differing(&rfc9260, &interactive);
        found.sort_unstable();
        let mut wanted = want(&of_interactive);
        wanted.sort_unstable();
        assert_eq!(found, wanted);
        let of_bundling =
            [("thin.bundling.packets", "255"), ("thin.copy_budget.bytes_percent", "112")];
        assert_eq!(differing(&interactive, &bundling), want(&of_bundling));
        let of_redundant = [
            ("thin.bundling.packets", "255"),
            ("thin.delayed_copies.of_retransmissions.copies", "1"),
            ("thin.delayed_copies.of_retransmissions.interval", "1ms"),
            ("thin.copy_budget.packets_percent", "20"),
            ("thin.copy_budget.bytes_percent", "200"),
        ];
        assert_eq!(differing(&interactive, &redundant), want(&of_redundant));
        let of_multipath =
            [("sctp.retransmission_destination", "least_correlated"), ("sctp.lowest_tail", "on")];
        assert_eq!(differing(&interactive, &multipath), want(&of_multipath));
    }
}
