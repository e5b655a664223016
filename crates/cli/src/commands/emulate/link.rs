//! The options of the link, in netem's notation.

use std::time::Duration;

use clap::Args;
use rexmit::emulator::netem;
use rexmit::emulator::path::PathConfig;
use rexmit::emulator::{LinkConfig, Seed};

use crate::failure::{Failure, Kind};
use crate::values;

/// Additional delay of reordered packets on a path without delay.
const REORDER_EXTRA: &str = "10ms";

/// The impairments of both directions.
#[derive(Debug, Args)]
pub(super) struct Link {
    /// One-way delay.
    #[arg(long, value_name = "TIME", default_value = "0")]
    delay: String,
    /// Variation of the delay; reorders packets unless --keep-order is given.
    #[arg(long, value_name = "TIME")]
    jitter: Option<String>,
    /// Distribution of the jitter: uniform, normal, pareto or exponential.
    #[arg(long, value_name = "NAME", requires = "jitter", default_value = "uniform")]
    distribution: String,
    /// Keep packets in order despite jitter.
    #[arg(long)]
    keep_order: bool,
    #[command(flatten)]
    losses: Losses,
    #[command(flatten)]
    reordering: Reordering,
    /// Share of packets that arrive twice.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    duplicate: String,
    /// Share of packets in which a bit is flipped.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    corrupt: String,
    #[command(flatten)]
    queueing: Queueing,
    /// Further netem options for the direction to the server, such as 'delay 20ms loss 1%'.
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    forward: String,
    /// Further netem options for the direction to the clients.
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    backward: String,
    /// Handle packets in batches, once in this time (1ms): a fraction of the processor time where there are many, which are
    /// late by up to this time [default: at once].
    #[arg(long, value_name = "TIME", value_parser = values::batch)]
    batch: Option<Duration>,
    /// Seed of the emulator. The same seed drops and delays the same packets, counted in the order
    /// in which they arrive.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
}

/// The rate and the queue in front of it.
#[derive(Debug, Args)]
struct Queueing {
    /// The link's rate, such as 10mbit.
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Queue limit in packets (100) or bytes (64kb); needs --rate.
    #[arg(long, value_name = "N|SIZE")]
    limit: Option<String>,
    /// Random early detection: drop packets before the queue is full. Thresholds of the average queue in packets, and
    /// the probability of a drop at the second one (10%), such as '5 15 2%'; with 'ecn' at the end, ECN-capable packets are
    /// marked instead, up to twice the second threshold; needs --rate.
    #[arg(long, value_name = "MIN MAX [PERCENT] [ecn]")]
    red: Option<String>,
    /// FQ-CoDel (RFC 8290): a queue per flow, with drops or ECN marks of packets that wait for long. Settings such as
    /// 'target 5ms interval 100ms quantum 1514 flows 1024 noecn' are optional; --limit is that of all queues; needs --rate.
    #[arg(long, value_name = "SETTINGS", num_args = 0..=1, default_missing_value = "", conflicts_with = "red")]
    fq_codel: Option<String>,
}

/// Which packets are lost.
#[derive(Debug, Args)]
struct Losses {
    /// Share of packets that are lost.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    loss: String,
    /// Lose packets in bursts of this mean length, in packets (3) or as a time (100ms).
    #[arg(long, value_name = "PACKETS|TIME", requires = "loss")]
    burst: Option<String>,
    /// Lose packets by netem's two-state Markov chain: P R [1-H [1-K]], such as '1% 10%'.
    #[arg(long, value_name = "P R", conflicts_with = "burst")]
    gemodel: Option<String>,
}

/// Which packets are overtaken, and by how much.
#[derive(Debug, Args)]
struct Reordering {
    /// Share of packets that are delayed further, so that later ones overtake them.
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    reorder: String,
    /// Additional delay of these packets [default: as long as the delay].
    #[arg(long, value_name = "TIME")]
    reorder_extra: Option<String>,
}

impl Link {
    /// The configuration of both directions.
    pub(super) fn config(&self) -> Result<LinkConfig, Failure> {
        Ok(LinkConfig::default()
            .forward(self.path(&self.forward)?)
            .backward(self.path(&self.backward)?)
            .batch(self.batch.unwrap_or_default())
            .seed(Seed::from_u64(self.seed)))
    }

    fn path(&self, more: &str) -> Result<PathConfig, Failure> {
        let path = self.words().parse().and_then(|path: PathConfig| path.with_options(more));
        path.map_err(|error| Failure::new(Kind::Usage, format!("{error} (see --help)")))
    }

    /// The options in netem's notation.
    fn words(&self) -> String {
        let mut words = format!("delay {}", self.delay);
        if let Some(jitter) = &self.jitter {
            words += &format!(" {jitter} distribution {}", self.distribution);
        }
        if self.keep_order {
            words += " ordered";
        }
        words += &match &self.losses.burst {
            Some(burst) => format!(" loss burst {} {burst}", self.losses.loss),
            None => format!(" loss {}", self.losses.loss),
        };
        if let Some(chain) = &self.losses.gemodel {
            words += &format!(" loss gemodel {chain}");
        }
        let extra = match &self.reordering.reorder_extra {
            Some(extra) => extra,
            None if netem::parse_duration(&self.delay).is_ok_and(|delay| delay.is_zero()) => {
                REORDER_EXTRA
            }
            None => &self.delay,
        };
        words += &format!(" reorder {} {extra}", self.reordering.reorder);
        words += &format!(" duplicate {} corrupt {}", self.duplicate, self.corrupt);
        if let Some(rate) = &self.queueing.rate {
            words += &format!(" rate {rate}");
        }
        if let Some(limit) = &self.queueing.limit {
            words += &format!(" limit {limit}");
        }
        if let Some(red) = &self.queueing.red {
            words += &format!(" red {red}");
        }
        if let Some(fq_codel) = &self.queueing.fq_codel {
            words += &format!(" fq_codel {fq_codel}");
        }
        words
    }
}
