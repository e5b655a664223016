//! `rexmit profiles`.

use std::fmt::Write;

use clap::Args;
use rexmit::RecoveryConfig;
use rexmit::recovery::{Field, PROFILES, TCP_PROFILES};
use serde::Serialize;

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
            Some(Profile { name, about, fields: recovery.fields(), recovery })
        })
        .collect()
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
        text.push('\n');
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
