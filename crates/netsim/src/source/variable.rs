//! A variable bit rate: frames of different sizes, permanently or in bursts.

use std::time::Duration;

use rexmit_core::{BitRate, Instant, Rng, Seed};

use super::SourceError;
use crate::draw::{exponential, standard_normal};

/// A variable bit rate, as of a video: a frame at fixed intervals, whose size varies.
///
/// Sizes are independent and log-normal, with the mean that gives `rate` in the long run and the
/// coefficient of variation `size_variation`. With [`Bursts`], frames are sent only while the
/// source is on. On and off times are exponential, and the initial state has the stationary
/// distribution. Frames are correspondingly larger, so that `rate` is the mean over on and off
/// times. The frame clock continues while the source is off.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VariableRate {
    /// Bits of payload per second in the long run.
    pub rate: BitRate,
    /// Time between two frames.
    pub frame_interval: Duration,
    /// Coefficient of variation of the frame sizes (standard deviation over mean); 0 for frames of
    /// equal size.
    pub size_variation: f64,
    /// On and off times; `None` if the source is always on.
    pub bursts: Option<Bursts>,
    /// Time of the first frame.
    pub start: Instant,
    /// No frame is sent from this time on.
    pub stop: Instant,
}

/// Alternating on and off times of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bursts {
    /// Mean on time.
    pub mean_on: Duration,
    /// Mean off time.
    pub mean_off: Duration,
}

impl Bursts {
    /// Bounds the work per frame, because every change of state is simulated.
    pub const MIN_MEAN: Duration = Duration::from_micros(100);
}

impl Default for VariableRate {
    /// 1 Mbit/s at 25 frames per second, always on, with a coefficient of variation of 0.5.
    fn default() -> Self {
        Self {
            rate: BitRate::new(1_000_000).expect("above zero"),
            frame_interval: Duration::from_millis(40),
            size_variation: 0.5,
            bursts: None,
            start: Instant::ZERO,
            stop: Instant::FAR_FUTURE,
        }
    }
}

impl VariableRate {
    /// The largest coefficient of variation.
    pub const MAX_VARIATION: f64 = 10.0;

    /// Mean size of a frame in bytes.
    #[must_use]
    pub fn mean_frame_bytes(&self) -> f64 {
        let bits_per_frame = self.rate.bits_per_second() as f64 * self.frame_interval.as_secs_f64();
        bits_per_frame / 8.0 / self.share_on()
    }

    /// The frames; all randomness comes from `seed`.
    ///
    /// # Errors
    /// If the mean frame size is below one byte, the frame interval is zero, the variation is not
    /// in 0 to [`MAX_VARIATION`](Self::MAX_VARIATION), or a mean on or off time is below
    /// [`Bursts::MIN_MEAN`].
    pub fn source(&self, seed: &Seed) -> Result<VariableRateSource, SourceError> {
        if self.frame_interval.is_zero() {
            return Err(SourceError::ZeroInterval("interval of frames"));
        }
        if !(0.0..=Self::MAX_VARIATION).contains(&self.size_variation) {
            let (field, value) = ("the variation of sizes", self.size_variation);
            return Err(SourceError::OutOfRange { field, value, range: "from 0 to 10" });
        }
        if let Some(Bursts { mean_on, mean_off }) = self.bursts
            && mean_on.min(mean_off) < Bursts::MIN_MEAN
        {
            let value = mean_on.min(mean_off).as_secs_f64();
            let field = "a mean time on or off, in seconds,";
            return Err(SourceError::OutOfRange { field, value, range: "at least 0.0001" });
        }
        if self.mean_frame_bytes() < 1.0 {
            return Err(SourceError::ZeroSize("a frame"));
        }
        let mut switch = seed.split("on and off").rng();
        let is_on = switch.unit() < self.share_on();
        let mut source = VariableRateSource {
            config: *self,
            mean_bytes: self.mean_frame_bytes(),
            next: self.start,
            is_on,
            until: self.start,
            sizes: seed.split("sizes").rng(),
            switch,
        };
        source.until = self.start + source.stay();
        Ok(source)
    }

    fn share_on(&self) -> f64 {
        self.bursts.map_or(1.0, |Bursts { mean_on, mean_off }| {
            mean_on.as_secs_f64() / (mean_on + mean_off).as_secs_f64()
        })
    }
}

/// The frames of a [`VariableRate`].
#[derive(Clone, Debug)]
pub struct VariableRateSource {
    config: VariableRate,
    mean_bytes: f64,
    /// The next tick of the frame clock.
    next: Instant,
    is_on: bool,
    /// End of the current on or off time.
    until: Instant,
    sizes: Rng,
    switch: Rng,
}

impl VariableRateSource {
    /// Advances to `at`, which must not decrease. Returns whether a frame is sent then.
    fn advance_to(&mut self, at: Instant) -> bool {
        while self.until <= at {
            self.is_on = !self.is_on;
            let stay = self.stay();
            self.until += stay;
        }
        self.is_on
    }

    /// Time until the next change of state.
    fn stay(&mut self) -> Duration {
        let Some(Bursts { mean_on, mean_off }) = self.config.bursts else {
            return Duration::MAX;
        };
        let mean = if self.is_on { mean_on } else { mean_off };
        exponential(&mut self.switch, mean.as_nanos() as f64)
    }

    fn size(&mut self) -> usize {
        let variation = self.config.size_variation;
        // Of a log-normal distribution with this variation and mean 1.
        let sigma_squared = libm::log1p(variation * variation);
        let normal = standard_normal(&mut self.sizes) * sigma_squared.sqrt();
        let size = self.mean_bytes * libm::exp(normal - sigma_squared / 2.0);
        (size.round() as usize).max(1)
    }
}

impl Iterator for VariableRateSource {
    type Item = (Instant, usize);

    fn next(&mut self) -> Option<Self::Item> {
        while self.next < self.config.stop {
            let at = self.next;
            self.next += self.config.frame_interval;
            if self.advance_to(at) {
                return Some((at, self.size()));
            }
        }
        None
    }
}
