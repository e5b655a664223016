//! Resetting streams (RFC 6525): of our outgoing streams by the application, and of the peer's, by the peer or because
//! we request it ([`ask`]).
//!
//! One request of ours is in progress at a time. Requests to add streams or to reset all TSNs are denied,
//! which RFC 6525 §5.2 allows.

mod ask;

use std::time::Duration;

use rexmit_core::Instant;
use rexmit_core::serial::Serial;

use super::context::Context;
use super::inbound::{DataError, Inbound};
use super::outbound::Outbound;
use super::timers::Deadline;
use crate::error::ResetError;
use crate::event::Event;
use crate::streams::SendQueue;
use crate::wire::{
    CHUNK_HEADER_LEN, COMMON_HEADER_LEN, PacketWriter, ReConfig, ReConfigParam, ReConfigResult,
    U16List,
};
use ask::Ask;

/// The state of stream resets in both directions.
#[derive(Debug)]
pub(super) struct StreamReset {
    /// Whether both sides support RFC 6525.
    is_supported: bool,
    /// The sequence number of our next request.
    next_request: u32,
    /// The sequence number of the peer's next request.
    next_of_peer: Serial<u32>,
    ours: Option<Box<OwnRequest>>,
    /// Requests that the peer resets its streams; `None` if there was none yet.
    ask: Option<Box<Ask>>,
    /// `None` until the peer sends a request.
    answers: Option<Box<Answers>>,
    /// The sequence number of the peer's last request to reset our streams, which our own request answers.
    taken_up: Option<u32>,
    /// The peer's request that cannot be performed yet, because earlier DATA is missing.
    deferred: Option<Box<Deferred>>,
    /// The answer to our request.
    timer: Deadline,
}

/// The sequence number of a request, and its result.
type Answer = (u32, ReConfigResult);

/// The most answers that wait to be sent; further requests are not answered, and the peer retransmits them.
const MAX_OWED_ANSWERS: usize = 4;
/// Bytes of a response without TSNs, and of a request without streams (RFC 6525 §4.4, §4.1).
const RESPONSE_LEN: usize = 12;
const OUTGOING_REQUEST_LEN: usize = 16;
/// The most requests that a peer may send before the first is answered.
const MAX_AHEAD: u32 = 256;
/// Parameters of a RE-CONFIG at most (RFC 6525 §3.1).
const MAX_PARAMS: usize = 2;

#[derive(Debug, Default)]
struct Answers {
    /// Answers to the requests of the peer's last RE-CONFIG, which are sent again if it is repeated.
    last: Vec<Answer>,
    /// Answers to be sent, at most [`MAX_OWED_ANSWERS`].
    owed: Vec<Answer>,
}

#[derive(Debug)]
struct OwnRequest {
    sequence: u32,
    /// The sequence number of the peer's incoming request that this one answers.
    response_sequence: Option<u32>,
    streams: Vec<u16>,
    is_owed: bool,
    /// Whether the peer answered "in progress", which is no error.
    is_in_progress: bool,
    /// The last assigned TSN, once the request was sent: it must be retransmitted unchanged.
    last_assigned_tsn: Option<u64>,
}

#[derive(Debug)]
struct Deferred {
    sequence: u32,
    last_tsn: u64,
    streams: Vec<u16>,
}

/// The state that a RE-CONFIG modifies, with its limits.
pub(super) struct Halves<'a> {
    pub(super) inbound: &'a mut Inbound,
    pub(super) out: &'a mut Outbound,
    /// The RTO of the path of RE-CONFIG.
    pub(super) rto: Duration,
    pub(super) max_packet_bytes: usize,
    /// The largest number of our streams whose reset the peer may request at once; `None` if it may request
    /// none.
    pub(super) max_streams: Option<usize>,
}

impl OwnRequest {
    /// Whether the request resets all of `streams`; an empty list means all streams.
    fn covers(&self, streams: &[u16]) -> bool {
        let has = |stream| self.streams.binary_search(stream).is_ok();
        self.streams.is_empty() || (!streams.is_empty() && streams.iter().all(has))
    }

    /// Whether a message of a stream to be reset was sent in part: its rest has to be sent first.
    fn is_held_up(&self, queue: &SendQueue) -> bool {
        if self.streams.is_empty() {
            queue.has_begun_message()
        } else {
            self.streams.iter().any(|&stream| queue.has_begun_message_on(stream))
        }
    }
}

impl StreamReset {
    pub(super) const fn new(local_initial_tsn: u32) -> Self {
        Self {
            is_supported: false,
            next_request: local_initial_tsn,
            next_of_peer: Serial(0),
            ours: None,
            ask: None,
            answers: None,
            taken_up: None,
            deferred: None,
            timer: Deadline::OFF,
        }
    }

    pub(super) const fn on_peer_known(&mut self, peer_initial_tsn: u32, is_supported: bool) {
        self.is_supported = is_supported;
        self.next_of_peer = Serial(peer_initial_tsn);
    }

    pub(super) const fn is_supported(&self) -> bool {
        self.is_supported
    }

    pub(super) const fn timer(&self) -> Deadline {
        self.timer
    }

    /// Whether DATA of this TSN must wait until a reset was performed.
    pub(super) fn holds_back(&self, tsn: u64, stream: u16) -> bool {
        self.deferred.as_ref().is_some_and(|deferred| {
            tsn > deferred.last_tsn
                && (deferred.streams.is_empty() || deferred.streams.binary_search(&stream).is_ok())
        })
    }

    fn owe(&mut self, answer: Answer) {
        let owed = &mut self.answers.get_or_insert_default().owed;
        owed.retain(|&(sequence, _)| sequence != answer.0);
        if owed.len() < MAX_OWED_ANSWERS {
            owed.push(answer);
        }
    }

    fn owed_answers(&self) -> &[Answer] {
        self.answers.as_ref().map_or(&[], |answers| &answers.owed)
    }

    /// Begins to reset outgoing streams, as the application requests; an empty list means all.
    pub(super) fn begin(
        &mut self,
        streams: &[u16],
        max_packet_bytes: usize,
        out: &mut Outbound,
    ) -> Result<(), ResetError> {
        if !self.is_supported {
            return Err(ResetError::NotSupported);
        } else if streams.iter().any(|&stream| stream >= out.streams()) {
            return Err(ResetError::InvalidStream);
        } else if self.ours.is_some() {
            return Err(ResetError::InProgress);
        }
        let streams = sorted(streams.iter().copied());
        let limit = max_streams(max_packet_bytes);
        if streams.len() > limit {
            return Err(ResetError::TooManyStreams { limit });
        }
        self.request(streams, None, out);
        Ok(())
    }

    fn request(&mut self, streams: Vec<u16>, response_sequence: Option<u32>, out: &mut Outbound) {
        if streams.is_empty() {
            out.queue.pause_all();
        }
        for &stream in &streams {
            out.queue.pause(stream);
        }
        let sequence = self.next_request;
        self.next_request = sequence.wrapping_add(1);
        self.ours = Some(Box::new(OwnRequest {
            sequence,
            response_sequence,
            streams,
            is_owed: true,
            is_in_progress: false,
            last_assigned_tsn: None,
        }));
    }

    /// Requests that the peer resets these streams of its own, on each of which a message was dropped, as soon as no other
    /// request of ours is in progress. Does nothing if the peer has no stream resets.
    pub(super) fn ask(&mut self, streams: impl Iterator<Item = u16>, max_packet_bytes: usize) {
        if self.is_supported {
            let ask = self.ask.get_or_insert_default();
            streams.for_each(|stream| ask.add(stream));
            self.ask_on(max_packet_bytes);
        }
    }

    /// Begins the next request for streams of the peer, if there is one and no other request of ours.
    fn ask_on(&mut self, max_packet_bytes: usize) {
        let Some(ask) = &mut self.ask else { return };
        if ask.is_waiting() && !ask.is_in_progress() && self.ours.is_none() {
            ask.begin(self.next_request, max_streams(max_packet_bytes));
            self.next_request = self.next_request.wrapping_add(1);
        }
    }

    fn is_asking(&self) -> bool {
        self.ask.as_ref().is_some_and(|ask| ask.is_in_progress())
    }

    /// Called when the peer has answered the request `sequence`, by a result or by its own request.
    fn on_ask_answered(
        &mut self,
        (now, sequence): (Instant, u32),
        result: Option<ReConfigResult>,
        halves: &Halves<'_>,
    ) {
        match self.ask.as_mut().and_then(|ask| ask.on_answer(sequence, result)) {
            None => {}
            Some(false) => self.timer = Deadline::at(now + halves.rto),
            Some(true) => {
                self.timer = Deadline::OFF;
                self.ask_on(halves.max_packet_bytes);
            }
        }
    }

    /// The last TSN assigned before our outstanding reset request (RFC 6525 §4.1), which the peer has not answered.
    pub(super) fn last_before_reset(&self) -> Option<u64> {
        self.ours.as_ref()?.last_assigned_tsn
    }

    /// Whether a RE-CONFIG may be sent now.
    pub(super) fn is_owed(&self, queue: &SendQueue) -> bool {
        !self.owed_answers().is_empty() || self.may_request(queue) || self.is_ask_owed()
    }

    fn is_ask_owed(&self) -> bool {
        self.ask.as_ref().is_some_and(|ask| ask.owed().is_some())
    }

    fn may_request(&self, queue: &SendQueue) -> bool {
        let is_due = |ours: &OwnRequest| ours.is_owed && !ours.is_held_up(queue);
        !self.is_asking() && self.ours.as_deref().is_some_and(is_due)
    }

    /// Writes the due parameters: two answers, or one and our request (RFC 6525 §3.1).
    pub(super) fn write(
        &mut self,
        now: Instant,
        rto: Duration,
        out: &Outbound,
        writer: &mut PacketWriter<'_>,
    ) {
        let answers = self.owed_answers().len().min(MAX_PARAMS);
        let requests = answers < MAX_PARAMS && self.may_request(&out.queue);
        let last = out.recovery.outstanding().next_unit() - 1;
        let last_of_peer = self.next_of_peer.0.wrapping_sub(1);
        let request = self.ours.as_mut().filter(|_| requests).map(|request| {
            let last_assigned_tsn = *request.last_assigned_tsn.get_or_insert(last);
            ReConfigParam::OutgoingSsnResetRequest {
                request_sequence: request.sequence,
                response_sequence: request.response_sequence.unwrap_or(last_of_peer),
                last_assigned_tsn: last_assigned_tsn as u32,
                streams: U16List::from(request.streams.as_slice()),
            }
        });
        let asked = self.ask.as_ref().filter(|_| answers < MAX_PARAMS).and_then(|ask| ask.owed());
        let has_asked = asked.is_some();
        let asked = asked.map(|(request_sequence, streams)| {
            ReConfigParam::IncomingSsnResetRequest { request_sequence, streams: streams.into() }
        });
        let response = |&(response_sequence, result): &Answer| ReConfigParam::Response {
            response_sequence,
            result,
            next_tsns: None,
        };
        let owed = self.answers.iter().flat_map(|answers| &answers.owed);
        let responses = owed.take(answers).map(response);
        if !writer.re_config(responses.chain(request).chain(asked)) {
            return;
        }
        self.answers.iter_mut().for_each(|all| drop(all.owed.drain(..answers)));
        if let Some(ask) = self.ask.as_mut().filter(|_| has_asked) {
            ask.on_sent();
            self.timer = Deadline::at(now + rto);
        }
        if let Some(request) = self.ours.as_mut().filter(|_| requests) {
            request.is_owed = false;
            self.timer = Deadline::at(now + rto);
        }
    }

    /// Called when the response timer expired: schedules a retransmission of our request. Returns whether it
    /// counts as an error; it does not after "In progress" (RFC 6525 §5.2.7 H2).
    pub(super) fn on_timeout(&mut self) -> Option<bool> {
        self.timer = Deadline::OFF;
        if let Some(is_error) = self.ask.as_mut().and_then(|ask| ask.on_timeout()) {
            return Some(is_error);
        }
        let request = self.ours.as_mut()?;
        request.is_owed = true;
        Some(!request.is_in_progress)
    }

    /// Processes RE-CONFIG. An error concerns DATA that was held back for a reset.
    pub(super) fn on_re_config(
        &mut self,
        cx: &mut Context<'_>,
        chunk: &ReConfig<'_>,
        halves: &mut Halves<'_>,
    ) -> Result<(), DataError> {
        let mut answers = Vec::new();
        for param in chunk.params().map_while(Result::ok).take(MAX_PARAMS) {
            let answer = match param {
                ReConfigParam::Response { response_sequence, result, .. } => {
                    self.on_answer(cx, (response_sequence, result), halves);
                    self.on_ask_answered((cx.now, response_sequence), Some(result), halves);
                    None
                }
                ReConfigParam::OutgoingSsnResetRequest {
                    request_sequence,
                    response_sequence,
                    last_assigned_tsn,
                    streams,
                } => {
                    let streams = sorted(streams.iter());
                    // Otherwise it is the number of our last request, perhaps of one that is still in progress.
                    if self.ask.as_ref().is_some_and(|ask| ask.is_covered_by(&streams)) {
                        self.on_ask_answered((cx.now, response_sequence), None, halves);
                    }
                    Some(self.on_incoming(
                        cx,
                        request_sequence,
                        last_assigned_tsn,
                        streams,
                        halves.inbound,
                    )?)
                }
                ReConfigParam::IncomingSsnResetRequest { request_sequence, streams } => {
                    self.on_request(request_sequence, sorted(streams.iter()), halves)
                }
                ReConfigParam::SsnTsnResetRequest { request_sequence }
                | ReConfigParam::AddOutgoingStreamsRequest { request_sequence, .. }
                | ReConfigParam::AddIncomingStreamsRequest { request_sequence, .. } => {
                    let result = self.judge(request_sequence).unwrap_or(ReConfigResult::Denied);
                    Some((request_sequence, result))
                }
                ReConfigParam::Unknown(_) => None,
            };
            answers.extend(answer);
        }
        for &answer in &answers {
            self.owe(answer);
        }
        answers.retain(|&(sequence, result)| {
            let is_taken = Serial(sequence) != self.next_of_peer && !self.is_ahead(sequence);
            result != ReConfigResult::BadSequenceNumber && is_taken
        });
        if !answers.is_empty() {
            self.answers.get_or_insert_default().last = answers;
        }
        Ok(())
    }

    /// Whether earlier requests than this one have not been received.
    fn is_ahead(&self, sequence: u32) -> bool {
        (1..=MAX_AHEAD).contains(&sequence.wrapping_sub(self.next_of_peer.0))
    }

    /// The answer to a request if its sequence number determines it: the earlier answer for a repeated request, an
    /// error for one out of order (RFC 6525 §5.2.1). `None` if the request has to be performed.
    ///
    /// A peer may have only one request in progress, but pion sends one for each channel that it closes, and
    /// abandons those that get an error: while one is lost, those after it are answered with "in progress".
    fn judge(&mut self, sequence: u32) -> Option<ReConfigResult> {
        let mut last = self.answers.iter().flat_map(|answers| &answers.last);
        let before = last.find(|&&(answered, _)| answered == sequence);
        match before {
            Some((_, ReConfigResult::InProgress)) => None,
            Some(&(_, result)) => Some(result),
            None if Serial(sequence) == self.next_of_peer => {
                self.next_of_peer = Serial(sequence).next();
                None
            }
            None if self.is_ahead(sequence) => Some(ReConfigResult::InProgress),
            None => Some(ReConfigResult::BadSequenceNumber),
        }
    }

    /// Processes a request of the peer to reset its outgoing streams, our incoming ones (RFC 6525 §5.2.2).
    fn on_incoming(
        &mut self,
        cx: &mut Context<'_>,
        sequence: u32,
        last_assigned_tsn: u32,
        streams: Vec<u16>,
        inbound: &mut Inbound,
    ) -> Result<Answer, DataError> {
        inbound.owe_sack();
        let waits = self.deferred.as_ref().is_some_and(|deferred| deferred.sequence != sequence);
        if waits && Serial(sequence) == self.next_of_peer {
            // The next one of a peer that does not wait for the answer.
            return Ok((sequence, ReConfigResult::InProgress));
        }
        if let Some(result) = self.judge(sequence) {
            return Ok((sequence, result));
        }
        let cumulative = inbound.cumulative();
        let last_tsn = rexmit_core::serial::unwrap_u32(cumulative, last_assigned_tsn);
        if streams.last().is_some_and(|&stream| stream >= inbound.streams()) {
            return Ok((sequence, ReConfigResult::WrongSsn));
        }
        if last_tsn > cumulative {
            self.deferred = Some(Box::new(Deferred { sequence, last_tsn, streams }));
            return Ok((sequence, ReConfigResult::InProgress));
        }
        self.deferred = None;
        perform(cx, streams, inbound)?;
        Ok((sequence, ReConfigResult::Performed))
    }

    /// Called when DATA has arrived: performs a deferred reset whose earlier DATA is complete now. An error
    /// concerns the DATA that was held back for the reset.
    pub(super) fn perform_deferred(
        &mut self,
        cx: &mut Context<'_>,
        inbound: &mut Inbound,
    ) -> Result<(), DataError> {
        let cumulative = inbound.cumulative();
        let is_due = |deferred: &mut Box<Deferred>| deferred.last_tsn <= cumulative;
        if let Some(deferred) = self.deferred.take_if(is_due) {
            let answer = (deferred.sequence, ReConfigResult::Performed);
            let last = &mut self.answers.get_or_insert_default().last;
            last.retain(|&(sequence, _)| sequence != deferred.sequence);
            last.push(answer);
            self.owe(answer);
            perform(cx, deferred.streams, inbound)?;
        }
        Ok(())
    }

    /// Called when the peer asks us to reset our outgoing streams (RFC 6525 §5.2.3): our own request is the
    /// answer, once no other is in progress.
    fn on_request(
        &mut self,
        sequence: u32,
        streams: Vec<u16>,
        halves: &mut Halves<'_>,
    ) -> Option<Answer> {
        if self.taken_up == Some(sequence) {
            return self.on_request_again(sequence);
        }
        if let Some(result) = self.judge(sequence) {
            return Some((sequence, result));
        }
        let is_valid = streams.last().is_none_or(|&stream| stream < halves.out.streams());
        let may_perform = halves.max_streams.is_some_and(|limit| streams.len() <= limit);
        let result = match &self.ours {
            _ if !is_valid => ReConfigResult::WrongSsn,
            _ if !may_perform => ReConfigResult::Denied,
            Some(ours) if ours.covers(&streams) => ReConfigResult::NothingToDo,
            Some(_) => ReConfigResult::InProgress,
            None if self.is_asking() => {
                self.ask.iter_mut().for_each(|ask| ask.on_rival());
                ReConfigResult::InProgress
            }
            None => {
                self.taken_up = Some(sequence);
                self.request(streams, Some(sequence), halves.out);
                return None;
            }
        };
        Some((sequence, result))
    }

    /// Handles a retransmitted request of the peer: our request that answers it was lost, waits, or was
    /// performed.
    fn on_request_again(&mut self, sequence: u32) -> Option<Answer> {
        let is_answer = |ours: &&mut Box<OwnRequest>| ours.response_sequence == Some(sequence);
        match self.ours.as_mut().filter(is_answer) {
            None => Some((sequence, ReConfigResult::NothingToDo)),
            Some(ours) if ours.last_assigned_tsn.is_none() => {
                Some((sequence, ReConfigResult::InProgress))
            }
            Some(ours) => {
                ours.is_owed = true;
                None
            }
        }
    }

    /// Handles the peer's answer to our request.
    fn on_answer(
        &mut self,
        cx: &mut Context<'_>,
        (sequence, result): Answer,
        halves: &mut Halves<'_>,
    ) {
        let is_ours = |request: &mut Box<OwnRequest>| request.sequence == sequence;
        let Some(mut request) = self.ours.take_if(is_ours) else { return };
        if result == ReConfigResult::InProgress {
            request.is_in_progress = true;
            self.ours = Some(request);
            self.timer = Deadline::at(cx.now + halves.rto);
            return;
        }
        self.timer = Deadline::OFF;
        let performed = matches!(result, ReConfigResult::Performed | ReConfigResult::NothingToDo);
        if performed {
            halves.out.on_streams_reset(request.last_assigned_tsn.unwrap_or(0));
        }
        let queue = &mut halves.out.queue;
        if request.streams.is_empty() {
            if performed {
                queue.reset_all_mids();
            }
            queue.resume_all();
        }
        for &stream in &request.streams {
            if performed {
                queue.reset_mids(stream);
            }
            queue.resume(stream);
        }
        cx.event(Event::StreamsReset { streams: request.streams, performed });
        self.ask_on(halves.max_packet_bytes);
    }
}

/// The streams as named, sorted and without repetitions.
fn sorted(streams: impl Iterator<Item = u16>) -> Vec<u16> {
    let mut streams: Vec<u16> = streams.collect();
    streams.sort_unstable();
    streams.dedup();
    streams
}

/// The number of streams that a request can name in a packet that also has one response.
pub(super) fn max_streams(max_packet_bytes: usize) -> usize {
    let others = COMMON_HEADER_LEN + CHUNK_HEADER_LEN + RESPONSE_LEN + OUTGOING_REQUEST_LEN;
    max_packet_bytes.saturating_sub(others) / 2
}

/// Resets the peer's streams to their first sequence numbers, and processes the DATA held back until then
/// (RFC 6525 §5.2.2 E4).
fn perform(
    cx: &mut Context<'_>,
    streams: Vec<u16>,
    inbound: &mut Inbound,
) -> Result<(), DataError> {
    inbound.on_streams_reset(&streams);
    cx.event(Event::PeerResetStreams(streams));
    inbound.release_held_back(cx)
}
