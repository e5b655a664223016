//! The API boundary of an endpoint: packets and time in, packets and events out (RFC 9293 §3.10.7).

use rexmit_core::{Instant, Machine, Route};

use super::four_tuple::FourTuple;
use super::id::ConnectionId;
use super::{Endpoint, Reply};
use crate::event::Event;
use crate::wire::{ParseError, Segment};

impl Machine for Endpoint {
    type Event = (ConnectionId, Event);

    fn handle_input(&mut self, now: Instant, route: Route, packet: &[u8]) {
        // Borrowed, not moved: reading fields right after writes of another width stalls the processor (store
        // forwarding).
        let parsed = Segment::parse(route.remote.ip(), route.local.ip(), packet);
        let segment = match &parsed {
            Ok(segment) => segment,
            Err(error) => {
                let statistics = &mut self.around.statistics;
                *match error {
                    ParseError::Truncated | ParseError::BadOffset => {
                        &mut statistics.malformed_header
                    }
                    ParseError::BadOption => &mut statistics.malformed_options,
                    ParseError::BadChecksum => &mut statistics.bad_checksum,
                } += 1;
                return;
            }
        };
        let tuple = FourTuple::of_arrival(route, &segment.header);
        if let Some(index) = self.lookup.of_segment(&self.table, &tuple) {
            self.call(now, index, |connection, cx| connection.on_segment(cx, segment));
        } else if !tuple.is_possible() {
            self.around.statistics.misdirected += 1;
        } else if let Some((verdict, header)) = self.ask_time_wait(now, &tuple, segment) {
            self.on_time_wait(now, &tuple, segment, verdict, header);
        } else if self.listeners.contains_key(&tuple.local.1) {
            self.on_listen(now, &tuple, segment);
        } else {
            self.on_unknown(now, &tuple, segment);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.time_waits.expire(now);
        while let Some((index, _)) = self.table.pop_due(now) {
            self.call(now, index, |connection, cx| {
                if connection.next_timeout().is_some_and(|at| at <= now) {
                    connection.on_timeout(cx);
                }
            });
        }
    }

    fn poll_transmit(&mut self, now: Instant, packet: &mut Vec<u8>) -> Option<Route> {
        if let Some(Reply { tuple, header }) = self.replies.pop_front() {
            header.write((tuple.local.0, tuple.remote.0), (&[], &[]), packet);
            return Some(tuple.route());
        }
        while let Some(index) = self.table.first_ready() {
            let has_sent =
                self.call(now, index, |connection, cx| connection.poll_transmit(cx, packet));
            if has_sent == Some(true) {
                self.table.rotate_ready();
                return self.table.get(index).map(|slot| slot.tuple.route());
            }
            self.table.pop_ready();
            self.remove_if_over(index);
        }
        packet.clear();
        None
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        if let Some(index) = self.table.take_reported() {
            self.remove_if_over(index);
        }
        let (id, event) = self.around.events.pop_front()?;
        if matches!(event, Event::Closed(_)) {
            self.table.report_end(id.0);
        }
        Some((id, event))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [self.table.next_deadline(), self.time_waits.next_deadline()];
        deadlines.into_iter().flatten().min()
    }
}
