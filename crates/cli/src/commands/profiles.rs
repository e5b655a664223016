//! `rexmit profiles`.

use std::fmt::Write;

use clap::Args;
use rexmit::{PROFILES, RecoveryConfig};
use serde::Serialize;

use super::examples;
use crate::failure::{Failure, Kind, Outcome};
use crate::output::Format;

/// Show the recovery profiles, field by field.
#[derive(Debug, Args)]
#[command(after_help = examples!("  rexmit profiles\n  rexmit profiles lksctp\n  rexmit profiles --json"))]
pub(crate) struct Arguments {
    /// Only this one.
    name: Option<String>,
    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Profile {
    name: &'static str,
    about: &'static str,
    recovery: RecoveryConfig,
}

pub(crate) fn run(arguments: &Arguments) -> Outcome {
    let profiles: Vec<Profile> = PROFILES
        .iter()
        .filter(|(name, _)| arguments.name.as_deref().is_none_or(|wanted| wanted == *name))
        .filter_map(|&(name, about)| {
            Some(Profile { name, about, recovery: RecoveryConfig::profile(name)? })
        })
        .collect();
    if profiles.is_empty() {
        let wanted = arguments.name.as_deref().unwrap_or_default();
        let known: Vec<_> = PROFILES.iter().map(|(name, _)| *name).collect();
        let message = format!("there is no profile `{wanted}`: there are {}", known.join(", "));
        return Err(Failure::new(Kind::Usage, message));
    }
    arguments.format.print(&profiles, |profiles| text(profiles))
}

fn text(profiles: &[Profile]) -> String {
    let mut text = String::new();
    for Profile { name, about, recovery } in profiles {
        let _ = writeln!(text, "{name}: {about}\n{recovery:#?}\n");
    }
    text
}
