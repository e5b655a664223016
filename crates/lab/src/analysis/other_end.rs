//! Two captures of the same connections, one at each end, as one.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use rexmit_netsim::capture::CaptureDirection;
use rexmit_netsim::traffic::connections::Connections;
use rexmit_netsim::traffic::frames::CapturedFrame;
use rexmit_netsim::traffic::trace::Sender;
use rustc_hash::{FxHashMap, FxHasher};

/// The interface of the packets in the second file.
pub(super) const OTHER: u32 = u32::MAX;

/// The packets of both files in the order of time, by the clock of the first. Packets of the first file have interface
/// 0, those of the second [`OTHER`]. Also returns whether the first file is the client's.
///
/// The shortest delay is taken to be the same in both directions: this gives the difference between the clocks, and the
/// side on which each file was captured. `None` if no packet is in both files.
pub(super) fn merged(
    mut first: Vec<CapturedFrame>,
    mut second: Vec<CapturedFrame>,
) -> Option<(Vec<CapturedFrame>, bool)> {
    let (offset, is_client_first) = offset(&first, &second)?;
    // So that no time is negative.
    let shift = offset.max(0);
    for frame in &mut first {
        frame.time = moved(frame.time, shift);
        (frame.interface, frame.direction) = (0, None);
    }
    for frame in &mut second {
        frame.time = moved(frame.time, shift - offset);
        (frame.interface, frame.direction) = (OTHER, None);
    }
    first.append(&mut second);
    first.sort_by_key(|frame| frame.time);
    let mut connections = Connections::default();
    for frame in &mut first {
        let is_client = connections.assign(&frame.packet).1 == Sender::Client;
        let is_at_sender = (frame.interface == 0) == (is_client == is_client_first);
        frame.direction =
            Some(if is_at_sender { CaptureDirection::Out } else { CaptureDirection::In });
    }
    Some((first, is_client_first))
}

/// The clock of the second file less that of the first, in nanoseconds, and whether the first file is the client's.
fn offset(first: &[CapturedFrame], second: &[CapturedFrame]) -> Option<(i128, bool)> {
    let [in_first, in_second] = [first, second].map(|frames| {
        let mut numbers: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        for (number, frame) in frames.iter().enumerate() {
            numbers.entry(seen(frame)).or_default().push(number);
        }
        numbers
    });
    let mut connections = Connections::default();
    // The least and the largest difference, for packets of the client and of the server.
    let mut differences: [Option<(i128, i128)>; 2] = [None; 2];
    for (number, frame) in first.iter().enumerate() {
        let side = usize::from(connections.assign(&frame.packet).1 == Sender::Server);
        let equal = seen(frame);
        // Equal packets may be mistaken for each other.
        let (Some([_]), Some([other])) =
            (in_first.get(&equal).map(Vec::as_slice), in_second.get(&equal).map(Vec::as_slice))
        else {
            continue;
        };
        let difference = nanos(second[*other].time) - nanos(first[number].time);
        let (least, largest) = differences[side].get_or_insert((difference, difference));
        (*least, *largest) = ((*least).min(difference), (*largest).max(difference));
    }
    let [Some(client), Some(server)] = differences else { return None };
    // Packets of the client are in the client's file first: their difference is the clocks' and the delay.
    let is_client_first = client.0 >= server.0;
    let shortest = if is_client_first { (client.0, server.1) } else { (client.1, server.0) };
    Some((i128::midpoint(shortest.0, shortest.1), is_client_first))
}

/// A hash of the parts of a packet that are the same in both files.
fn seen(frame: &CapturedFrame) -> u64 {
    let mut hasher = FxHasher::default();
    frame.packet.hash(&mut hasher);
    hasher.finish()
}

const fn nanos(time: Duration) -> i128 {
    time.as_nanos() as i128
}

fn moved(time: Duration, by: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos(time) + by).unwrap_or(0))
}
