//! Models of the applications in the tables of the thin-stream papers.

use std::sync::OnceLock;
use std::time::Duration;

use rexmit_core::{Instant, Rng, Seed};

use super::curve::Curve;

/// An application of Petlund 2009, Table 1, or Petlund 2008, Table 1: the sizes and times of the messages of one
/// side.
///
/// Each model reproduces the figures of its row: mean, smallest and largest payload; mean, median,
/// shortest and longest time between two messages, and the 1st and 99th percentile of these times.
/// Sizes and times are independent of each other and of earlier ones, so that only the
/// distributions are reproduced, not the application's temporal structure. The exception is
/// [`Casa`](Self::Casa), whose bursts the paper describes. For "< 1" ms in the paper the model has
/// a value below 1 ms; a missing mean is computed from the bandwidth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Application {
    /// Casa, a network of weather radars: about four packets every 30 s.
    Casa,
    /// Windows Remote Desktop (RDP).
    RemoteDesktop,
    /// Skype, two users.
    Skype,
    /// A text session over SSH.
    Ssh,
    /// Anarchy Online, a game.
    AnarchyOnline,
    /// World of Warcraft, a game.
    WorldOfWarcraft,
    /// Age of Conan, a game.
    AgeOfConan,
    /// BZFlag, a game.
    BzFlag,
    /// A video from YouTube: not thin.
    YouTube,
    /// A download over HTTP: not thin.
    HttpDownload,
    /// A download over FTP: not thin.
    FtpDownload,
}

/// The figures of a row.
struct Figures {
    name: &'static str,
    /// Payload in bytes: mean, min, max.
    payload: [f64; 3],
    gaps: GapFigures,
}

/// Figures of the times between messages, in milliseconds.
enum GapFigures {
    /// The mean; the minimum, 1st percentile, median, 99th percentile and maximum.
    Quantiles(f64, [f64; 5]),
    /// The mean; the range of times between the packets of a burst; the range of times between
    /// bursts.
    Bursts(f64, [f64; 2], [f64; 2]),
}

impl Application {
    /// All applications, in the order of the tables.
    pub const ALL: [Self; 11] = [
        Self::Casa,
        Self::RemoteDesktop,
        Self::Skype,
        Self::Ssh,
        Self::AnarchyOnline,
        Self::WorldOfWarcraft,
        Self::AgeOfConan,
        Self::BzFlag,
        Self::YouTube,
        Self::HttpDownload,
        Self::FtpDownload,
    ];

    /// A short name, in lower case, for command lines and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.figures().name
    }

    /// The application with this [`name`](Self::name).
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|application| application.name() == name)
    }

    /// The fitted model. Fitting takes some milliseconds: a process does it once.
    #[must_use]
    pub fn model(self) -> ApplicationModel {
        static FITTED: [OnceLock<ApplicationModel>; Application::ALL.len()] =
            [const { OnceLock::new() }; Application::ALL.len()];
        *FITTED[self as usize].get_or_init(|| {
            let Figures { payload, gaps, .. } = self.figures();
            let model = Payload::fit(payload).zip(Gaps::fit(&gaps));
            let (payload, gaps) = model.expect("every row of the table can be fitted");
            ApplicationModel { payload, gaps }
        })
    }

    /// An endless source of messages of the fitted model, beginning at `start`.
    #[must_use]
    pub fn source(self, start: Instant, seed: &Seed) -> ApplicationSource {
        self.model().source(start, seed)
    }

    fn figures(self) -> Figures {
        use GapFigures::{Bursts, Quantiles};
        let row = |name, payload, gaps| Figures { name, payload, gaps };
        // For "< 1" in the table: a value below 1, with the quantiles below it still smaller.
        match self {
            Self::Casa => {
                let gaps = Bursts(7287.0, [305.0, 309.0], [29_880.0, 29_898.0]);
                row("casa", [175.0, 93.0, 572.0], gaps)
            }
            Self::RemoteDesktop => {
                let gaps = Quantiles(318.0, [1.0, 2.0, 159.0, 3892.0, 12_254.0]);
                row("rdp", [111.0, 8.0, 1417.0], gaps)
            }
            Self::Skype => {
                let gaps = Quantiles(34.0, [0.5, 4.0, 40.0, 80.0, 1671.0]);
                row("skype", [236.0, 14.0, 1267.0], gaps)
            }
            Self::Ssh => {
                let gaps = Quantiles(323.0, [0.9, 32.0, 159.0, 3616.0, 76_610.0]);
                row("ssh", [48.0, 16.0, 752.0], gaps)
            }
            Self::AnarchyOnline => {
                let gaps = Quantiles(632.0, [7.0, 83.0, 449.0, 4195.0, 17_032.0]);
                row("anarchy-online", [98.0, 8.0, 1333.0], gaps)
            }
            Self::WorldOfWarcraft => {
                let gaps = Quantiles(314.0, [0.1, 0.5, 133.0, 3785.0, 14_855.0]);
                row("world-of-warcraft", [26.0, 6.0, 1228.0], gaps)
            }
            // The table's zero is modelled as 0.5 ms.
            Self::AgeOfConan => {
                let gaps = Quantiles(86.0, [0.5, 24.0, 57.0, 386.0, 1375.0]);
                row("age-of-conan", [80.0, 5.0, 1460.0], gaps)
            }
            Self::BzFlag => {
                let gaps = Quantiles(24.0, [0.1, 0.2, 0.9, 151.0, 540.0]);
                row("bzflag", [30.0, 4.0, 1448.0], gaps)
            }
            Self::YouTube => {
                let gaps = Quantiles(9.0, [0.05, 0.1, 0.5, 127.0, 1335.0]);
                row("youtube", [1446.0, 112.0, 1448.0], gaps)
            }
            Self::HttpDownload => {
                // 14 Mbit/s, with headers.
                let gaps = Quantiles(0.865, [0.01, 0.02, 0.5, 8.0, 186.0]);
                row("http", [1447.0, 64.0, 1448.0], gaps)
            }
            Self::FtpDownload => {
                // 82 Mbit/s, with headers.
                let gaps = Quantiles(0.148, [0.01, 0.02, 0.1, 0.5, 339.0]);
                row("ftp", [1447.0, 40.0, 1448.0], gaps)
            }
        }
    }
}

/// The fitted model of an [`Application`].
#[derive(Clone, Copy, Debug)]
pub struct ApplicationModel {
    payload: Payload,
    gaps: Gaps,
}

impl ApplicationModel {
    /// An endless source of messages of the model, beginning at `start`.
    #[must_use]
    pub fn source(&self, start: Instant, seed: &Seed) -> ApplicationSource {
        ApplicationSource {
            model: *self,
            next: start,
            left_in_burst: 0,
            payloads: seed.split("payloads").rng(),
            times: seed.split("times").rng(),
        }
    }
}

/// The messages of an [`Application`].
#[derive(Clone, Debug)]
pub struct ApplicationSource {
    model: ApplicationModel,
    next: Instant,
    left_in_burst: u32,
    payloads: Rng,
    times: Rng,
}

impl Iterator for ApplicationSource {
    /// Time, and size in bytes.
    type Item = (Instant, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next;
        let ms = self.model.gaps.sample(&mut self.times, &mut self.left_in_burst);
        self.next += Duration::from_nanos((ms * 1e6).round() as u64);
        let bytes = self.model.payload.sample(&mut self.payloads).round() as usize;
        (at < Instant::FAR_FUTURE).then_some((at, bytes))
    }
}

/// Sizes of messages in bytes.
#[derive(Clone, Copy, Debug)]
enum Payload {
    /// Mostly small messages.
    Small(Curve<2>),
    /// Messages of the largest size, such as the full packets of a transfer; except for the share `short`, such as the
    /// last packets of writes, whose size has a uniform logarithm.
    Full { min: f64, max: f64, short: f64 },
}

impl Payload {
    fn fit([mean, min, max]: [f64; 3]) -> Option<Self> {
        let log_uniform_mean = (max - min) / libm::log(max / min);
        if mean > log_uniform_mean {
            return Some(Self::Full { min, max, short: (max - mean) / (max - log_uniform_mean) });
        }
        Curve::with_mean([(0.0, min), (1.0, max)], 0, mean).ok().map(Self::Small)
    }

    fn sample(&self, rng: &mut Rng) -> f64 {
        match self {
            Self::Small(curve) => curve.sample(rng),
            &Self::Full { min, max, short } => {
                if rng.chance(short) {
                    min * libm::exp(libm::log(max / min) * rng.unit())
                } else {
                    max
                }
            }
        }
    }
}

/// Times between messages in milliseconds.
#[derive(Clone, Copy, Debug)]
enum Gaps {
    Quantiles(Curve<5>),
    /// Short times within a burst and a long one after it, both uniform in their ranges.
    Bursts {
        short: [f64; 2],
        long: [f64; 2],
        /// Mean number of messages in a burst; each has this number rounded down or up.
        mean_len: f64,
    },
}

impl Gaps {
    fn fit(figures: &GapFigures) -> Option<Self> {
        match *figures {
            GapFigures::Quantiles(mean, [min, p1, median, p99, max]) => {
                let points = [(0.0, min), (0.01, p1), (0.5, median), (0.99, p99), (1.0, max)];
                // From the median on.
                Curve::with_mean(points, 2, mean).ok().map(Self::Quantiles)
            }
            GapFigures::Bursts(mean, short, long) => {
                let middle = |[least, most]: [f64; 2]| f64::midpoint(least, most);
                let mean_len = (middle(long) - middle(short)) / (mean - middle(short));
                Some(Self::Bursts { short, long, mean_len })
            }
        }
    }

    /// The next time; `left` is the number of remaining messages of the current burst.
    fn sample(&self, rng: &mut Rng, left: &mut u32) -> f64 {
        let [least, most] = match self {
            Self::Quantiles(curve) => return curve.sample(rng),
            Self::Bursts { short, .. } if *left > 0 => {
                *left -= 1;
                *short
            }
            Self::Bursts { long, mean_len, .. } => {
                let is_long = rng.chance(mean_len.fract());
                *left = (*mean_len as u32 + u32::from(is_long)).saturating_sub(1);
                *long
            }
        };
        least + (most - least) * rng.unit()
    }
}
