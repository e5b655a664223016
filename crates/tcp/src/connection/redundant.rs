//! Mechanisms for thin streams: the calls of the application, and Nagle's algorithm.

use rexmit_recovery::ThinConfig;

use super::Connection;
use super::outbound::{GROUP, Outbound};
use crate::error::ThinError;

impl Connection {
    /// Sets the mechanisms of loss recovery while the connection is thin.
    pub(crate) fn set_thin(&mut self, thin: ThinConfig) -> Result<(), ThinError> {
        if !thin.is_valid() {
            return Err(ThinError::Invalid);
        }
        self.out.recovery.set_thin(Some(GROUP), thin).expect("group 0 exists");
        Ok(())
    }
}

impl Outbound {
    /// Whether small segments wait for outstanding data (RFC 9293 §3.7.4), given whether Nagle's algorithm `is_on`.
    pub(super) fn nagles(&self, is_on: bool) -> bool {
        // Small segments do not count: with Nagle's algorithm they might have been large.
        let has_few = || {
            let thinness = self.recovery.thinness(GROUP);
            f64::from(thinness.in_flight) <= thinness.bound
        };
        is_on && !(self.recovery.thin_config(GROUP).tcp.no_delay && has_few())
    }
}
