//! Our requests that the peer resets its outgoing streams (RFC 6525 §5.1.3), on which a message was dropped. One is in
//! progress at a time; streams that are dropped meanwhile wait for the next.

use crate::wire::ReConfigResult;

/// The streams whose reset is to be requested, and the request in progress.
#[derive(Debug, Default)]
pub(super) struct Ask {
    request: Option<Request>,
    /// Streams of the next request, in order.
    waiting: Vec<u16>,
}

#[derive(Debug)]
struct Request {
    sequence: u32,
    streams: Vec<u16>,
    is_owed: bool,
    /// Whether the peer answered "in progress", which is no error.
    is_in_progress: bool,
    /// Whether the peer has meanwhile requested a reset of our streams, which waits for this request.
    has_rival: bool,
}

impl Ask {
    /// Adds a stream to those of the next request, unless the request in progress names it.
    pub(super) fn add(&mut self, stream: u16) {
        let is_asked = |request: &Request| request.streams.binary_search(&stream).is_ok();
        if !self.request.as_ref().is_some_and(is_asked)
            && let Err(at) = self.waiting.binary_search(&stream)
        {
            self.waiting.insert(at, stream);
        }
    }

    pub(super) const fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) const fn is_in_progress(&self) -> bool {
        self.request.is_some()
    }

    /// Begins a request for up to `limit` of the waiting streams.
    pub(super) fn begin(&mut self, sequence: u32, limit: usize) {
        let streams = self.waiting.drain(..self.waiting.len().min(limit)).collect();
        self.request = Some(Request {
            sequence,
            streams,
            is_owed: true,
            is_in_progress: false,
            has_rival: false,
        });
    }

    /// The request that is to be sent: its sequence number and streams.
    pub(super) fn owed(&self) -> Option<(u32, &[u16])> {
        let request = self.request.as_ref().filter(|request| request.is_owed)?;
        Some((request.sequence, &request.streams))
    }

    pub(super) fn on_sent(&mut self) {
        if let Some(request) = &mut self.request {
            request.is_owed = false;
        }
    }

    /// Called when the response timer expired: repeats the request. Returns whether that counts as an error; `None`
    /// without a request.
    pub(super) fn on_timeout(&mut self) -> Option<bool> {
        let request = self.request.as_mut()?;
        request.is_owed = true;
        Some(!request.is_in_progress)
    }

    /// Called when the peer's request has to wait for ours.
    pub(super) fn on_rival(&mut self) {
        if let Some(request) = &mut self.request {
            request.has_rival = true;
        }
    }

    /// Whether `streams` has all streams of the request in progress; an empty list means all streams.
    pub(super) fn is_covered_by(&self, streams: &[u16]) -> bool {
        let has = |stream: &u16| streams.binary_search(stream).is_ok();
        self.request
            .as_ref()
            .is_some_and(|request| streams.is_empty() || request.streams.iter().all(has))
    }

    /// Processes the peer's answer to the request with this sequence number: a result, or `None` for its own request
    /// to reset these streams. Returns whether the request has ended, or `None` if it is not ours.
    ///
    /// If each side waits for the other ("in progress"), both requests would wait for ever: ours ends.
    pub(super) fn on_answer(
        &mut self,
        sequence: u32,
        result: Option<ReConfigResult>,
    ) -> Option<bool> {
        let request = self.request.as_mut().filter(|request| request.sequence == sequence)?;
        if result == Some(ReConfigResult::InProgress) && !request.has_rival {
            request.is_in_progress = true;
            return Some(false);
        }
        self.request = None;
        Some(true)
    }
}
