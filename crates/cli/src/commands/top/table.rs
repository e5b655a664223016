//! The table of live associations.

use std::collections::BTreeMap;
use std::io;

use clap::ValueEnum;
use serde::Serialize;

use super::page::{Value, invalid};
use crate::output::printable;

/// Causes of retransmission, each with the heading of its column.
const CAUSES: [(&str, &str); 6] = [
    ("timeout", "timeout"),
    ("fast_retransmit", "fast"),
    ("early", "early"),
    ("probe", "probe"),
    ("bundled", "bundled"),
    ("window_probe", "window"),
];
/// Characters of a peer's name at most.
const MAX_PEER: usize = 47;
/// Quantiles of the latency that are shown at most.
const MAX_QUANTILES: usize = 8;
/// The largest count that is written with all its digits.
const MAX_COUNT: f64 = 1e12;
/// Columns that are left out of a narrow terminal, in this order.
const LEAST_IMPORTANT: [&str; 12] = [
    "window",
    "bundled",
    "early",
    "rto ms",
    "in flight",
    "repaired",
    "spurious",
    "fast",
    "timeout",
    "probe",
    "copies",
    "assoc",
];

/// The size of the terminal, in characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Screen {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// The column by which the table is sorted, the largest value first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Sort {
    Loss,
    Rtt,
    Retransmissions,
    Copies,
    Messages,
}

/// The values of a metrics page.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(super) struct Sample {
    /// Associations that have not ended, also those without a row.
    pub(super) open: u64,
    /// Latency of the messages received, in milliseconds, by quantile: if the program measures it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) latency_ms: BTreeMap<String, f64>,
    pub(super) associations: Vec<Row>,
}

/// An association, or the clients of a proxy together.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub(super) struct Row {
    pub(super) association: String,
    pub(super) peer: String,
    /// The largest smoothed round-trip time of its paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) srtt_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rto_ms: Option<f64>,
    pub(super) in_flight_bytes: f64,
    pub(super) packets: f64,
    pub(super) packets_lost: f64,
    pub(super) packets_repaired: f64,
    /// By cause.
    pub(super) retransmissions: BTreeMap<String, f64>,
    pub(super) spurious: f64,
    pub(super) redundant_copies: f64,
    pub(super) redundant_bytes: f64,
    pub(super) messages_sent: f64,
    pub(super) messages_received: f64,
}

impl Sample {
    /// Reads the metrics of an endpoint or of the proxy. Fails if no metric of the page is one of rexmit's.
    pub(super) fn of(values: &[Value]) -> io::Result<Self> {
        if !values.iter().any(|value| value.name.starts_with("rexmit_")) {
            return Err(invalid("it is not a page of rexmit's metrics".into()));
        }
        let mut sample = Self::default();
        let mut rows: BTreeMap<(Vec<u64>, String, String), Row> = BTreeMap::new();
        for Value { name, labels, value } in values {
            // The page may come from any program: neither a table nor JSON may move the cursor.
            let label =
                |name: &str| labels.get(name).map(|text| printable(text)).unwrap_or_default();
            match name.as_str() {
                "rexmit_associations" | "rexmit_proxy_connections_open" => {
                    sample.open = *value as u64;
                }
                "rexmit_message_latency_seconds" => {
                    sample.latency_ms.insert(label("quantile"), value * 1e3);
                }
                _ => {}
            }
            let Some((metric, is_proxy)) = metric(name) else { continue };
            let (association, peer) = if is_proxy {
                ("all".into(), "clients of the proxy".into())
            } else {
                (label("association"), label("peer"))
            };
            let row =
                rows.entry((numbers(&association), association.clone(), peer.clone())).or_default();
            (row.association, row.peer) = (association, peer);
            row.set(metric, &label("cause"), &label("quantile"), *value);
        }
        sample.associations = rows.into_values().collect();
        Ok(sample)
    }

    /// Sorts the rows by `by`, the largest first; equal ones stay in the order of their numbers.
    pub(super) fn sort(&mut self, by: Sort) {
        // A page may have values that are no numbers: the order is total all the same.
        self.associations.sort_by(|a, b| b.key(by).total_cmp(&a.key(by)));
    }

    /// The table for a terminal: no more lines than `screen` has rows, and none longer than its columns. With `before`, a second
    /// earlier or so, messages are shown per second.
    pub(super) fn table(&self, before: Option<(&Self, f64)>, screen: Screen) -> String {
        let per_second = if before.is_some() { "msg/s" } else { "msgs" };
        let mut head = vec!["assoc", "peer", "srtt ms", "rto ms", "lost %", "in flight"];
        head.extend(CAUSES.map(|(_, heading)| heading));
        head.extend(["spurious", "copies", "repaired", per_second]);
        let mut cells = vec![head.iter().map(ToString::to_string).collect::<Vec<_>>()];
        let mut lines = wrapped(&self.title(), screen.columns);
        // Beside them: the headings, two lines of text below, and the line of the cursor.
        let foot = wrapped(&wider(LEAST_IMPORTANT), screen.columns).len();
        let room = screen.rows.saturating_sub(lines.len() + foot + 3).max(1);
        let earlier: BTreeMap<_, _> = before
            .iter()
            .flat_map(|(sample, _)| &sample.associations)
            .map(|row| (row.place(), row))
            .collect();
        for row in self.associations.iter().take(room) {
            let earlier = earlier.get(&row.place()).copied();
            cells.push(row.cells(earlier.zip(before.map(|(_, seconds)| seconds))));
        }
        let hidden = fit(&mut cells, screen.columns);
        lines.extend(aligned(&cells));
        let more = self.associations.len().saturating_sub(room);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        if !hidden.is_empty() {
            lines.extend(wrapped(&wider(hidden), screen.columns));
        }
        lines.truncate(screen.rows.saturating_sub(1).max(1));
        let cut = |line: String| line.chars().take(screen.columns).collect::<String>() + "\n";
        lines.into_iter().map(cut).collect()
    }

    fn title(&self) -> String {
        let mut title = format!("{} associations open", self.open);
        if !self.latency_ms.is_empty() {
            let shown = self.latency_ms.iter().take(MAX_QUANTILES);
            let quantiles = shown.map(|(quantile, ms)| {
                let percent = quantile.parse::<f64>().unwrap_or(0.0).clamp(0.0, 1.0) * 100.0;
                let name = format!("p{percent:.6}");
                let name = match percent {
                    100.0.. => "max",
                    _ => name.trim_end_matches('0').trim_end_matches('.'),
                };
                format!("{name} {}", decimal(*ms, 1))
            });
            title +=
                &format!("; latency of messages, ms: {}", quantiles.collect::<Vec<_>>().join(", "));
        }
        title
    }
}

/// A metric's name without its prefix, and whether it is of the proxy.
fn metric(name: &str) -> Option<(&str, bool)> {
    if let Some(metric) = name.strip_prefix("rexmit_association_") {
        return Some((metric, false));
    }
    if name.starts_with("rexmit_path_") {
        return Some((name.trim_start_matches("rexmit_"), false));
    }
    match name.strip_prefix("rexmit_proxy_")? {
        "segments_total" => Some(("data_packets_total", true)),
        "segments_lost_total" => Some(("data_packets_lost_total", true)),
        "segments_repaired_total" => Some(("packets_repaired_total", true)),
        "client_srtt_seconds" => Some(("proxy_srtt_seconds", true)),
        metric => Some((metric, true)),
    }
}

impl Row {
    fn place(&self) -> (&str, &str) {
        (&self.association, &self.peer)
    }

    fn set(&mut self, metric: &str, cause: &str, quantile: &str, value: f64) {
        let largest = |now: Option<f64>| Some(now.unwrap_or(0.0).max(value * 1e3));
        match metric {
            "path_srtt_seconds" => self.srtt_ms = largest(self.srtt_ms),
            "proxy_srtt_seconds" if quantile == "0.5" => self.srtt_ms = largest(self.srtt_ms),
            "path_rto_seconds" => self.rto_ms = largest(self.rto_ms),
            "path_in_flight_bytes" => self.in_flight_bytes += value,
            "data_packets_total" => self.packets = value,
            "data_packets_lost_total" => self.packets_lost = value,
            "packets_repaired_total" => self.packets_repaired = value,
            "retransmissions_total" if CAUSES.iter().any(|(known, _)| *known == cause) => {
                self.retransmissions.insert(cause.to_owned(), value);
            }
            "spurious_retransmissions_total" => self.spurious += value,
            "redundant_copies_total" => self.redundant_copies = value,
            "redundant_bytes_total" => self.redundant_bytes = value,
            "messages_sent_total" => self.messages_sent = value,
            "messages_received_total" => self.messages_received = value,
            _ => {}
        }
    }

    fn loss(&self) -> f64 {
        if self.packets > 0.0 { self.packets_lost / self.packets } else { 0.0 }
    }

    fn messages(&self) -> f64 {
        self.messages_sent + self.messages_received
    }

    fn key(&self, by: Sort) -> f64 {
        match by {
            Sort::Loss => self.loss(),
            Sort::Rtt => self.srtt_ms.unwrap_or(0.0),
            Sort::Retransmissions => self.retransmissions.values().sum(),
            Sort::Copies => self.redundant_copies,
            Sort::Messages => self.messages(),
        }
    }

    fn cells(&self, earlier: Option<(&Self, f64)>) -> Vec<String> {
        let millis = |ms: Option<f64>| ms.map_or_else(|| "-".into(), |ms| decimal(ms, 1));
        let shown = |text: &str| text.replace('\n', " ").chars().take(MAX_PEER).collect();
        let messages = match earlier {
            Some((earlier, seconds)) => {
                decimal((self.messages() - earlier.messages()).max(0.0) / seconds, 1)
            }
            None => decimal(self.messages(), 0),
        };
        let mut cells = vec![
            shown(&self.association),
            shown(&self.peer),
            millis(self.srtt_ms),
            millis(self.rto_ms),
            decimal(self.loss() * 100.0, 2),
            decimal(self.in_flight_bytes, 0),
        ];
        cells.extend(
            CAUSES.map(|(cause, _)| decimal(*self.retransmissions.get(cause).unwrap_or(&0.0), 0)),
        );
        let counts = [self.spurious, self.redundant_copies, self.packets_repaired];
        cells.extend(counts.map(|count| decimal(count, 0)));
        cells.push(messages);
        cells
    }
}

/// `value` with `digits` after the point. A page may contain values of hundreds of digits.
fn decimal(value: f64, digits: usize) -> String {
    if value.abs() <= MAX_COUNT { format!("{value:.digits$}") } else { format!("{value:.1e}") }
}

/// The numbers in an association's name: `0.10` is that of connection 0 and follows `0.9`. Other names are last.
fn numbers(association: &str) -> Vec<u64> {
    association.split('.').map(|number| number.parse().unwrap_or(u64::MAX)).collect()
}

/// Names the columns that a narrow terminal does not show.
fn wider(hidden: impl IntoIterator<Item = impl ToString>) -> String {
    let hidden: Vec<_> = hidden.into_iter().map(|heading| heading.to_string()).collect();
    format!("a wider terminal shows: {}", hidden.join(", "))
}

/// `text` in lines of at most `columns` characters, broken between its words.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The width of each column of `cells`.
fn widths(cells: &[Vec<String>]) -> Vec<usize> {
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max();
    (0..cells[0].len()).map(|column| width(column).unwrap_or(0)).collect()
}

/// Removes the least important columns of `cells` until their rows are no longer than `columns`. Returns the headings of
/// those that were removed.
fn fit(cells: &mut [Vec<String>], columns: usize) -> Vec<String> {
    let mut removed = Vec::new();
    for heading in LEAST_IMPORTANT {
        let widths = widths(cells);
        if widths.iter().sum::<usize>() + 2 * (widths.len() - 1) <= columns {
            break;
        }
        let Some(column) = cells[0].iter().position(|it| it == heading) else { continue };
        removed.push(heading.to_owned());
        cells.iter_mut().for_each(|row| drop(row.remove(column)));
    }
    removed
}

/// The rows of `cells` as lines: the peer's name on the left of its column, figures on the right.
fn aligned(cells: &[Vec<String>]) -> impl Iterator<Item = String> {
    let widths = widths(cells);
    let is_text: Vec<bool> = cells[0].iter().map(|heading| heading == "peer").collect();
    cells.iter().map(move |row| {
        let cells = row.iter().zip(&widths).zip(&is_text).map(|((cell, width), is_text)| {
            if *is_text { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ")
    })
}

#[cfg(test)]
mod tests {
    use super::super::page::read;
    use super::*;

    const WIDE: Screen = Screen { columns: usize::MAX, rows: usize::MAX };
    const PAGE: &str = "rexmit_associations 3
rexmit_association_data_packets_total{association=\"10\",peer=\"192.0.2.1:9\"} 200
rexmit_association_data_packets_lost_total{association=\"10\",peer=\"192.0.2.1:9\"} 3
rexmit_association_data_packets_total{association=\"9\",peer=\"192.0.2.2:9\"} 100
rexmit_association_data_packets_lost_total{association=\"9\",peer=\"192.0.2.2:9\"} 4
rexmit_association_retransmissions_total{association=\"9\",peer=\"192.0.2.2:9\",cause=\"probe\"} 7
rexmit_association_messages_sent_total{association=\"9\",peer=\"192.0.2.2:9\"} 50
rexmit_path_srtt_seconds{association=\"10\",peer=\"192.0.2.1:9\",path=\"0\"} 0.02
rexmit_path_srtt_seconds{association=\"10\",peer=\"192.0.2.1:9\",path=\"1\"} 0.1
rexmit_path_in_flight_bytes{association=\"10\",peer=\"192.0.2.1:9\",path=\"0\"} 100
rexmit_path_in_flight_bytes{association=\"10\",peer=\"192.0.2.1:9\",path=\"1\"} 20
rexmit_message_latency_seconds{quantile=\"0.999\"} 0.25
rexmit_message_latency_seconds{quantile=\"1\"} 0.5
";

    fn sample(page: &str) -> Sample {
        Sample::of(&read(page)).unwrap()
    }

    fn order(sort: Sort) -> Vec<String> {
        let mut sample = sample(PAGE);
        sample.sort(sort);
        sample.associations.into_iter().map(|row| row.association).collect()
    }

    #[test]
    fn rows_are_put_together_and_sorted() {
        let sample = sample(PAGE);
        assert_eq!((sample.open, sample.associations.len()), (3, 2));
        let ten = sample.associations.iter().find(|row| row.association == "10").unwrap();
        assert_eq!((ten.srtt_ms, ten.in_flight_bytes, ten.packets), (Some(100.0), 120.0, 200.0));
        assert_eq!(order(Sort::Loss), ["9", "10"]);
        assert_eq!(order(Sort::Rtt), ["10", "9"]);
        assert_eq!(order(Sort::Retransmissions), ["9", "10"]);
        assert_eq!(order(Sort::Copies), ["9", "10"], "equal ones by number");
    }

    #[test]
    fn the_table_has_rates_and_fits_its_height() {
        let before = sample(PAGE);
        let later = sample(&PAGE.replace("} 50\n", "} 70\n"));
        let table = later.table(Some((&before, 2.0)), WIDE);
        assert!(
            table.starts_with(
                "3 associations open; latency of messages, ms: p99.9 250.0, max 500.0\n"
            ),
            "{table}"
        );
        let row = table.lines().find(|line| line.contains("192.0.2.2:9")).unwrap();
        let cells: Vec<_> = row.split_whitespace().collect();
        assert_eq!((cells[0], cells[4], cells.last()), ("9", "4.00", Some(&"10.0")));
        let table = later.table(None, Screen { rows: 6, ..WIDE });
        assert!(table.ends_with("and 1 more\n") && table.lines().count() <= 6, "{table}");
    }

    #[test]
    fn lines_fit_the_width_and_hidden_columns_are_named() {
        let sample = sample(PAGE);
        for columns in [1, 40, 80, 100, 200] {
            let table = sample.table(None, Screen { columns, rows: 24 });
            assert!(table.lines().all(|line| line.chars().count() <= columns), "{table}");
            let row = table.lines().find(|line| line.contains("192.0.2.2:9"));
            // Whole figures: the messages are the last column of each table.
            assert!(columns < 40 || row.is_some_and(|row| row.ends_with("  50")), "{table}");
            assert_eq!(columns < 200, table.contains("a wider") || columns == 1, "{table}");
        }
    }

    #[test]
    fn values_of_hundreds_of_digits_are_shown_short() {
        let page = "rexmit_association_messages_sent_total{association=\"1\",peer=\"p\"} 1e308\n\
                    rexmit_association_data_packets_total{association=\"1\",peer=\"p\"} NaN\n\
                    rexmit_path_rto_seconds{association=\"1\",peer=\"p\"} -inf\n\
                    rexmit_message_latency_seconds{quantile=\"1e300\"} 1e300\n";
        let quantiles: String = (0..1000)
            .map(|n| format!("rexmit_message_latency_seconds{{quantile=\"0.{n}\"}} 1\n"))
            .collect();
        let table = sample(&(page.to_owned() + &quantiles)).table(None, WIDE);
        assert!(table.lines().all(|line| line.len() < 300), "{table}");
    }

    #[test]
    fn rows_with_values_that_are_no_numbers_are_sorted() {
        let value = |n: u64| ["NaN", "-inf", "inf", "7", "-3", "0"][(n * n % 6) as usize];
        let line = |n| {
            let value = value(n);
            format!(
                "rexmit_association_messages_sent_total{{association=\"{n}\",peer=\"p\"}} {value}\n"
            )
        };
        let mut sample = sample(&(0..1000).map(line).collect::<String>());
        sample.sort(Sort::Messages);
        assert_eq!(sample.associations.len(), 1000);
    }

    /// The page may come from any program: its text must not move the cursor, nor change the direction of writing.
    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let peers = ["\\n\u{9b}x\u{7}", "\u{202e}evil", "\u{2066}a\u{2069}", "\u{200f}\u{61c}"];
        let line = |(n, peer): (usize, &&str)| {
            format!(
                "rexmit_association_data_packets_total{{association=\"\u{1b}[2J{n}\",peer=\"{peer}\"}} 1\n"
            )
        };
        let latency = "rexmit_message_latency_seconds{quantile=\"\u{9b}2J\"} 1\n".to_owned();
        let sample = sample(&(latency + &peers.iter().enumerate().map(line).collect::<String>()));
        let is_plain =
            |c: char| !c.is_control() && !('\u{200e}'..='\u{2069}').contains(&c) && c != '\u{61c}';
        let table = sample.table(None, WIDE);
        assert!(table.chars().all(|c| c == '\n' || is_plain(c)), "{table:?}");
        assert_eq!(table.lines().count(), 2 + peers.len(), "{table}");
        let json = serde_json::to_string(&sample).unwrap();
        assert!(json.chars().all(is_plain), "{json:?}");
    }

    #[test]
    fn connections_of_several_endpoints_are_in_the_order_of_their_numbers() {
        let line = |name: &&str| {
            format!(
                "rexmit_association_data_packets_total{{association=\"{name}\",peer=\"p\"}} 1\n"
            )
        };
        let names = ["1.0", "0.10", "other", "0.9", "10.0", "2", "9.1"];
        let mut sample = sample(&names.iter().map(line).collect::<String>());
        sample.sort(Sort::Loss);
        let names: Vec<_> = sample.associations.iter().map(|row| &row.association).collect();
        assert_eq!(names, ["0.9", "0.10", "1.0", "2", "9.1", "10.0", "other"]);
    }

    #[test]
    fn a_page_without_a_value_of_rexmit_is_none_of_its_metrics() {
        for page in
            ["", "# HELP rexmit_associations a\n", "node_load1 0.2\n", "rexmit_associations\n"]
        {
            let error = Sample::of(&read(page)).unwrap_err().to_string();
            assert_eq!(error, "it is not a page of rexmit's metrics", "{page}");
        }
        assert_eq!(sample("rexmit_associations 0\n"), Sample::default());
    }

    /// Every word of the table in a terminal as wide as 200 columns is in the narrow one, too.
    #[test]
    fn no_word_is_cut_at_80_columns() {
        let mut page = PAGE.to_owned();
        for n in ["0.5", "0.9", "0.99", "0.9999", "0.99999"] {
            page += &format!("rexmit_message_latency_seconds{{quantile=\"{n}\"}} 123.4567\n");
        }
        let peer = "[2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff]:65535";
        page += &format!(
            "rexmit_association_messages_sent_total{{association=\"11\",peer=\"{peer}\"}} 999999999999\n"
        );
        let sample = sample(&page);
        let narrow = sample.table(None, Screen { columns: 80, rows: 24 });
        let wide = sample.table(None, WIDE);
        assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
        let known: Vec<_> = wide.split_whitespace().chain(LEAST_IMPORTANT).collect();
        for word in narrow.split_whitespace().map(|word| word.trim_end_matches(',')) {
            let is_known = known
                .iter()
                .any(|it| it.trim_end_matches(',') == word || it.split(' ').any(|it| it == word));
            assert!(is_known || "a wider terminal shows:".contains(word), "{word}: {narrow}");
        }
        assert!(narrow.contains("999999999999\n") && narrow.contains(peer), "{narrow}");
        let low = sample.table(None, Screen { columns: 80, rows: 8 });
        assert!(low.lines().count() < 8, "{low}");
    }
}
