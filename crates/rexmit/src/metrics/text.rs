//! Prometheus' text format.

use std::fmt::{Display, Write};

#[cfg(any(feature = "udp", all(feature = "proxy", target_os = "linux")))]
use crate::recovery::ByCause;

/// Metrics as text. Each family has its help and type once, before its values.
#[derive(Debug)]
pub struct Metrics {
    prefix: &'static str,
    text: String,
}

impl Metrics {
    /// No metrics yet; all names begin with `prefix`.
    #[must_use]
    pub const fn new(prefix: &'static str) -> Self {
        Self { prefix, text: String::new() }
    }

    /// A metric with one value. `kind` is a type of Prometheus: `counter` or `gauge`.
    pub fn single(&mut self, name: &str, kind: &str, about: &str, value: impl Display) {
        self.family(name, kind, about, [([], value)]);
    }

    /// A metric with a value for each set of labels; without values, the family is omitted.
    pub fn family<const LABELS: usize, V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        about: &str,
        values: impl IntoIterator<Item = ([(&'static str, String); LABELS], V)>,
    ) {
        let prefix = self.prefix;
        let mut has_head = false;
        for (labels, value) in values {
            if !has_head {
                self.head(name, kind, about);
                has_head = true;
            }
            let _ = write!(self.text, "{prefix}_{name}");
            for (at, (label, text)) in labels.iter().enumerate() {
                let before = if at == 0 { '{' } else { ',' };
                let _ = write!(self.text, "{before}{label}=\"{}\"", escaped(text));
            }
            let end = if LABELS == 0 { "" } else { "}" };
            let _ = writeln!(self.text, "{end} {value}");
        }
    }

    /// Quantiles of a distribution, each from 0 to 1, with the number of values and their sum.
    pub fn summary(
        &mut self,
        name: &str,
        about: &str,
        quantiles: impl IntoIterator<Item = (f64, f64)>,
        (count, sum): (u64, f64),
    ) {
        let prefix = self.prefix;
        self.head(name, "summary", about);
        for (quantile, value) in quantiles {
            let _ = writeln!(self.text, "{prefix}_{name}{{quantile=\"{quantile}\"}} {value}");
        }
        let _ = writeln!(self.text, "{prefix}_{name}_sum {sum}");
        let _ = writeln!(self.text, "{prefix}_{name}_count {count}");
    }

    fn head(&mut self, name: &str, kind: &str, about: &str) {
        let (prefix, about) = (self.prefix, about.replace('\\', "\\\\").replace('\n', "\\n"));
        let _ = writeln!(self.text, "# HELP {prefix}_{name} {about}");
        let _ = writeln!(self.text, "# TYPE {prefix}_{name} {kind}");
    }

    /// The text.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }
}

/// The value of a label: what would end it, or the line, is escaped, and other control characters are replaced.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => safe.push_str("\\\\"),
            '"' => safe.push_str("\\\""),
            '\n' => safe.push_str("\\n"),
            c if c.is_control() => safe.push(char::REPLACEMENT_CHARACTER),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(any(feature = "udp", all(feature = "proxy", target_os = "linux")))]
/// Retransmissions by the name of their cause. Redundant copies are not counted as retransmissions.
pub(crate) fn by_cause(counts: ByCause) -> impl Iterator<Item = (&'static str, u64)> {
    counts.retransmissions().into_iter().map(|(cause, count)| (cause.name(), count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_end_their_line() {
        let mut metrics = Metrics::new("rexmit");
        let hostile = "a\"} 7\nrexmit_packets 8\\\u{1b}[31m".to_owned();
        metrics.family("packets", "counter", "Packets.", [([("peer", hostile)], 9)]);
        assert_eq!(
            metrics.into_text(),
            "# HELP rexmit_packets Packets.\n# TYPE rexmit_packets counter\n\
             rexmit_packets{peer=\"a\\\"} 7\\nrexmit_packets 8\\\\\u{fffd}[31m\"} 9\n"
        );
    }

    #[test]
    fn a_family_without_values_is_left_out() {
        let mut metrics = Metrics::new("rexmit");
        metrics.family::<1, u64>("packets", "counter", "Packets.", []);
        metrics.single("open", "gauge", "Open.", 1);
        assert_eq!(
            metrics.into_text(),
            "# HELP rexmit_open Open.\n# TYPE rexmit_open gauge\nrexmit_open 1\n"
        );
    }
}
