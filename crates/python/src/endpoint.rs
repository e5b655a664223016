//! The class `Endpoint`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyList, PyString};
use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_dtls::{Encryption, MaybeEncrypted};
use rexmit_sctp::{
    AssociationConfig, AssociationId, EndpointConfig, Event, OutboundMessage, Reliability,
};

use crate::convert::{
    Real, Whole, address, address_to_python, deadline, duration, instant, number, payload, seconds,
    whole,
};
use crate::errors::guarded;
use crate::identity::{Identity, Trust, random};
use crate::{config, errors, events, statistics};

/// State that one thread at a time changes.
struct State {
    sctp: MaybeEncrypted,
    /// The latest time of a call: time does not go back.
    now: Instant,
    packet: Vec<u8>,
    /// A call panicked; its work may be incomplete.
    is_broken: bool,
}

/// SCTP over UDP without I/O, encrypted by DTLS 1.3: datagrams, events and time go in and out by calls.
///
/// Times are seconds of one clock of the caller, such as ``time.monotonic()``, as `float` from 0 to 9e9; they do not go back.
/// Addresses are tuples as `socket` has them: ``(host, port)``, or ``(host, port, flow information, scope)`` for IPv6, with a
/// numeric host. Any thread may call; one call at a time changes the endpoint. Every call of a process that was forked from the one
/// that made it is a `RuntimeError`, and every call after an `InternalError` another one.
///
/// Parameters
/// ----------
/// profile : str, optional
///     The recovery profile, one of `rexmit.PROFILES`; ``"interactive"`` unless given.
/// trust : Trust or str
///     The peers with which it communicates, or the fingerprint of the only one.
/// identity : Identity, optional
///     The certificate that it shows, and its key; a new one unless given.
/// port : int
///     The SCTP port of this endpoint, from 0 to 65535; it is inside of the UDP payload.
/// accept : bool
///     Whether peers may begin associations.
/// max_associations : int
///     The most associations at a time; further ones are refused.
/// config : Config, optional
///     Settings of every association.
/// seed : bytes, optional
///     32 bytes from which all random numbers are derived, of the operating system unless given. The keys of DTLS are not derived from it.
///
/// Raises
/// ------
/// ValueError
///     A number is out of range, or the settings contradict each other. An unknown profile is an `UnknownProfileError`, whose text
///     has the nearest name.
/// TypeError
///     A value is not of its type.
#[pyclass(frozen, module = "rexmit")]
pub(crate) struct Endpoint {
    state: Mutex<State>,
    /// The process that made it. After a fork two would send with the same keys and sequence numbers.
    process: u32,
    association: Arc<AssociationConfig>,
}

fn call<R>(
    mut state: MutexGuard<'_, State>,
    act: impl FnOnce(&mut State) -> R,
) -> Result<R, &'static str> {
    if state.is_broken {
        return Err("an earlier call failed by a defect of rexmit: make another endpoint");
    }
    let result = catch_unwind(AssertUnwindSafe(|| act(&mut state)));
    state.is_broken = result.is_err();
    result.map_err(|_| errors::DEFECT)
}

impl Endpoint {
    /// Refuses calls of a process forked from the one that made the endpoint; in it, another thread may hold the lock for ever.
    fn check_process(&self) -> PyResult<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let text = format!(
            "this endpoint belongs to process {}, from which this one was forked: connect, or make an endpoint, here",
            self.process
        );
        Err(PyRuntimeError::new_err(text))
    }

    /// Runs a short call.
    fn with<R>(&self, py: Python<'_>, act: impl FnOnce(&mut State) -> R) -> PyResult<R> {
        self.check_process()?;
        let state = self.state.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        call(state, act).map_err(errors::InternalError::new_err)
    }

    /// The same at `now`, a time of the caller.
    fn at<R>(
        &self,
        py: Python<'_>,
        now: Real,
        act: impl FnOnce(&mut State, Instant) -> R,
    ) -> PyResult<R> {
        let now = instant(now)?;
        self.with(py, |state| {
            state.now = state.now.max(now);
            act(state, state.now)
        })
    }

    /// Runs a call that may take long, during which other threads run Python.
    fn detached<R: Send>(
        &self,
        py: Python<'_>,
        now: Real,
        act: impl FnOnce(&mut State, Instant) -> R + Send,
    ) -> PyResult<R> {
        self.check_process()?;
        let now = instant(now)?;
        let result = py.detach(|| {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            call(state, |state| {
                state.now = state.now.max(now);
                act(state, state.now)
            })
        });
        result.map_err(errors::InternalError::new_err)
    }

    /// The same for an association that has to be there.
    fn of<R>(
        &self,
        py: Python<'_>,
        association: Whole,
        now: Real,
        act: impl FnOnce(&mut State, Instant, AssociationId) -> R,
    ) -> PyResult<R> {
        let id = id(association)?;
        let found = self.at(py, now, |state, now| {
            state.sctp.paths(id).is_some().then(|| act(state, now, id))
        })?;
        found.ok_or_else(errors::no_association)
    }
}

/// The number of an association.
fn id(association: Whole) -> PyResult<AssociationId> {
    number("association", association.0).map(AssociationId::from_bits)
}

fn seed(bytes: Option<&[u8]>) -> PyResult<Seed> {
    let Some(bytes) = bytes else { return random() };
    let text = format!("seed has {} bytes; it must have 32, or be None", bytes.len());
    bytes.try_into().map(Seed::from_bytes).map_err(|_| PyValueError::new_err(text))
}

/// Settings of an endpoint, encrypted or not.
struct Settings<'a, 'py> {
    profile: Option<Bound<'py, PyAny>>,
    port: i128,
    accept: bool,
    max_associations: i128,
    config: Option<&'a Bound<'py, PyAny>>,
    seed: Option<&'a [u8]>,
}

impl Settings<'_, '_> {
    fn endpoint(self, py: Python<'_>, encryption: Option<Encryption>) -> PyResult<Endpoint> {
        let profile = self.profile;
        let profile = profile.unwrap_or_else(|| PyString::new(py, "interactive").into_any());
        let association = Arc::new(config::association(&profile, self.config)?);
        let max_associations = number::<usize>("max_associations", self.max_associations)?;
        let config = EndpointConfig::default()
            .port(number("port", self.port)?)
            .accept(self.accept)
            .max_associations(max_associations)
            .association(Arc::clone(&association));
        // A connection outlives its associations by a few seconds, and must not keep others out.
        let encryption = encryption.map(|it| {
            let max_connections = it.max_connections.max(max_associations);
            it.max_connections(max_connections)
        });
        let sctp = MaybeEncrypted::new(config, encryption, &seed(self.seed)?);
        let sctp = sctp.map_err(|error| errors::config(&error))?;
        let state = State { sctp, now: Instant::ZERO, packet: Vec::new(), is_broken: false };
        Ok(Endpoint { state: Mutex::new(state), process: std::process::id(), association })
    }
}

fn reliability(lifetime: Option<Real>, retransmissions: Option<Whole>) -> PyResult<Reliability> {
    match (lifetime, retransmissions) {
        (None, None) => Ok(Reliability::Full),
        (Some(seconds), None) => Ok(Reliability::Timed(duration("lifetime", seconds)?)),
        (None, Some(count)) => {
            number("max_retransmissions", count.0).map(Reliability::MaxRetransmissions)
        }
        (Some(_), Some(_)) => {
            Err(PyValueError::new_err("give a lifetime or max_retransmissions, not both"))
        }
    }
}

fn route(local: &Bound<'_, PyAny>, remote: &Bound<'_, PyAny>) -> PyResult<Route> {
    let route = Route { local: address("local", local)?, remote: address("remote", remote)? };
    if route.local.is_ipv4() != route.remote.is_ipv4() {
        let text = "local and remote must both be IPv4, or both be IPv6";
        return Err(PyValueError::new_err(text));
    }
    Ok(route)
}

#[pymethods]
impl Endpoint {
    #[new]
    #[pyo3(signature = (profile = None, *, trust, identity = None, port = 5000, accept = false, max_associations = 200_000, config = None, seed = None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        profile: Option<Bound<'_, PyAny>>,
        trust: &Bound<'_, PyAny>,
        identity: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = whole)] port: i128,
        accept: bool,
        #[pyo3(from_py_with = whole)] max_associations: i128,
        config: Option<&Bound<'_, PyAny>>,
        seed: Option<&[u8]>,
    ) -> PyResult<Self> {
        guarded(|| {
            let trust = Trust::of(trust)?;
            let encryption = Encryption::new(Identity::of(identity)?, trust);
            let settings = Settings { profile, port, accept, max_associations, config, seed };
            settings.endpoint(py, Some(encryption))
        })
    }

    /// An endpoint that does not encrypt: anybody on the way can read and change what it sends.
    ///
    /// Parameters
    /// ----------
    /// profile : str, optional
    ///     The recovery profile, one of `rexmit.PROFILES`; ``"interactive"`` unless given.
    /// port : int
    ///     The SCTP port of this endpoint, from 0 to 65535; it is inside of the UDP payload.
    /// accept : bool
    ///     Whether peers may begin associations.
    /// max_associations : int
    ///     The most associations at a time; further ones are refused.
    /// config : Config, optional
    ///     Settings of every association.
    /// seed : bytes, optional
    ///     32 bytes from which all random numbers are derived, to repeat a run; of the operating system unless given.
    ///
    /// Returns
    /// -------
    /// Endpoint
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     A number is out of range, or the settings contradict each other. An unknown profile is an `UnknownProfileError`, whose text
    ///     has the nearest name.
    /// TypeError
    ///     A value is not of its type.
    #[staticmethod]
    #[pyo3(signature = (profile = None, *, port = 5000, accept = false, max_associations = 200_000, config = None, seed = None))]
    fn unencrypted(
        py: Python<'_>,
        profile: Option<Bound<'_, PyAny>>,
        #[pyo3(from_py_with = whole)] port: i128,
        accept: bool,
        #[pyo3(from_py_with = whole)] max_associations: i128,
        config: Option<&Bound<'_, PyAny>>,
        seed: Option<&[u8]>,
    ) -> PyResult<Self> {
        let settings = Settings { profile, port, accept, max_associations, config, seed };
        guarded(|| settings.endpoint(py, None))
    }

    /// The fingerprint by which peers authenticate this endpoint; `None` if it does not encrypt.
    #[getter]
    fn fingerprint(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.with(py, |state| state.sctp.fingerprint())?.map(|it| it.to_string()))
    }

    /// Begins an association with a peer, with a DTLS handshake before if the endpoint encrypts.
    ///
    /// Parameters
    /// ----------
    /// local : tuple
    ///     The address of this side, from which datagrams are sent.
    /// remote : tuple
    ///     The address of the peer; both are IPv4, or both IPv6.
    /// now : float
    ///     The time in seconds.
    /// port : int
    ///     The SCTP port of the peer, from 0 to 65535.
    ///
    /// Returns
    /// -------
    /// int
    ///     The number of the association, which events and other calls have. The event `Connected` says that it is established,
    ///     `Closed` that it failed.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     An address, a port or the time is not valid.
    /// RexmitError
    ///     There is an association with that peer already, or the endpoint has `max_associations`.
    #[pyo3(signature = (local, remote, now, *, port = 5000))]
    fn connect(
        &self,
        py: Python<'_>,
        local: &Bound<'_, PyAny>,
        remote: &Bound<'_, PyAny>,
        now: Real,
        #[pyo3(from_py_with = whole)] port: i128,
    ) -> PyResult<u64> {
        let route = route(local, remote)?;
        if route.remote.port() == 0 {
            return Err(PyValueError::new_err("the UDP port of remote is 0"));
        }
        let port = number("port", port)?;
        let config = &self.association;
        let id = self.at(py, now, |state, now| state.sctp.connect(now, &[route], port, config))?;
        id.map(AssociationId::to_bits).map_err(|error| errors::connect(&error))
    }

    /// Processes a datagram that has arrived. Invalid ones are dropped.
    ///
    /// Parameters
    /// ----------
    /// data : bytes
    ///     The payload of the UDP datagram.
    /// local : tuple
    ///     The address at which it arrived.
    /// remote : tuple
    ///     The address from which it came.
    /// now : float
    ///     The time in seconds.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     An address or the time is not valid.
    fn receive_datagram(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyBytes>,
        local: &Bound<'_, PyAny>,
        remote: &Bound<'_, PyAny>,
        now: Real,
    ) -> PyResult<()> {
        let route = route(local, remote)?;
        let data = data.as_bytes();
        self.at(py, now, |state, now| {
            // Nothing can be answered to port 0.
            if route.remote.port() != 0 {
                state.sctp.handle_input(now, route, data);
            }
        })
    }

    /// Processes datagrams that have arrived, in their order; other threads run Python meanwhile.
    ///
    /// Parameters
    /// ----------
    /// datagrams : sequence of (bytes, tuple)
    ///     Their payloads, each with the address from which it came.
    /// local : tuple
    ///     The address at which they arrived.
    /// now : float
    ///     The time in seconds.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     An address or the time is not valid; none of them was processed.
    fn receive_datagrams(
        &self,
        py: Python<'_>,
        datagrams: Vec<(PyBackedBytes, Bound<'_, PyAny>)>,
        local: &Bound<'_, PyAny>,
        now: Real,
    ) -> PyResult<()> {
        let mut last: Option<(Bound<'_, PyAny>, Route)> = None;
        let mut batch = Vec::with_capacity(datagrams.len());
        for (data, remote) in datagrams {
            let known = last.as_ref().filter(|(object, _)| object.is(&remote));
            let route = known.map_or_else(|| route(local, &remote), |(_, route)| Ok(*route))?;
            if route.remote.port() != 0 {
                batch.push((data, route));
            }
            last = Some((remote, route));
        }
        // The bytes are freed with the interpreter attached.
        let batch = &batch;
        self.detached(py, now, move |state, now| {
            for (data, route) in batch {
                state.sctp.handle_input(now, *route, data);
            }
        })
    }

    /// Takes the datagrams that are to be sent now.
    ///
    /// Parameters
    /// ----------
    /// now : float
    ///     The time in seconds.
    ///
    /// Returns
    /// -------
    /// list of (bytes, tuple, tuple)
    ///     The payload of each, the address from which to send it, and that of the peer. Empty if there is nothing to send.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The time is not valid.
    fn datagrams_to_send<'py>(&self, py: Python<'py>, now: Real) -> PyResult<Bound<'py, PyList>> {
        let (bytes, packets) = self.detached(py, now, |state, now| {
            let (mut bytes, mut packets) = (Vec::new(), Vec::new());
            while let Some(route) = state.sctp.poll_transmit(now, &mut state.packet) {
                let from = bytes.len();
                bytes.extend_from_slice(&state.packet);
                packets.push((from..bytes.len(), route));
            }
            (bytes, packets)
        })?;
        let list = PyList::empty(py);
        let mut last: Option<(Route, Bound<'py, PyAny>, Bound<'py, PyAny>)> = None;
        for (range, route) in packets {
            let (_, local, remote) = match last.take().filter(|(same, ..)| *same == route) {
                Some(same) => last.insert(same),
                None => last.insert((
                    route,
                    address_to_python(py, route.local)?,
                    address_to_python(py, route.remote)?,
                )),
            };
            list.append((PyBytes::new(py, &bytes[range]), &*local, &*remote))?;
        }
        Ok(list)
    }

    /// Takes the oldest event.
    ///
    /// Returns
    /// -------
    /// tuple of (int, Event) or None
    ///     The number of the association, and the event; ``None`` if no event waits.
    fn next_event<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let poll = |state: &mut State| {
            let (id, event) = state.sctp.poll_event()?;
            let Event::Connected { peer, .. } = event else { return Some((id, event, None)) };
            let fingerprint = state.sctp.peer(peer);
            Some((id, event, fingerprint))
        };
        while let Some((id, event, fingerprint)) = self.with(py, poll)? {
            if let Some(event) = events::event(py, id, &event, fingerprint)? {
                return Ok(Some(event.into_any()));
            }
        }
        Ok(None)
    }

    /// The time at which `handle_timer` is to be called. Every other call may change it.
    ///
    /// Returns
    /// -------
    /// float or None
    ///     The time in seconds; ``None`` if no timer runs.
    fn get_timer(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.with(py, |state| state.sctp.poll_timeout())?.map(seconds))
    }

    /// Runs the timers that have expired: call it at the time of `get_timer`. An early call does nothing.
    ///
    /// Parameters
    /// ----------
    /// now : float
    ///     The time in seconds.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The time is not valid.
    fn handle_timer(&self, py: Python<'_>, now: Real) -> PyResult<()> {
        self.detached(py, now, |state, now| state.sctp.handle_timeout(now))
    }

    /// Accepts a message for sending.
    ///
    /// Parameters
    /// ----------
    /// association : int
    ///     Its number.
    /// data : bytes, bytearray or memoryview
    ///     The content, at least one byte. It is copied.
    /// now : float
    ///     The time in seconds.
    /// stream : int
    ///     The outgoing stream, from 0.
    /// ordered : bool
    ///     Whether it is delivered in the order of the stream, or as soon as it is complete.
    /// lifetime : float, optional
    ///     Seconds after which the message is abandoned (event `MessageFailed`).
    /// max_retransmissions : int, optional
    ///     The number of retransmissions of a chunk after which the message is abandoned; not together with `lifetime`.
    /// ppid : int
    ///     Payload protocol identifier for the peer's application, 32 bits.
    /// immediate : bool
    ///     Ask the peer to acknowledge without delay (RFC 7053).
    /// within : float, optional
    ///     A deadline: the seconds within which it should arrive; together with `probability`.
    /// probability : float, optional
    ///     The probability with which it should arrive in time, above 0 and below 1.
    ///
    /// Returns
    /// -------
    /// int
    ///     The number of the message, which events about it have.
    ///
    /// Raises
    /// ------
    /// BufferFullError
    ///     There is no room in the send buffer: wait for the event `Writable`.
    /// ClosedError
    ///     The association is closing, has ended, or never was.
    /// ValueError
    ///     The message is empty or larger than the send buffer, the stream does not exist, or a number is out of range.
    /// TypeError
    ///     The content is not of bytes.
    #[pyo3(signature = (association, data, now, *, stream = 0, ordered = true, lifetime = None, max_retransmissions = None, ppid = 0, immediate = false, within = None, probability = None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn send(
        &self,
        py: Python<'_>,
        association: Whole,
        data: &Bound<'_, PyAny>,
        now: Real,
        #[pyo3(from_py_with = whole)] stream: i128,
        ordered: bool,
        lifetime: Option<Real>,
        max_retransmissions: Option<Whole>,
        #[pyo3(from_py_with = whole)] ppid: i128,
        immediate: bool,
        within: Option<Real>,
        probability: Option<Real>,
    ) -> PyResult<u64> {
        let message = OutboundMessage::new(number("stream", stream)?, payload(data)?)
            .ppid(number("ppid", ppid)?)
            .unordered(!ordered)
            .immediate(immediate)
            .reliability(reliability(lifetime, max_retransmissions)?)
            .deadline(deadline(within, probability)?);
        let id = id(association)?;
        let sent = self.at(py, now, |state, now| state.sctp.send(now, id, message))?;
        sent.map(|message| message.0).map_err(errors::send)
    }

    /// Takes the oldest complete message of the peer, which makes room in the receive buffer.
    ///
    /// Parameters
    /// ----------
    /// association : int
    ///     Its number.
    /// now : float
    ///     The time in seconds.
    ///
    /// Returns
    /// -------
    /// Message or None
    ///     ``None`` if nothing waits, or the association has ended.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     The time is not valid.
    fn receive<'py>(
        &self,
        py: Python<'py>,
        association: Whole,
        now: Real,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let id = id(association)?;
        let message = self.at(py, now, |state, now| state.sctp.receive(now, id))?;
        message.map(|message| events::message(py, &message)).transpose()
    }

    /// Ends the association gracefully: messages accepted on both sides are delivered, then the event `Closed` is reported.
    ///
    /// Parameters
    /// ----------
    /// association : int
    ///     Its number.
    /// now : float
    ///     The time in seconds.
    ///
    /// Raises
    /// ------
    /// ClosedError
    ///     The association has ended, or never was.
    /// ValueError
    ///     The time is not valid.
    fn shutdown(&self, py: Python<'_>, association: Whole, now: Real) -> PyResult<()> {
        self.of(py, association, now, |state, now, id| state.sctp.shutdown(now, id))
    }

    /// Ends the association at once, and tells the peer: undelivered messages are lost.
    ///
    /// Parameters
    /// ----------
    /// association : int
    ///     Its number.
    /// now : float
    ///     The time in seconds.
    /// reason : bytes, optional
    ///     For the peer, whose event `Closed` has it as `detail`.
    ///
    /// Raises
    /// ------
    /// ClosedError
    ///     The association has ended, or never was.
    /// ValueError
    ///     The time is not valid.
    #[pyo3(signature = (association, now, reason = None))]
    fn abort(
        &self,
        py: Python<'_>,
        association: Whole,
        now: Real,
        reason: Option<&[u8]>,
    ) -> PyResult<()> {
        let reason = reason.unwrap_or_default();
        self.of(py, association, now, |state, now, id| state.sctp.abort(now, id, reason))
    }

    /// Resets outgoing streams to sequence number 0 (RFC 6525); the event `StreamsReset` has the result.
    ///
    /// Parameters
    /// ----------
    /// association : int
    ///     Its number.
    /// now : float
    ///     The time in seconds.
    /// streams : sequence of int, optional
    ///     Numbers of outgoing streams; all of them unless given.
    ///
    /// Raises
    /// ------
    /// ClosedError
    ///     The association has ended, or never was.
    /// ValueError
    ///     A stream does not exist, or there are too many.
    /// RexmitError
    ///     The peer does not support it, or a reset is in progress.
    #[pyo3(signature = (association, now, streams = None))]
    fn reset_streams(
        &self,
        py: Python<'_>,
        association: Whole,
        now: Real,
        streams: Option<Vec<Whole>>,
    ) -> PyResult<()> {
        let streams = streams.unwrap_or_default();
        let checked = streams.iter().map(|&stream| number("stream", stream.0));
        let streams = checked.collect::<PyResult<Vec<u16>>>()?;
        let act = |state: &mut State, now, id| state.sctp.reset_streams(now, id, &streams);
        self.of(py, association, now, act)?.map_err(|error| errors::reset(&error))
    }

    /// Sets the priority of an outgoing stream (RFC 8260 §3), for the schedulers that have priorities or weights.
    ///
    /// Parameters
    /// ----------
    /// association : int
    ///     Its number.
    /// now : float
    ///     The time in seconds.
    /// stream : int
    ///     The outgoing stream, from 0.
    /// priority : int
    ///     From 0 to 65535; the higher is sent first.
    ///
    /// Raises
    /// ------
    /// ClosedError
    ///     The association has ended, or never was.
    /// ValueError
    ///     The stream does not exist, or a number is out of range.
    fn set_priority(
        &self,
        py: Python<'_>,
        association: Whole,
        now: Real,
        stream: Whole,
        priority: Whole,
    ) -> PyResult<()> {
        let stream = number("stream", stream.0)?;
        let priority = number("priority", priority.0)?;
        let id = id(association)?;
        let set = self.at(py, now, |state, now| state.sctp.set_priority(now, id, stream, priority));
        set?.map_err(|error| errors::priority(&error))
    }

    /// Chooses the rule by which streams take turns from now on (RFC 8260 §3).
    ///
    /// Parameters
    /// ----------
    /// association : int
    ///     Its number.
    /// now : float
    ///     The time in seconds.
    /// scheduling : str
    ///     Such as ``"priority"``; `rexmit.Config` has the names.
    ///
    /// Raises
    /// ------
    /// ClosedError
    ///     The association has ended, or never was.
    /// ValueError
    ///     There is no scheduling of that name; the text has all.
    fn set_scheduling(
        &self,
        py: Python<'_>,
        association: Whole,
        now: Real,
        scheduling: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let scheduling = config::scheduling(scheduling)?;
        let id = id(association)?;
        let set = self.at(py, now, |state, now| state.sctp.set_scheduling(now, id, scheduling));
        set?.map_err(|error| errors::priority(&error))
    }

    /// Counters of an association since its begin, and its paths.
    ///
    /// Parameters
    /// ----------
    /// association : int
    ///     Its number.
    ///
    /// Returns
    /// -------
    /// Statistics
    ///     Packets and bytes; round-trip times in seconds.
    ///
    /// Raises
    /// ------
    /// ClosedError
    ///     The association has ended, or never was.
    fn statistics<'py>(&self, py: Python<'py>, association: Whole) -> PyResult<Bound<'py, PyAny>> {
        let id = id(association)?;
        let all = self.with(py, |state| state.sctp.statistics(id))?;
        statistics::association(py, &all.ok_or_else(errors::no_association)?)
    }

    /// The number of associations.
    #[getter]
    fn association_count(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |state| state.sctp.association_count())
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("an Endpoint cannot be pickled"))
    }
}
