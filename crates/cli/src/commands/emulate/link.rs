//! The options of the link, in netem's words.

use clap::Args;
use rexmit::emulator::netem;
use rexmit::emulator::path::PathConfig;
use rexmit::emulator::{LinkConfig, Seed};

use crate::failure::{Failure, Kind};

/// How much longer reordered packets take on a path without delay.
const REORDER_EXTRA: &str = "10ms";

/// What both directions do to packets.
#[derive(Debug, Args)]
pub(super) struct Link {
    /// One-way delay.
    #[arg(long, value_name = "TIME", default_value = "0")]
    delay: String,
    /// How much the delay varies; this reorders, unless --keep-order.
    #[arg(long, value_name = "TIME")]
    jitter: Option<String>,
    /// How the jitter is distributed: uniform, normal, pareto or exponential.
    #[arg(long, value_name = "NAME", requires = "jitter", default_value = "uniform")]
    distribution: String,
    /// Packets keep their order whatever the jitter.
    #[arg(long)]
    keep_order: bool,
    /// Share of packets that are lost.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    loss: String,
    /// Lose packets in bursts of so many packets (3), or of such a time (100ms), on average.
    #[arg(long, value_name = "PACKETS|TIME", requires = "loss")]
    burst: Option<String>,
    /// Lose packets by netem's two-state chain: P R [1-H [1-K]], such as '1% 10%'.
    #[arg(long, value_name = "P R", conflicts_with = "burst")]
    gemodel: Option<String>,
    /// Share of packets that take longer, so that others overtake them.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    reorder: String,
    /// How much longer these take [default: as long as the delay].
    #[arg(long, value_name = "TIME")]
    reorder_extra: Option<String>,
    /// Share of packets that arrive twice.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    duplicate: String,
    /// Share of packets in which a bit is flipped.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    corrupt: String,
    /// The link's rate, such as 10mbit.
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Packets (100) or bytes (64kb) that may wait for the rate.
    #[arg(long, value_name = "N|SIZE")]
    limit: Option<String>,
    /// More words for the direction to the server, such as 'delay 20ms loss 1%'.
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    forward: String,
    /// More words for the direction to the clients.
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    backward: String,
    /// Where the randomness comes from: the same packets meet the same fate.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
}

impl Link {
    /// The two paths.
    pub(super) fn config(&self) -> Result<LinkConfig, Failure> {
        Ok(LinkConfig::default()
            .forward(self.path(&self.forward)?)
            .backward(self.path(&self.backward)?)
            .seed(Seed::from_u64(self.seed)))
    }

    fn path(&self, more: &str) -> Result<PathConfig, Failure> {
        let words = format!("{} {more}", self.words());
        words.parse().map_err(|error| Failure::new(Kind::Usage, format!("{error} (see --help)")))
    }

    /// The options as netem's words.
    fn words(&self) -> String {
        let mut words = format!("delay {}", self.delay);
        if let Some(jitter) = &self.jitter {
            words += &format!(" {jitter} distribution {}", self.distribution);
        }
        if self.keep_order {
            words += " ordered";
        }
        words += &match &self.burst {
            Some(burst) => format!(" loss burst {} {burst}", self.loss),
            None => format!(" loss {}", self.loss),
        };
        if let Some(chain) = &self.gemodel {
            words += &format!(" loss gemodel {chain}");
        }
        let extra = match &self.reorder_extra {
            Some(extra) => extra,
            None if netem::parse_duration(&self.delay).is_ok_and(|delay| delay.is_zero()) => {
                REORDER_EXTRA
            }
            None => &self.delay,
        };
        words += &format!(" reorder {} {extra}", self.reorder);
        words += &format!(" duplicate {} corrupt {}", self.duplicate, self.corrupt);
        if let Some(rate) = &self.rate {
            words += &format!(" rate {rate}");
        }
        if let Some(limit) = &self.limit {
            words += &format!(" limit {limit}");
        }
        words
    }
}
