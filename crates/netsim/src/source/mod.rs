//! Traffic sources: the times and sizes of messages.
//!
//! Every [`Source`] is an iterator that any transport can use: each item is a message over SCTP, a
//! write over TCP, or a connection of a web client. For UDP, this module has the machines:
//! [`UdpSender`] sends the messages of any source, [`UdpSink`] measures the arrivals.
//!
//! | source | items |
//! |---|---|
//! | [`Intervals`] | messages of one size, at constant or random intervals |
//! | [`ConstantRate`] | packets of one size at one rate |
//! | [`VariableRate`] | the frames of a video, permanently or in bursts |
//! | [`WebClient`] | the files that one client requests |
//! | [`Application`] | the messages of an application of which a trace was published |
//! | [`Replay`](crate::traffic::trace::Replay) | the messages of a trace or capture |
//!
//! Endless sources are ended with iterator adapters:
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

/// The traffic of an application: the time and the size of each message, in ascending order of
/// time.
///
/// Implemented by all such iterators. None of the sources in this module allocates memory per
/// message.
pub trait Source: Iterator<Item = (Instant, usize)> {}

impl<S: Iterator<Item = (Instant, usize)>> Source for S {}

/// Why a source is invalid.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The size of packets, frames or files is zero.
    #[error("{0} must have at least one byte")]
    ZeroSize(&'static str),
    /// An interval is zero.
    #[error("the {0} is zero")]
    ZeroInterval(&'static str),
    /// A value is outside the allowed range.
    #[error("{field} is {value}, but must be {range}")]
    OutOfRange {
        /// The field's name.
        field: &'static str,
        /// The value that was given.
        value: f64,
        /// The allowed values.
        range: &'static str,
    },
    /// No distribution between these bounds has this mean.
    #[error("a mean of {mean} is impossible between {min} and {max}")]
    ImpossibleMean {
        /// The mean.
        mean: f64,
        /// The smallest value.
        min: f64,
        /// The largest value.
        max: f64,
    },
}
