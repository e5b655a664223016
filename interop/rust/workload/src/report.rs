//! The report of a peer: one line of output.

use std::fmt;
use std::time::Duration;

use crate::{Counts, Role};

/// The outcome of one peer, printed as one line of JSON.
#[derive(Clone, Debug)]
pub struct Report {
    /// The implementation's name.
    pub implementation: &'static str,
    /// Client or server.
    pub role: Role,
    /// Messages passed to the transport.
    pub sent: u32,
    /// Received messages.
    pub counts: Counts,
    /// Whether the association ended by the shutdown procedure (RFC 9260 §9.2) on this side.
    pub is_graceful: bool,
    /// Additional counters of this implementation, with their names.
    pub own: Vec<(&'static str, u64)>,
    /// From the start of the handshake to the end of the association.
    pub elapsed: Duration,
    /// The reason of the failure; `None` if only the counts show it.
    pub error: Option<String>,
}

impl Report {
    /// Whether the peer met its goal.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.counts.is_clean() && self.is_graceful && self.error.is_none()
    }

    /// The corresponding exit code.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        i32::from(!self.is_success())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self.role {
            Role::Client => "client",
            Role::Server => "server",
        };
        write!(f, r#"{{"implementation":"{}","role":"{role}""#, self.implementation)?;
        let counts = &self.counts;
        for (name, value) in [
            ("sent", self.sent),
            ("received", counts.received),
            ("lost", counts.lost),
            ("duplicated", counts.duplicated),
            ("out_of_order", counts.out_of_order),
            ("corrupted", counts.corrupted),
        ] {
            write!(f, r#","{name}":{value}"#)?;
        }
        for (name, value) in &self.own {
            write!(f, r#","{name}":{value}"#)?;
        }
        let (graceful, seconds) = (self.is_graceful, self.elapsed.as_secs_f64());
        write!(f, r#","graceful_shutdown":{graceful},"seconds":{seconds:.3}"#)?;
        if let Some(error) = &self.error {
            let error = error.replace('\\', "/").replace('"', "'").replace(char::is_control, " ");
            write!(f, r#","error":"{error}""#)?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_one_line_of_json() {
        let report = Report {
            implementation: "x",
            role: Role::Server,
            sent: 1,
            counts: Counts { lost: 2, ..Counts::default() },
            is_graceful: false,
            own: vec![("y", 3)],
            elapsed: Duration::from_millis(1500),
            error: Some("\"no\nway\"".into()),
        };
        let expected = concat!(
            r#"{"implementation":"x","role":"server","sent":1,"received":0,"lost":2,"#,
            r#""duplicated":0,"out_of_order":0,"corrupted":0,"y":3,"graceful_shutdown":false,"#,
            r#""seconds":1.500,"error":"'no way'"}"#
        );
        assert_eq!(report.to_string(), expected);
        assert_eq!(report.exit_code(), 1);
    }
}
