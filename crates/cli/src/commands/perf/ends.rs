//! The end of a load: the conditions to stop, and the messages.

use std::time::Duration;

use rexmit_perf::load::result::Sent;
use rexmit_perf::load::{Lingering, LoadError};

use crate::carry::LINGER;
use crate::failure::{Failure, Kind, Outcome};
use crate::signals::{Signals, after};

/// Waits for a signal or, if given, for `duration`.
pub(super) async fn stop_after(signals: &Signals, duration: Option<Duration>) {
    tokio::select! {
        () = signals.stop() => {}
        () = after(duration) => {}
    }
}

/// Keeps the endpoints open for a receiver that missed the last packet, and reports whether
/// everything was delivered.
pub(super) async fn end(sent: &Sent, lingering: Lingering) -> Outcome {
    lingering.linger(LINGER).await;
    if sent.undelivered > 0 || sent.broken > 0 {
        let Sent { undelivered, broken, .. } = sent;
        let message = format!(
            "{broken} connections broke, {undelivered} messages were not delivered: check that the \
             receiver is running and the network"
        );
        return Err(Failure::new(Kind::Peer, message));
    }
    Ok(())
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Bind(error) => error.into(),
            LoadError::Connect(error) => error.into(),
            LoadError::Stopped => Self::new(Kind::Interrupted, error),
            LoadError::Io(error) => error.into(),
        }
    }
}
