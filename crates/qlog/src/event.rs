//! The records of events other than packets.

use rexmit_core::trace::TraceEvent;
use rexmit_core::{Instant, millis};
use serde::Serialize;
use serde_json::{Value, json};

use crate::RECORD_SEPARATOR;

/// A record of the file.
#[derive(Serialize)]
pub(crate) struct Record<'a, D> {
    pub(crate) time: f64,
    pub(crate) name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group_id: Option<String>,
    pub(crate) data: D,
}

impl<D: Serialize> Record<'_, D> {
    /// Appends the record to `out`.
    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        let length = out.len();
        out.push(RECORD_SEPARATOR);
        // Writing to memory cannot fail, and no map here has keys other than strings.
        match serde_json::to_writer(&mut *out, self) {
            Ok(()) => out.push(b'\n'),
            Err(_) => out.truncate(length),
        }
    }
}

/// `at` as the time of a record: milliseconds since the log began.
pub(crate) fn time(begin: Instant, at: Instant) -> f64 {
    millis::from_duration(at - begin)
}

/// The name and content of an event that is no packet. `packet_type` is that of packets with data.
pub(crate) fn described(event: &TraceEvent, packet_type: &str) -> (String, Value) {
    match *event {
        TraceEvent::State { state } => {
            ("connectivity:connection_state_updated".into(), json!({ "new": state }))
        }
        TraceEvent::PacketLost { packet, cause } => {
            let header = json!({ "packet_type": packet_type, "packet_number": packet });
            let data = json!({ "header": header, "trigger": cause.name() });
            ("recovery:packet_lost".into(), data)
        }
        TraceEvent::RttSample { path, rtt, srtt, rto } => {
            let [latest, smoothed, rto] = [rtt, srtt, rto].map(millis::from_duration);
            let data = json!({
                "latest_rtt": latest, "smoothed_rtt": smoothed, "rto": rto, "path": path,
            });
            ("recovery:metrics_updated".into(), data)
        }
        TraceEvent::Window { path, cwnd, ssthresh, flight } => {
            let mut data =
                json!({ "congestion_window": cwnd, "bytes_in_flight": flight, "path": path });
            // Slow start has no threshold until a loss.
            if ssthresh < u64::from(u32::MAX) {
                data["ssthresh"] = ssthresh.into();
            }
            ("recovery:metrics_updated".into(), data)
        }
        TraceEvent::RetransmissionTimeout { path, rto } => {
            let data = json!({ "path": path, "rto": millis::from_duration(rto) });
            ("rexmit:retransmission_timeout".into(), data)
        }
        TraceEvent::Dropped { reason } => {
            ("transport:packet_dropped".into(), json!({ "trigger": reason }))
        }
        _ => of_our_own(event),
    }
}

/// An event that QUIC does not have: its own name and fields.
fn of_our_own(event: &TraceEvent) -> (String, Value) {
    let mut data = serde_json::to_value(event).unwrap_or_default();
    let name = data.as_object_mut().and_then(|fields| fields.remove("event"));
    let name = name.as_ref().and_then(Value::as_str).unwrap_or("unknown");
    (format!("rexmit:{name}"), data)
}
