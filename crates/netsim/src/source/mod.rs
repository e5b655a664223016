//! What sends: when, and how many bytes.
//!
//! Every [`Source`] is an iterator, so that any transport can drive it: a message for
//! each item over SCTP, a write over TCP, a connection per item for web clients. For UDP the
//! machines are here: [`UdpSender`] carries any source, [`UdpSink`] measures what arrives.
//!
//! | source | what it yields |
//! |---|---|
//! | [`Intervals`] | messages of one size, at even or random intervals |
//! | [`ConstantRate`] | packets of one size at one rate |
//! | [`VariableRate`] | the frames of a video, whole or while a burst lasts |
//! | [`WebClient`] | the files that one client asks for |
//! | [`Application`] | the messages of an application of which a trace was published |
//! | [`Replay`](crate::traffic::trace::Replay) | the messages of a trace or capture |
//!
//! Those without an end are ended by the iterator's own means:
//!
//! ```
//! use rexmit_core::{Instant, Seed};
//! use rexmit_netsim::source::Application;
//! let end = Instant::from_millis(60_000);
//! let game = Application::AnarchyOnline.source(Instant::ZERO, &Seed::from_u64(1));
//! let bytes: usize = game.take_while(|&(at, _)| at < end).map(|(_, bytes)| bytes).sum();
//! assert!(bytes > 0);
//! ```

mod application;
mod constant;
mod curve;
mod interval;
mod sink;
mod udp;
mod variable;
mod web;

use rexmit_core::Instant;
use thiserror::Error;

pub use application::{Application, ApplicationModel, ApplicationSource};
pub use constant::{ConstantRate, ConstantRateSource};
pub use interval::{IntervalSource, Intervals};
pub use sink::{DelayStats, SinkStats, UdpSink};
pub use udp::{HEADER_BYTES, UdpSender};
pub use variable::{Bursts, VariableRate, VariableRateSource};
pub use web::{WebClient, WebClientSource};

/// The traffic of an application: the time and the bytes of each message, in the order of time.
///
/// A name for what is an iterator anyway. None of the sources here allocates per message.
pub trait Source: Iterator<Item = (Instant, usize)> {}

impl<S: Iterator<Item = (Instant, usize)>> Source for S {}

/// Why a source cannot be as described.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum SourceError {
    /// Packets, frames or files without bytes.
    #[error("{0} without a byte")]
    Nothing(&'static str),
    /// An interval of no time would never end.
    #[error("the {0} takes no time")]
    NoTime(&'static str),
    /// A value outside of what makes sense.
    #[error("{field} is {value}, but must be {range}")]
    OutOfRange {
        /// What it is.
        field: &'static str,
        /// What it was.
        value: f64,
        /// The allowed values.
        range: &'static str,
    },
    /// No distribution between these bounds has this mean.
    #[error("a mean of {mean} is out of reach between {min} and {max}")]
    MeanOutOfReach {
        /// The mean.
        mean: f64,
        /// The least value.
        min: f64,
        /// The largest value.
        max: f64,
    },
}
