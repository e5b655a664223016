//! The load: some flows of a captured trace for a period of time.

use std::path::Path;
use std::time::Duration;

use rexmit_netsim::traffic::trace::{Message, Sender, Trace, TraceError};
use rexmit_netsim::units::format_duration;
use thiserror::Error;

/// Largest number of flows used of a trace: those with the lowest numbers. Each becomes an
/// association.
pub const MAX_FLOWS: usize = 2;

/// A trace embedded in the program.
#[derive(Clone, Copy, Debug)]
pub struct Bundled {
    /// The name of the trace.
    pub name: &'static str,
    /// A description of its traffic.
    pub about: &'static str,
    file: &'static str,
    bytes: &'static [u8],
}

macro_rules! bundled {
    ($name:literal, $about:literal) => {
        Bundled {
            name: $name,
            about: $about,
            file: concat!($name, ".csv.gz"),
            bytes: include_bytes!(concat!("../../../traces/", $name, ".csv.gz")),
        }
    };
}

/// The embedded traces; `traces/README.md` describes how they were captured.
pub const BUNDLED: &[Bundled] = &[
    bundled!("bzflag-tcp", "BZFlag, a shooter with tanks: 29 messages/s per player"),
    bundled!("crossfire", "Crossfire, a role-playing game: 22 messages/s per player, in bursts"),
    bundled!("ssh", "OpenSSH, output of editors and shells: 4 messages/s"),
    bundled!("vnc", "TigerVNC, a remote desktop: 6 messages/s"),
];

impl Bundled {
    /// Reads the trace.
    ///
    /// # Errors
    /// Never, unless a file was damaged when the program was built.
    pub fn read(&self) -> Result<Trace, TraceError> {
        Trace::from_bytes(self.file, self.bytes)
    }
}

/// The messages of some flows in a window of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// The traffic in the trace.
    pub name: String,
    /// The server's messages of each flow in ascending order of time, relative to the begin of the
    /// window.
    pub flows: Vec<Vec<Message>>,
    /// The duration of the window.
    pub duration: Duration,
}

/// Why there is no load.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Neither a bundled trace nor a file.
    #[error("there is no trace `{name}`: give a file, or one of {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// The file is not a valid trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace is too short.
    #[error(
        "the trace {name} lasts {}, less than {}: choose a shorter duration",
        format_duration(*lasts), format_duration(*wanted)
    )]
    TooShort {
        /// The trace.
        name: String,
        /// The duration of the trace.
        lasts: Duration,
        /// The required length.
        wanted: Duration,
    },
    /// The servers send nothing in the window.
    #[error("the servers of {name} send nothing in this period: choose a longer duration")]
    Silent {
        /// The trace.
        name: String,
    },
}

impl Load {
    /// The load of `trace`, which is the name of a bundled trace or a file, for `duration`.
    ///
    /// # Errors
    /// If there is no such trace, or it is too short or has no messages of the servers.
    pub fn open(trace: &str, duration: Duration) -> Result<Self, LoadError> {
        let trace = match BUNDLED.iter().find(|bundled| bundled.name == trace) {
            Some(bundled) => bundled.read()?,
            None if Path::new(trace).exists() => Trace::open(Path::new(trace))?,
            None => return Err(LoadError::Unknown { name: trace.to_owned() }),
        };
        Self::of_trace(&trace, duration)
    }

    /// The messages of the servers of `trace` in `duration` around its middle, where all sessions
    /// are active.
    ///
    /// # Errors
    /// If the trace is too short, or the servers send nothing in this time.
    pub fn of_trace(trace: &Trace, duration: Duration) -> Result<Self, LoadError> {
        let name = trace.name.clone();
        let sent = trace.flows.iter().map(|flow| flow.messages(Sender::Server));
        let flows: Vec<&[Message]> = sent.filter(|sent| !sent.is_empty()).take(MAX_FLOWS).collect();
        let lasts = flows.iter().filter_map(|sent| sent.last()).map(|last| last.at).max();
        let lasts = lasts.unwrap_or_default();
        let Some(rest) = lasts.checked_sub(duration) else {
            return Err(LoadError::TooShort { name, lasts, wanted: duration });
        };
        let begin = rest / 2;
        let window = |sent: &&[Message]| -> Vec<Message> {
            let inside = sent.iter().filter(|m| (begin..begin + duration).contains(&m.at));
            inside.map(|m| Message { at: m.at - begin, ..*m }).collect()
        };
        let mut flows: Vec<Vec<Message>> = flows.iter().map(window).collect();
        flows.retain(|sent| !sent.is_empty());
        if flows.is_empty() {
            return Err(LoadError::Silent { name });
        }
        Ok(Self { name, flows, duration })
    }

    /// The number of messages of all flows.
    #[must_use]
    pub fn messages(&self) -> usize {
        self.flows.iter().map(Vec::len).sum()
    }
}

fn names() -> String {
    BUNDLED.iter().map(|bundled| bundled.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use rexmit_netsim::traffic::trace::Flow;

    use super::*;

    fn flow(id: u32, seconds: &[u64]) -> Flow {
        let message = |&at: &u64| Message { at: Duration::from_secs(at), bytes: at as u32 + 1 };
        Flow { id, server: seconds.iter().map(message).collect(), ..Flow::default() }
    }

    #[test]
    fn the_window_is_the_middle_and_begins_at_zero() {
        let flows = vec![flow(0, &[]), flow(1, &[0, 44, 45, 54, 55, 100]), flow(2, &[50, 99])];
        let trace = Trace { name: "t".into(), flows };
        let load = Load::of_trace(&trace, Duration::from_secs(10)).unwrap();
        let seen: Vec<Vec<_>> = load
            .flows
            .iter()
            .map(|sent| sent.iter().map(|m| (m.at.as_secs(), m.bytes)).collect())
            .collect();
        assert_eq!(seen, [vec![(0, 46), (9, 55)], vec![(5, 51)]]);
        assert_eq!(load.messages(), 3);
        let long = Load::of_trace(&trace, Duration::from_secs(101)).unwrap_err();
        assert_eq!(
            long.to_string(),
            "the trace t lasts 100s, less than 101s: choose a shorter duration"
        );
        let silent = Trace { name: "t".into(), flows: vec![flow(0, &[0, 100])] };
        let silent = Load::of_trace(&silent, Duration::from_secs(10)).unwrap_err();
        assert!(matches!(silent, LoadError::Silent { .. }));
    }

    #[test]
    fn every_bundled_trace_has_a_load_for_half_a_minute() {
        for bundled in BUNDLED {
            let load = Load::open(bundled.name, Duration::from_secs(30)).unwrap();
            assert_eq!(load.name, bundled.name);
            assert!(load.messages() > 50, "{}", bundled.name);
        }
        let unknown = Load::open("quake", Duration::from_secs(30)).unwrap_err().to_string();
        assert!(unknown.contains("`quake`") && unknown.contains("crossfire"), "{unknown}");
    }
}
