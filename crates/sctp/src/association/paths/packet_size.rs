//! The packet size of each path: results of its [`Discovery`] are passed to loss recovery, and its probes are
//! written here.

use std::time::Duration;

use rexmit_core::{Instant, Route};
use rexmit_recovery::{PathChange, PathState, UnitState};

use super::discovery::{Bounds, Discovery, PacketFate};
use super::heartbeat::heartbeat_info;
use crate::association::context::{Context, Recovery};
use crate::config::{AssociationConfig, PathMtuConfig, pmdcs_of};
use crate::statistics::PathMtuState;
use crate::wire::PacketWriter;

/// The shortest PROBE_TIMER; a longer RTO is used instead (RFC 8899 §5.1.1).
const MIN_PROBE_TIMER: Duration = Duration::from_secs(1);
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;

/// The packet sizes of all paths.
#[derive(Debug)]
pub(in crate::association) struct PacketSizes(Option<Box<Discoveries>>);

/// State of path MTU discovery, if it is enabled.
#[derive(Debug)]
struct Discoveries {
    config: PathMtuConfig,
    /// `max_packet_bytes`.
    base: usize,
    /// By the path's number; `None` for a path that was removed.
    paths: Vec<Option<Discovery>>,
}

impl PacketSizes {
    /// The packet sizes of paths along `routes`.
    pub(super) fn new(config: &AssociationConfig, routes: &[Route]) -> Self {
        let base = config.max_packet_bytes;
        let discoveries = |config| Box::new(Discoveries { config, base, paths: Vec::new() });
        let mut sizes = Self(config.path_mtu.clone().map(discoveries));
        (0..).zip(routes).for_each(|(path, &route)| sizes.begin(path, route));
        sizes
    }

    /// Begins the search for the packet size of a new path, or of one that now leads along `route`.
    pub(super) fn begin(&mut self, path: u8, route: Route) {
        let Some(Discoveries { config, base, paths }) = self.0.as_deref_mut() else { return };
        let path = usize::from(path);
        paths.resize(paths.len().max(path + 1), None);
        paths[path] = Some(Discovery::new(bounds(config, *base, route)));
    }

    /// Forgets `path`, which was removed.
    pub(super) fn end(&mut self, path: u8) {
        if let Some(all) = &mut self.0
            && let Some(discovery) = all.paths.get_mut(usize::from(path))
        {
            *discovery = None;
        }
    }

    /// Ends discovery on all paths.
    pub(super) fn stop(&mut self) {
        self.all_mut().for_each(Discovery::stop);
    }

    fn all(&self) -> impl Iterator<Item = &Discovery> {
        self.0.iter().flat_map(|all| &all.paths).flatten()
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Discovery> {
        self.0.iter_mut().flat_map(|all| &mut all.paths).flatten()
    }

    fn count(&self) -> u8 {
        self.0.as_ref().map_or(0, |all| all.paths.len() as u8)
    }

    fn of(&self, path: u8) -> Option<&Discovery> {
        self.0.as_ref()?.paths.get(usize::from(path))?.as_ref()
    }

    fn of_mut(&mut self, path: u8) -> Option<&mut Discovery> {
        self.0.as_mut()?.paths.get_mut(usize::from(path))?.as_mut()
    }

    /// The largest packet that may be sent over `path` now: the configured size if discovery is off.
    pub(in crate::association) fn packet_bytes(
        &self,
        config: &AssociationConfig,
        path: u8,
    ) -> usize {
        self.of(path).map_or(config.max_packet_bytes, Discovery::packet_bytes)
    }

    /// How far discovery is on `path`.
    pub(in crate::association) fn state(&self, path: u8) -> PathMtuState {
        self.of(path).map_or(PathMtuState::Off, Discovery::state)
    }

    /// A packet over `path` was full while more data waited.
    pub(in crate::association) fn want_larger(&mut self, now: Instant, path: u8) {
        if let Some(discovery) = self.of_mut(path) {
            discovery.want(now);
        }
    }

    /// Called when a packet over `path` that is larger than the base size was sent, with new data up to
    /// `tsn`.
    pub(in crate::association) fn on_large_sent(&mut self, path: u8, tsn: u64) {
        if let Some(discovery) = self.of_mut(path) {
            discovery.on_large_sent(tsn);
        }
    }

    /// The path and the size of the probe that is to be sent now. A path that does not work is not probed.
    pub(in crate::association) fn due_probe(&self, recovery: &Recovery) -> Option<(u8, usize)> {
        let works = |path: &u8| recovery.paths()[*path].reach().state() == PathState::Active;
        let size_of = |path| Some((path, self.of(path)?.due_probe()?));
        (0..self.count()).filter(works).find_map(size_of)
    }

    /// Writes a probe of `size` bytes: a HEARTBEAT, and PAD (RFC 8899 §6.2.1.2).
    pub(in crate::association) fn write_probe(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &Recovery,
        path: u8,
        size: usize,
        writer: &mut PacketWriter<'_>,
    ) {
        let rto = recovery.paths()[path].timer().rto();
        let timer = rto.max(MIN_PROBE_TIMER);
        let Some(discovery) = self.of_mut(path) else { return };
        let nonce = discovery.next_nonce(cx.around.rng.u64());
        writer.set_limit(size);
        writer.heartbeat(&heartbeat_info(nonce, path, cx.now));
        writer.pad();
        discovery.on_probe_sent(size, nonce, cx.now + timer);
    }

    /// When the next probe is lost if it is not answered; [`Instant::FAR_FUTURE`] if none is in flight.
    pub(super) fn next_deadline(&self) -> Instant {
        let deadlines = self.all().filter_map(Discovery::deadline);
        deadlines.min().unwrap_or(Instant::FAR_FUTURE)
    }

    pub(super) fn on_timeout(&mut self, cx: &mut Context<'_>, recovery: &mut Recovery) {
        if self.next_deadline() <= cx.now {
            let now = cx.now;
            self.change_all(cx, recovery, |discovery| discovery.on_timeout(now));
        }
    }

    /// Called when a HEARTBEAT ACK of `path` with this nonce arrived. Returns whether it answers a probe.
    pub(super) fn on_answered(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        path: u8,
        nonce: u64,
    ) -> bool {
        let now = cx.now;
        self.change(cx, recovery, path, |discovery| discovery.on_answered(now, nonce))
    }

    /// Called when T3-rtx of `path` has expired.
    pub(in crate::association) fn on_data_timeout(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        path: u8,
    ) {
        self.change(cx, recovery, path, |discovery| {
            discovery.on_data_timeout();
            true
        });
    }

    /// Called when chunks may have been acknowledged or declared lost, from which the fate of large packets
    /// follows.
    pub(in crate::association) fn review(&mut self, cx: &mut Context<'_>, recovery: &mut Recovery) {
        if self.all().any(Discovery::has_large) {
            for discovery in self.all_mut() {
                discovery.review(|tsn| fate_of(recovery, tsn));
            }
            self.change_all(cx, recovery, |_| ());
        }
    }

    /// Called when a router on `path` reports that its next link has this MTU. Returns whether that can be
    /// true.
    pub(in crate::association) fn on_too_big(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        path: u8,
        mtu: usize,
    ) -> bool {
        let now = cx.now;
        self.change(cx, recovery, path, |discovery| discovery.on_too_big(now, mtu))
    }

    fn change_all(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        act: impl Fn(&mut Discovery),
    ) {
        for path in 0..self.count() {
            self.change(cx, recovery, path, |discovery| {
                act(discovery);
                true
            });
        }
    }

    /// Calls the discovery of `path`, and updates loss recovery if the packet size has changed.
    fn change(
        &mut self,
        cx: &mut Context<'_>,
        recovery: &mut Recovery,
        path: u8,
        act: impl FnOnce(&mut Discovery) -> bool,
    ) -> bool {
        let Some(discovery) = self.of_mut(path) else { return false };
        let outcome = act(discovery);
        let packet = pmdcs_of(discovery.packet_bytes());
        if recovery.paths()[path].window().packet() != u64::from(packet) {
            let change = PathChange::Resized { packet };
            recovery.change_path(cx.now, path, change, &mut cx.tracer());
        }
        outcome
    }
}

/// The bounds of a path along `route`.
fn bounds(config: &PathMtuConfig, base: usize, route: Route) -> Bounds {
    let ip = if route.remote.is_ipv4() { IPV4_BYTES } else { IPV6_BYTES };
    // Port 0 stands for SCTP directly over IP.
    let udp = if route.remote.port() == 0 { 0 } else { UDP_BYTES };
    Bounds::new(config, base, ip + udp)
}

/// The fate of the packet in which `tsn` was first sent.
fn fate_of(recovery: &Recovery, tsn: u64) -> PacketFate {
    let Some(unit) = recovery.outstanding().unit(tsn) else { return PacketFate::Delivered };
    match unit.state() {
        UnitState::Lost(_) => PacketFate::Lost,
        UnitState::Abandoned => PacketFate::Unknown,
        _ if unit.transmissions() > 1 || unit.was_copied() => PacketFate::Unknown,
        UnitState::InFlight => PacketFate::InFlight,
        UnitState::Acknowledged => PacketFate::Delivered,
    }
}
