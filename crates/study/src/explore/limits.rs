//! The limits of the settings, which the page and the server apply.

use serde::Serialize;

use super::settings::Settings;

/// The largest number of messages in all runs of one question together, which take some seconds.
pub const MAX_MESSAGES: u64 = 2_000_000;
/// The most bytes of payload of all runs of one question together, for the same reason.
pub const MAX_PAYLOAD_BYTES: u64 = 4_000_000_000;
/// The most runs of one system.
pub const MAX_SEEDS: u32 = 20;

/// A setting that is a number.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Control {
    /// The setting's name in [`Settings`].
    pub name: &'static str,
    /// The setting's label.
    pub label: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// The effect of the setting, and the meaning of zero.
    pub about: &'static str,
    /// The least value.
    pub least: f64,
    /// The largest value.
    pub most: f64,
    /// Values are multiples of this.
    pub step: f64,
    /// The text shown instead of the unit if the value is zero; `None`: the unit.
    pub zero: Option<&'static str>,
    /// The least value above zero of a slider on a logarithmic scale; `None`: the scale is linear.
    pub log_from: Option<f64>,
    #[serde(skip)]
    pub(super) value: fn(&Settings) -> f64,
}

/// The settings that are numbers, in the order of the page.
pub const CONTROLS: [Control; 9] = [
    Control {
        name: "interval_ms",
        label: "Interval",
        unit: "ms",
        about: "time between two messages",
        least: 1.0,
        most: 10_000.0,
        step: 0.001,
        zero: None,
        log_from: Some(1.0),
        value: |it| it.interval_ms,
    },
    Control {
        name: "size",
        label: "Size",
        unit: "bytes",
        about: "payload of a message",
        least: 1.0,
        most: 20_000.0,
        step: 1.0,
        zero: None,
        log_from: Some(1.0),
        value: |it| f64::from(it.size),
    },
    Control {
        name: "rtt_ms",
        label: "Round-trip time",
        unit: "ms",
        about: "half of it in each direction",
        least: 1.0,
        most: 2000.0,
        step: 0.001,
        zero: None,
        log_from: Some(1.0),
        value: |it| it.rtt_ms,
    },
    Control {
        name: "jitter_ms",
        label: "Jitter",
        unit: "ms",
        about: "standard deviation of the delay of each direction, without reordering",
        least: 0.0,
        most: 500.0,
        step: 0.001,
        zero: None,
        log_from: Some(0.5),
        value: |it| it.jitter_ms,
    },
    Control {
        name: "loss_percent",
        label: "Loss",
        unit: "%",
        about: "packets lost in each direction",
        least: 0.0,
        most: 50.0,
        step: 0.001,
        zero: None,
        log_from: Some(0.01),
        value: |it| it.loss_percent,
    },
    Control {
        name: "burst_ms",
        label: "Bursts of loss",
        unit: "ms",
        about: "mean time in which every packet is lost; 0: losses are independent",
        least: 0.0,
        most: 5000.0,
        step: 0.001,
        zero: None,
        log_from: Some(1.0),
        value: |it| it.burst_ms,
    },
    Control {
        name: "rate_kbit",
        label: "Rate",
        unit: "kbit/s",
        about: "rate of each direction; 0: unlimited",
        least: 0.0,
        most: 1_000_000.0,
        step: 1.0,
        zero: Some("unlimited"),
        log_from: Some(8.0),
        value: |it| f64::from(it.rate_kbit),
    },
    Control {
        name: "queue",
        label: "Queue",
        unit: "packets",
        about: "packets that may wait for the rate",
        least: 1.0,
        most: 10_000.0,
        step: 1.0,
        zero: None,
        log_from: Some(1.0),
        value: |it| f64::from(it.queue),
    },
    Control {
        name: "duration_s",
        label: "Duration",
        unit: "s",
        about: "simulated time in which messages are sent",
        least: 5.0,
        most: 3600.0,
        step: 1.0,
        zero: None,
        log_from: Some(5.0),
        value: |it| f64::from(it.duration_s),
    },
];
