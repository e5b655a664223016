//! The traffic of a flow, and its text form.
//!
//! | text | messages |
//! |---|---|
//! | `every 250ms size 100` | of 100 bytes, every 250 ms |
//! | `every 250ms fast 50ppm size 100` | the same by a clock that is fast by 50 ppm: every 249.9875 ms |
//! | `poisson 250ms size 100` | the same mean rate, as a Poisson process |
//! | `rate 200kbit size 1000` | of 1000 bytes, at 200 kbit/s of payload |
//! | `video 1mbit frame 40ms variation 0.5 [on 1s off 1s]` | frames of a video; see [`VariableRate`] |
//! | `application anarchy-online` | of a model of Petlund 2009, Table 1; see [`Application`] |
//! | `trace bzflag-tcp [flow 3] [c2s \| s2c]` | of one side of a captured trace |
//! | `messages 0:100 250000:80` | these: microseconds and bytes, in ascending order of time |
//!
//! Without `flow`, all flows of the trace are concatenated into one stream. At its end, the trace
//! or the list is repeated. The pause before the next flow or repetition is the mean time between two messages.
//! The default side is the server (`s2c`).
//!
//! `fast` is for intervals that divide a timer or a delay. The clocks of an application and its transport are never
//! exactly equal. If they were, a message would always coincide with a timer or an ACK, and the simulator's arbitrary
//! order of simultaneous events would decide the result.

use std::str::{FromStr, SplitWhitespace};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rexmit_core::words::{UnitError, parse_duration, parse_rate};
use rexmit_core::{BitRate, Instant, Seed};
use rexmit_netsim::source::{
    Application, ApplicationSource, Bursts, ConstantRate, ConstantRateSource, IntervalSource,
    Intervals, SourceError, VariableRate, VariableRateSource,
};
use rexmit_netsim::traffic::trace::{Message, Sender, Trace};
use thiserror::Error;

use super::repeated::Repeated;
use crate::load::BUNDLED;

/// The traffic of a flow.
#[derive(Clone, PartialEq, Debug)]
pub enum Traffic {
    /// Messages of one size at constant or random intervals; its start is that of the flow.
    Intervals(Intervals),
    /// Messages of one size at a rate.
    Rate(ConstantRate),
    /// Frames of a video.
    Video(VariableRate),
    /// The messages of a model.
    Application(Application),
    /// The messages of a trace.
    Trace(Replayed),
    /// Messages of the text itself: at least one, in ascending order of time.
    Listed(Arc<[Message]>),
}

/// The messages of one side of an embedded trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// The name of the trace.
    pub trace: &'static str,
    /// The flow; `None` for all, concatenated.
    pub flow: Option<u32>,
    /// The side.
    pub sender: Sender,
}

/// Why a text is not valid traffic.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum TrafficError {
    /// An unexpected word.
    #[error("unknown word `{word}`: expected {expected}")]
    Unknown {
        /// The word.
        word: String,
        /// The expected values.
        expected: String,
    },
    /// The text ends too early.
    #[error("something is missing at the end: {0}")]
    Missing(&'static str),
    /// An invalid quantity.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The described traffic is impossible.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The trace does not have this flow, or the flow has no messages of this side.
    #[error("flow {flow} of {trace} has no messages of {side}: choose one of {known}")]
    NoFlow {
        /// The trace.
        trace: &'static str,
        /// The flow.
        flow: u32,
        /// The side.
        side: &'static str,
        /// The flows with messages of this side.
        known: String,
    },
}

impl Traffic {
    /// The endless sequence of messages, beginning at the origin of time.
    ///
    /// # Errors
    /// If the traffic is impossible; never for traffic that was parsed from text.
    pub fn source(&self, seed: &Seed) -> Result<TrafficSource, SourceError> {
        Ok(match self {
            Self::Intervals(intervals) => TrafficSource::Intervals(intervals.source(seed)?),
            Self::Rate(rate) => TrafficSource::Rate(rate.source(seed)?),
            Self::Video(video) => TrafficSource::Video(video.source(seed)?),
            Self::Application(application) => {
                TrafficSource::Application(application.source(Instant::ZERO, seed))
            }
            Self::Trace(replayed) => TrafficSource::Trace(replayed.source()),
            Self::Listed(messages) => {
                TrafficSource::Listed(Repeated::new(std::iter::once(Arc::clone(messages))))
            }
        })
    }
}

/// The messages of [`Traffic`].
#[derive(Clone, Debug)]
pub enum TrafficSource {
    /// The source of [`Traffic::Intervals`].
    Intervals(IntervalSource),
    /// The source of [`Traffic::Rate`].
    Rate(ConstantRateSource),
    /// The source of [`Traffic::Video`].
    Video(VariableRateSource),
    /// The source of [`Traffic::Application`].
    Application(ApplicationSource),
    /// The source of [`Traffic::Trace`].
    Trace(Repeated<&'static [Message]>),
    /// The source of [`Traffic::Listed`].
    Listed(Repeated<Arc<[Message]>>),
}

impl Iterator for TrafficSource {
    type Item = (Instant, usize);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Intervals(source) => source.next(),
            Self::Rate(source) => source.next(),
            Self::Video(source) => source.next(),
            Self::Application(source) => source.next(),
            Self::Trace(source) => source.next(),
            Self::Listed(source) => source.next(),
        }
    }
}

/// A source limited to the time of a run.
#[derive(Clone, Debug)]
pub(super) struct TimedSource {
    source: TrafficSource,
    begin: Instant,
    end: Instant,
}

impl TimedSource {
    /// The messages of `source`, shifted by `begin`, up to `end`.
    pub(super) const fn new(source: TrafficSource, begin: Instant, end: Instant) -> Self {
        Self { source, begin, end }
    }
}

impl Iterator for TimedSource {
    type Item = (Instant, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let (at, bytes) = self.source.next()?;
        let at = self.begin + (at - Instant::ZERO);
        (at < self.end).then_some((at, bytes))
    }
}

impl Replayed {
    fn source(&self) -> Repeated<&'static [Message]> {
        let flows = bundled(self.trace).map_or(&[][..], |trace| &trace.flows);
        let flows = flows.iter().filter(|flow| self.flow.is_none_or(|id| flow.id == id));
        Repeated::new(flows.map(|flow| flow.messages(self.sender)))
    }

    fn check(self) -> Result<Self, TrafficError> {
        let Some(flow) = self.flow.filter(|_| self.source().is_empty()) else {
            return Ok(self);
        };
        let flows = bundled(self.trace).map_or(&[][..], |trace| &trace.flows);
        let known = flows.iter().filter(|flow| !flow.messages(self.sender).is_empty());
        let known: Vec<_> = known.map(|flow| flow.id.to_string()).collect();
        let side = match self.sender {
            Sender::Client => "c2s",
            Sender::Server => "s2c",
        };
        Err(TrafficError::NoFlow { trace: self.trace, flow, side, known: known.join(", ") })
    }
}

/// The embedded trace of this name, parsed once.
fn bundled(name: &str) -> Option<&'static Trace> {
    static TRACES: [OnceLock<Option<Trace>>; BUNDLED.len()] =
        [const { OnceLock::new() }; BUNDLED.len()];
    let place = BUNDLED.iter().position(|bundled| bundled.name == name)?;
    TRACES[place].get_or_init(|| BUNDLED[place].read().ok()).as_ref()
}

impl FromStr for Traffic {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let mut words = Clauses(text.split_whitespace());
        let kind = words.value(KINDS)?;
        let traffic = match kind {
            "every" => Self::Intervals(words.every()?),
            "poisson" => Self::Intervals(Intervals {
                interval: words.time()?,
                is_random: true,
                bytes: words.size()?,
                start: Instant::ZERO,
            }),
            "rate" => {
                let (rate, packet_bytes) = (words.rate()?, words.size()?);
                Self::Rate(ConstantRate { rate, packet_bytes, ..ConstantRate::default() })
            }
            "video" => Self::Video(words.video()?),
            "application" => Self::Application(words.application()?),
            "trace" => return words.trace()?.check().map(Self::Trace),
            "messages" => return words.messages().map(Self::Listed),
            _ => return Err(unknown(kind, KINDS)),
        };
        words.end()?;
        traffic.source(&Seed::from_u64(0))?;
        Ok(traffic)
    }
}

/// The first words of a text.
const KINDS: &str = "every, poisson, rate, video, application, trace or messages";

/// By how much a clock is fast, as a share.
const SHARE: &str = "a share such as 50ppm";

/// The remaining words.
struct Clauses<'a>(SplitWhitespace<'a>);

impl<'a> Clauses<'a> {
    fn value(&mut self, expected: &'static str) -> Result<&'a str, TrafficError> {
        self.0.next().ok_or(TrafficError::Missing(expected))
    }

    fn keyword(&mut self, keyword: &'static str) -> Result<(), TrafficError> {
        match self.value(keyword)? {
            word if word == keyword => Ok(()),
            word => Err(unknown(word, keyword)),
        }
    }

    fn end(mut self) -> Result<(), TrafficError> {
        self.0.next().map_or(Ok(()), |word| Err(unknown(word, "nothing more")))
    }

    fn time(&mut self) -> Result<Duration, TrafficError> {
        Ok(parse_duration(self.value("a time such as 250ms")?)?)
    }

    fn rate(&mut self) -> Result<BitRate, TrafficError> {
        Ok(parse_rate(self.value("a rate such as 200kbit")?)?)
    }

    /// The rest of `every INTERVAL [fast SHARE] size BYTES`.
    fn every(&mut self) -> Result<Intervals, TrafficError> {
        let mut interval = self.time()?;
        let is_fast = self.0.clone().next() == Some("fast");
        if is_fast {
            self.keyword("fast")?;
            let word = self.value(SHARE)?;
            let ppm = word.strip_suffix("ppm").and_then(|digits| digits.parse::<u32>().ok());
            let ppm = ppm.filter(|ppm| *ppm < 1_000_000).ok_or_else(|| unknown(word, SHARE))?;
            let nanos = interval.as_nanos() * u128::from(1_000_000 - ppm) / 1_000_000;
            interval = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        }
        Ok(Intervals { interval, is_random: false, bytes: self.size()?, start: Instant::ZERO })
    }

    fn size(&mut self) -> Result<usize, TrafficError> {
        self.keyword("size")?;
        const BYTES: &str = "a number of bytes, at most 16777216";
        let word = self.value(BYTES)?;
        let bytes = word.parse().ok().filter(|bytes| *bytes <= MAX_MESSAGE_BYTES);
        bytes.ok_or_else(|| unknown(word, BYTES))
    }

    fn video(&mut self) -> Result<VariableRate, TrafficError> {
        let rate = self.rate()?;
        self.keyword("frame")?;
        let frame_interval = self.time()?;
        self.keyword("variation")?;
        let word = self.value("a number such as 0.5")?;
        let size_variation = word.parse().map_err(|_| unknown(word, "a number such as 0.5"))?;
        let bursts = match self.0.next() {
            None => None,
            Some("on") => {
                let mean_on = self.time()?;
                self.keyword("off")?;
                Some(Bursts { mean_on, mean_off: self.time()? })
            }
            Some(word) => return Err(unknown(word, "on, or nothing more")),
        };
        let default = VariableRate::default();
        Ok(VariableRate { rate, frame_interval, size_variation, bursts, ..default })
    }

    fn application(&mut self) -> Result<Application, TrafficError> {
        let name = self.value("the name of an application")?;
        Application::by_name(name)
            .ok_or_else(|| unknown(name, &list(Application::ALL.map(Application::name))))
    }

    fn messages(mut self) -> Result<Arc<[Message]>, TrafficError> {
        const EXPECTED: &str = "microseconds and bytes, as 250000:80";
        let mut messages: Vec<Message> = Vec::new();
        let mut next = Some(self.value(EXPECTED)?);
        while let Some(word) = next {
            let message = message(word).ok_or_else(|| unknown(word, EXPECTED))?;
            if messages.last().is_some_and(|last| message.at < last.at) {
                return Err(unknown(word, "a time that is not before that of the message before"));
            }
            messages.push(message);
            next = self.0.next();
        }
        Ok(messages.into())
    }

    fn trace(mut self) -> Result<Replayed, TrafficError> {
        let name = self.value("the name of a trace")?;
        let trace = BUNDLED.iter().find(|bundled| bundled.name == name);
        let trace = trace.ok_or_else(|| unknown(name, &list(BUNDLED.iter().map(|b| b.name))))?;
        let mut replayed = Replayed { trace: trace.name, flow: None, sender: Sender::Server };
        while let Some(word) = self.0.next() {
            match word {
                "flow" => {
                    let number = self.value("the number of a flow")?;
                    let flow = number.parse().map_err(|_| unknown(number, "the number of a flow"));
                    replayed.flow = Some(flow?);
                }
                "c2s" => replayed.sender = Sender::Client,
                "s2c" => replayed.sender = Sender::Server,
                _ => return Err(unknown(word, "flow, c2s or s2c")),
            }
        }
        Ok(replayed)
    }
}

/// The largest message of a description: each has memory of its own.
const MAX_MESSAGE_BYTES: usize = 1 << 24;

/// The latest time of a listed message, in microseconds: 100 years.
const MAX_LISTED_US: u64 = 100 * 366 * 24 * 3600 * 1_000_000;

/// Reads `250000:80`.
fn message(word: &str) -> Option<Message> {
    let (at, bytes) = word.split_once(':')?;
    let at = at.parse().ok().filter(|at| *at <= MAX_LISTED_US)?;
    let bytes =
        bytes.parse().ok().filter(|bytes| (1..=MAX_MESSAGE_BYTES as u32).contains(bytes))?;
    Some(Message { at: Duration::from_micros(at), bytes })
}

/// A list such as `a, b or c`.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

fn unknown(word: &str, expected: &str) -> TrafficError {
    TrafficError::Unknown { word: word.to_owned(), expected: expected.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(words: &str) -> impl Iterator<Item = (Instant, usize)> {
        words.parse::<Traffic>().unwrap().source(&Seed::from_u64(1)).unwrap()
    }

    #[test]
    fn words_say_what_is_sent() {
        let times = |words, count| -> Vec<_> { messages(words).take(count).collect() };
        let at = Instant::from_millis;
        assert_eq!(times("every 250ms size 100", 2), [(at(0), 100), (at(250), 100)]);
        let fast = times("every 250ms fast 50ppm size 100", 2);
        assert_eq!(fast[1], (Instant::from_nanos(249_987_500), 100));
        assert_eq!(times("rate 8kbit size 1000", 2), [(at(0), 1000), (at(1000), 1000)]);
        assert_eq!(times("poisson 250ms size 100", 3).len(), 3);
        assert_eq!(times("video 1mbit frame 40ms variation 0", 2)[1], (at(40), 5000));
        assert!(times("video 1mbit frame 40ms variation 0.5 on 1s off 2s", 100).len() == 100);
        assert!(times("application anarchy-online", 100).iter().all(|&(_, bytes)| bytes >= 8));
    }

    #[test]
    fn a_trace_is_repeated_without_end() {
        let trace = bundled("ssh").unwrap();
        let [first, second] = [0, 1].map(|n| trace.flows[n].client.as_slice());
        let one: Vec<_> = messages("trace ssh flow 0 c2s").take(first.len() + 1).collect();
        let length = first[first.len() - 1].at - first[0].at;
        let gap = length / (first.len() as u32 - 1);
        assert_eq!(one[first.len() - 1].0, Instant::ZERO + length);
        assert_eq!(one[first.len()].0, Instant::ZERO + length + gap);
        assert_eq!(one[first.len()].1, one[0].1, "it is the first one again");
        let all: Vec<_> = messages("trace ssh c2s").take(first.len() + 1).collect();
        assert_eq!(all[..first.len()], one[..first.len()]);
        assert_eq!(all[first.len()], (Instant::ZERO + length + gap, second[0].bytes as usize));
        assert!(messages("trace ssh").take(100_000).is_sorted_by_key(|(at, _)| at));
    }

    #[test]
    fn listed_messages_are_sent_at_their_times_and_repeated() {
        let first: Vec<_> = messages("messages 1000:7 3000:8 5000:9").take(5).collect();
        let at = |ms, bytes| (Instant::from_millis(ms), bytes);
        assert_eq!(first, [at(0, 7), at(2, 8), at(4, 9), at(6, 7), at(8, 8)]);
        assert_eq!(messages("messages 5:1").nth(2).unwrap(), at(2000, 1));
    }

    #[test]
    fn unknown_traffic_is_refused_with_the_known_kinds() {
        let error = |words: &str| words.parse::<Traffic>().unwrap_err().to_string();
        let cases = [
            ("", "something is missing at the end: every, poisson, rate"),
            ("always", "unknown word `always`: expected every, poisson, rate, video"),
            ("messages", "something is missing at the end: microseconds and bytes"),
            ("messages 5", "unknown word `5`: expected microseconds and bytes, as 250000:80"),
            ("messages 5:0", "unknown word `5:0`: expected microseconds and bytes"),
            ("messages 9999999999999999:1", "expected microseconds and bytes"),
            ("messages 5:1 4:1", "unknown word `4:1`: expected a time that is not before"),
            ("every 250ms", "something is missing at the end: size"),
            ("every 250ms of 100", "unknown word `of`: expected size"),
            ("every 250 size 100", "`250` needs one of the units ns, us, ms, s"),
            ("every 0 size 100", "the interval of messages is zero"),
            ("every 1s size 16777217", "expected a number of bytes, at most 16777216"),
            ("messages 0:5 1:16777217", "1:16777217"),
            ("every 1s size 0", "a message must have at least one byte"),
            ("every 1s fast 50 size 10", "unknown word `50`: expected a share such as 50ppm"),
            ("every 1s fast 1000000ppm size 10", "expected a share such as 50ppm"),
            ("poisson 1s fast 50ppm size 10", "unknown word `fast`: expected size"),
            ("every 1s size 10 more", "unknown word `more`: expected nothing more"),
            ("application tetris", "expected casa, rdp, skype, ssh, anarchy-online"),
            ("trace quake", "expected bzflag-tcp, crossfire, ssh or vnc"),
            ("trace ssh flow 7 c2s", "flow 7 of ssh has no messages of c2s: choose one of 0, 1"),
            ("trace ssh both", "unknown word `both`: expected flow, c2s or s2c"),
        ];
        for (words, expected) in cases {
            assert!(error(words).contains(expected), "{words}: {}", error(words));
        }
    }
}
