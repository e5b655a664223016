//! Placeholder for the other implementations in builds without them.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use rexmit_core::{Instant, Machine, Route, Seed};

use super::{HOW_TO_BUILD, Rival, Role};
use crate::hosts::{ConnectionEvent, FragmentWatch, ReadResult, Transport, WriteResult};

/// Cannot be constructed.
#[derive(Debug)]
pub struct RivalEndpoint(Infallible);

impl RivalEndpoint {
    /// Returns an error with instructions for a build that includes them.
    ///
    /// # Errors
    /// Always.
    pub fn new(_: Rival, _: Role, _: bool, _: &Seed) -> Result<Self, String> {
        Err(HOW_TO_BUILD.to_owned())
    }

    /// As `new`.
    ///
    /// # Errors
    /// Always.
    pub fn with_transfer(_: Rival, _: Role, _: bool, _: &Seed) -> Result<Self, String> {
        Err(HOW_TO_BUILD.to_owned())
    }

    pub(super) fn fill_transfer(&mut self, _: Instant) {
        match self.0 {}
    }

    pub(super) fn take_transfer(&mut self) -> u64 {
        match self.0 {}
    }
}

impl Machine for RivalEndpoint {
    type Event = ConnectionEvent;

    fn handle_input(&mut self, _: Instant, _: Route, _: &[u8]) {
        match self.0 {}
    }

    fn handle_timeout(&mut self, _: Instant) {
        match self.0 {}
    }

    fn poll_transmit(&mut self, _: Instant, _: &mut Vec<u8>) -> Option<Route> {
        match self.0 {}
    }

    fn poll_event(&mut self) -> Option<ConnectionEvent> {
        match self.0 {}
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self.0 {}
    }
}

impl Transport for RivalEndpoint {
    type Id = ();
    type Watch = FragmentWatch;
    const IP_PROTOCOL: u8 = crate::hosts::UDP;
    const KEEPS_BOUNDARIES: bool = true;
    const WRITE_BYTES: usize = 1024;

    fn begin(&mut self, _: Instant, _: SocketAddr, _: SocketAddr) -> Option<()> {
        match self.0 {}
    }

    fn connection_event(event: &ConnectionEvent) -> Option<((), ConnectionEvent)> {
        Some(((), *event))
    }

    fn write(&mut self, _: Instant, (): (), _: &mut Bytes) -> WriteResult {
        match self.0 {}
    }

    fn read(&mut self, _: Instant, (): (), _: &mut dyn FnMut(&[u8])) -> ReadResult {
        match self.0 {}
    }

    fn finish(&mut self, _: Instant, (): ()) {
        match self.0 {}
    }

    fn abort(&mut self, _: Instant, (): ()) {
        match self.0 {}
    }
}
