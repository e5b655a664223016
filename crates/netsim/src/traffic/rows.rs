//! The CSV form of a trace: `trace,flow_id,direction,time_us,payload_bytes`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::connections::Sender;
use super::input::TraceError;
use super::trace::{Flow, Message, Trace};

/// The largest time; it keeps sums of times far from overflow.
const MAX_TIME_US: u64 = 100 * 366 * 86_400 * 1_000_000;

#[derive(Deserialize)]
struct Row<'a> {
    trace: &'a str,
    flow_id: u32,
    direction: Sender,
    time_us: u64,
    payload_bytes: u32,
}

/// Reads the rows in `bytes`. Rows of different flows and directions may be mixed; those of one
/// flow and direction must be in ascending order of time.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Trace, TraceError> {
    let bad_line = |line, problem| TraceError::BadLine { file: file.to_owned(), line, problem };
    let mut reader = csv::Reader::from_reader(bytes);
    let columns = ["trace", "flow_id", "direction", "time_us", "payload_bytes"];
    let no_trace = || {
        let columns = columns.join(",");
        bad_line(1, format!("neither a capture nor a trace, whose columns must be {columns}"))
    };
    let headers = reader.headers().map_err(|_| no_trace())?.clone();
    if columns.iter().any(|column| !headers.iter().any(|header| header == *column)) {
        return Err(no_trace());
    }
    let mut name = String::new();
    let mut flows = BTreeMap::<u32, Flow>::new();
    let mut record = csv::StringRecord::new();
    loop {
        let line = reader.position().line();
        let is_row =
            reader.read_record(&mut record).map_err(|error| bad_line(line, error.to_string()))?;
        if !is_row {
            break;
        }
        let line = record.position().map_or(line, csv::Position::line);
        let row: Row<'_> =
            record.deserialize(Some(&headers)).map_err(|error| bad_line(line, problem(&error)))?;
        if name.is_empty() {
            row.trace.clone_into(&mut name);
        }
        let flow = flows.entry(row.flow_id).or_insert(Flow { id: row.flow_id, ..Flow::default() });
        let messages = flow.messages_mut(row.direction);
        push(messages, &row).map_err(|problem| bad_line(line, problem.to_owned()))?;
    }
    Ok(Trace { name, flows: flows.into_values().collect() })
}

fn push(messages: &mut Vec<Message>, row: &Row<'_>) -> Result<(), &'static str> {
    let at = Duration::from_micros(row.time_us);
    if row.time_us > MAX_TIME_US {
        return Err("a time of more than 100 years");
    }
    if row.payload_bytes == 0 {
        return Err("a message of 0 bytes");
    }
    if messages.last().is_some_and(|last| last.at > at) {
        return Err("its time is before that of the row before, of the same flow and direction");
    }
    messages.push(Message { at, bytes: row.payload_bytes });
    Ok(())
}

/// The error without its position, which is reported separately.
fn problem(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => err.to_string(),
        _ => error.to_string(),
    }
}
