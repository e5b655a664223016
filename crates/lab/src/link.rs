//! The emulated link of a demonstration, with few parameters.

use std::fmt;
use std::time::Duration;

use rexmit_netsim::path::{BurstLoss, Delay, Jitter, Loss, PathConfig, Reorder};

/// A link that is the same in both directions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Round-trip time without jitter; half of it in each direction.
    pub rtt: Duration,
    /// Packet loss in each direction, 0 to 1.
    pub loss: f64,
    /// Mean number of packets lost in a row; `None`: losses are independent.
    pub burst: Option<f64>,
    /// The largest deviation of a packet's delay (uniform). Jitter alone does not reorder packets.
    pub jitter: Duration,
    /// Share of packets, 0 to 1, that are delayed by [`Self::DETOUR`] round-trip times, so that
    /// later ones overtake them.
    pub reorder: f64,
}

impl Default for Link {
    /// 100 ms round-trip time, 5 % loss in each direction.
    fn default() -> Self {
        Self {
            rtt: Duration::from_millis(100),
            loss: 0.05,
            burst: None,
            jitter: Duration::ZERO,
            reorder: 0.0,
        }
    }
}

impl Link {
    /// Additional delay of a reordered packet, as a fraction of the round-trip time.
    pub const DETOUR: f64 = 0.25;

    /// The path of one direction.
    #[must_use]
    pub fn path(&self) -> PathConfig {
        let loss = match self.burst {
            Some(mean_burst) if self.loss > 0.0 => {
                let burst = BurstLoss::Packets { mean_loss: self.loss, mean_burst };
                Loss { burst: Some(burst), ..Loss::default() }
            }
            _ => Loss { uniform: self.loss, ..Loss::default() },
        };
        let jitter =
            if self.jitter.is_zero() { Jitter::Constant } else { Jitter::Uniform(self.jitter) };
        PathConfig {
            delay: Delay { mean: self.rtt / 2, jitter },
            keep_order: true,
            loss,
            reorder: Reorder {
                probability: self.reorder,
                extra: Delay::constant(self.rtt.mul_f64(Self::DETOUR)),
            },
            ..PathConfig::default()
        }
    }

    /// The settings as text.
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let mut set = vec![("RTT", words(self.rtt))];
        let bursts =
            self.burst.map_or_else(String::new, |mean| format!(", in bursts of {mean} on average"));
        set.push(("loss", format!("{} each way{bursts}", percent(self.loss))));
        if !self.jitter.is_zero() {
            set.push(("jitter", format!("±{}", words(self.jitter))));
        }
        if self.reorder > 0.0 {
            let detour = words(self.rtt.mul_f64(Self::DETOUR));
            set.push(("reordering", format!("{} take {detour} longer", percent(self.reorder))));
        }
        set
    }
}

/// Text such as `100 ms RTT with 5 % loss`, with all settings that differ from the default.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} RTT with {} loss", words(self.rtt), percent(self.loss))?;
        if let Some(burst) = self.burst {
            write!(f, " in bursts of {burst} packets")?;
        }
        if !self.jitter.is_zero() {
            write!(f, ", {} jitter", words(self.jitter))?;
        }
        if self.reorder > 0.0 {
            write!(f, ", {} of the packets overtaken", percent(self.reorder))?;
        }
        Ok(())
    }
}

/// A duration such as `12.5 ms`, without trailing zeros.
fn words(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{} ms", (seconds * 1e6).round() / 1e3),
        seconds => format!("{} s", (seconds * 1e3).round() / 1e3),
    }
}

/// A share such as `0.5 %`, without binary rounding noise.
fn percent(share: f64) -> String {
    format!("{} %", (share * 1e8).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_names_what_is_not_as_by_default() {
        assert_eq!(Link::default().to_string(), "100 ms RTT with 5 % loss");
        let jitter = Duration::from_millis(5);
        let link = Link { burst: Some(3.0), jitter, reorder: 0.01, ..Link::default() };
        let words = "100 ms RTT with 5 % loss in bursts of 3 packets, 5 ms jitter, \
                     1 % of the packets overtaken";
        assert_eq!(link.to_string(), words);
    }

    #[test]
    fn both_directions_share_the_round_trip_and_losses_come_as_asked_for() {
        let link = Link { jitter: Duration::from_millis(5), reorder: 0.01, ..Link::default() };
        let path = link.path();
        assert_eq!(path.delay.mean, Duration::from_millis(50));
        assert_eq!((path.loss.uniform, path.loss.burst), (0.05, None));
        assert_eq!(path.reorder.extra, Delay::constant(Duration::from_millis(25)));
        assert_eq!(path.validate(), Ok(()));
        let path = Link { burst: Some(3.0), ..link }.path();
        let burst = BurstLoss::Packets { mean_loss: 0.05, mean_burst: 3.0 };
        assert_eq!((path.loss.uniform, path.loss.burst), (0.0, Some(burst)));
        let path = Link { burst: Some(3.0), loss: 0.0, ..link }.path();
        assert_eq!((path.validate(), path.loss), (Ok(()), Loss::default()));
    }

    #[test]
    fn parameters_say_what_was_asked_for_and_nothing_else() {
        let plain = Link { loss: 0.07, ..Link::default() };
        let said = |link: Link| link.parameters().into_iter().map(|(_, v)| v).collect::<Vec<_>>();
        assert_eq!(said(plain), ["100 ms", "7 % each way"]);
        assert_eq!(plain.to_string(), "100 ms RTT with 7 % loss");
        let all =
            Link { burst: Some(2.5), jitter: Duration::from_millis(5), reorder: 0.001, ..plain };
        assert_eq!(
            said(all),
            [
                "100 ms",
                "7 % each way, in bursts of 2.5 on average",
                "±5 ms",
                "0.1 % take 25 ms longer"
            ]
        );
    }
}
