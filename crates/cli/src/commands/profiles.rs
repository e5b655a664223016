//! `rexmit profiles`.

use std::fmt::Write;

use clap::Args;
use rexmit::RecoveryConfig;
use rexmit::recovery::{Field, PROFILES, TCP_PROFILES};
use serde::Serialize;

use super::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::Format;

/// Show the recovery profiles field by field, or how two of them differ.
#[derive(Debug, Args)]
#[command(after_help = examples!("  rexmit profiles\n  rexmit profiles lksctp\n  \
    rexmit profiles lksctp thin\n  rexmit profiles --json"))]
pub(crate) struct Arguments {
    /// Only this one.
    name: Option<String>,
    /// What differs between the first and this one.
    other: Option<String>,
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

/// A field that two profiles have different values of.
#[derive(Serialize)]
struct Difference {
    name: &'static str,
    values: [String; 2],
    meaning: &'static str,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let Arguments { name, other, format } = arguments;
    let profiles = all();
    match (name, other) {
        (Some(first), Some(second)) => {
            let comparison = Comparison::of([find(&profiles, first)?, find(&profiles, second)?]);
            format.print(&comparison, Comparison::text)
        }
        (Some(name), None) => format.print(&[find(&profiles, name)?], |profiles| text(profiles)),
        (None, _) => format.print(&profiles, |profiles| text(profiles)),
    }
}

/// Those of SCTP, then those of TCP.
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
        let known: Vec<_> = profiles.iter().map(|profile| profile.name).collect();
        let message = format!("there is no profile `{name}`: there are {}", known.join(", "));
        Failure::new(Kind::Usage, message)
    })
}

fn text<P: std::borrow::Borrow<Profile>>(profiles: &[P]) -> String {
    let mut text = String::new();
    for profile in profiles {
        let Profile { name, about, fields, .. } = profile.borrow();
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

/// Columns for the longest of `texts`, and two between it and what follows.
fn width<'a>(texts: impl IntoIterator<Item = &'a str>) -> usize {
    texts.into_iter().map(str::len).max().unwrap_or(0) + 2
}
