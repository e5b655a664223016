//! Traffic and a path, and the study that replays it.

use std::path::Path;
use std::time::Duration;

use rexmit_lab::traffic::{Sender, Trace, TraceError};
use thiserror::Error;

use super::candidate::{Candidate, candidates};
use super::path::PathGiven;
use crate::file::{MAX_BYTES, Study};
use crate::mistake::Mistakes;

/// Runs per profile.
pub const DEFAULT_SEEDS: u64 = 5;
/// The longest part of a capture that is replayed.
pub const MAX_DURATION: Duration = Duration::from_secs(600);

/// Traffic, and the path over which it is sent.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    /// The name of the traffic.
    pub name: String,
    /// Microseconds and bytes of each message.
    messages: Vec<(u64, u32)>,
    /// The number of the connection.
    flow: u32,
    /// The part of the traffic that is replayed, and the source of the path's properties.
    about: String,
    /// Both directions of the path, in netem's notation.
    pub link: String,
    /// Whether messages are delivered in order.
    pub is_ordered: bool,
    /// Runs per profile.
    pub seeds: u64,
}

/// Why a question has no answer.
#[derive(Debug, Error)]
pub enum QuestionError {
    /// No message in this direction.
    #[error("{0} has no message {1}: choose the direction {2}")]
    Silent(String, &'static str, &'static str),
    /// No such flow.
    #[error("{0} has no flow {1}: choose one of {2}")]
    UnknownFlow(String, u32, String),
    /// There is only one message, or all are sent at the same time.
    #[error("{0} is too short: at least two messages at different times are needed")]
    TooShort(String),
    /// An invalid link.
    #[error("the link is not valid: {0}")]
    Link(#[from] Mistakes),
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] TraceError),
}

impl Question {
    /// The traffic of `sender` in a file (trace or capture), over a path that is given or estimated from the file.
    ///
    /// # Errors
    /// If the file cannot be read, or has no such traffic.
    pub fn open(
        file: &Path,
        flow: Option<u32>,
        sender: Sender,
        given: &PathGiven,
    ) -> Result<Self, QuestionError> {
        let mut question = Self::new(&Trace::open(file)?, flow, sender, String::new())?;
        let (link, about) = given.complete(file, question.flow, sender);
        question.about = format!("{}\n{about}", question.about);
        question.link = link;
        Ok(question)
    }

    /// The traffic of `sender` in `trace`: of `flow`, or of the flow with most messages; at most [`MAX_DURATION`] of it, and
    /// no more than a study can contain.
    ///
    /// # Errors
    /// If there is no such traffic.
    pub fn new(
        trace: &Trace,
        flow: Option<u32>,
        sender: Sender,
        link: String,
    ) -> Result<Self, QuestionError> {
        let name = trace.name.clone();
        let flows = trace.flows.iter().filter(|it| flow.is_none_or(|id| it.id == id));
        let busiest = flows.max_by_key(|flow| flow.messages(sender).len());
        let (side, other) = match sender {
            Sender::Client => ("from the side that connected (c2s)", "s2c"),
            Sender::Server => ("from the side that accepted (s2c)", "c2s"),
        };
        if let (None, Some(flow)) = (busiest, flow) {
            let known: Vec<_> = trace.flows.iter().map(|flow| flow.id.to_string()).collect();
            return Err(QuestionError::UnknownFlow(name, flow, known.join(", ")));
        }
        let all = busiest.map(|flow| flow.messages(sender)).filter(|all| !all.is_empty());
        let (Some(flow), Some(all)) = (busiest, all) else {
            return Err(QuestionError::Silent(name, side, other));
        };
        let begin = all[0].at;
        let within = all.iter().map(|it| (it.at - begin, it.bytes));
        let within = within.take_while(|(at, _)| *at < MAX_DURATION);
        let mut messages: Vec<(u64, u32)> =
            within.map(|(at, bytes)| (at.as_micros() as u64, bytes)).collect();
        // The remainder is for the rest of the study.
        let room = MAX_BYTES - MAX_BYTES / 16;
        let ends = messages.iter().scan(0, |end, message| {
            *end += word(*message).len() + 1;
            Some(*end)
        });
        let count = ends.take_while(|end| *end <= room).count();
        messages.truncate(count);
        if messages.last().is_none_or(|last| last.0 == 0) {
            return Err(QuestionError::TooShort(name));
        }
        let seconds = messages[messages.len() - 1].0 as f64 / 1e6;
        let (taken, of) = (messages.len(), all.len());
        let about = format!("flow {}, {side}: {taken} of {of} messages, {seconds:.0} s", flow.id);
        let flow = flow.id;
        Ok(Self { name, messages, flow, about, link, is_ordered: false, seeds: DEFAULT_SEEDS })
    }

    /// The study that answers the question.
    ///
    /// # Errors
    /// If the link is not valid.
    pub fn study(&self) -> Result<Study, QuestionError> {
        let seconds = self.messages.last().map_or(1, |last| last.0 / 1_000_000 + 1);
        let words: Vec<String> = self.messages.iter().copied().map(word).collect();
        // A string of JSON is one of TOML, but for this character.
        let quoted = |text: &str| serde_json::Value::from(text.replace('\u{7f}', "")).to_string();
        let points: String = candidates(self.is_ordered).map(Candidate::point).collect();
        let text = format!(
            "title = {title}\nabout = {about}\nseeds = {seeds}\n\
             costs = [\"flow.two_way.packets_per_message\", \"flow.two_way.wire_bytes_per_payload_byte\"]\n\n\
             [scenario]\nduration = \"{seconds}s\"\nnetwork.forward = {link}\n\n\
             [scenario.thin.flow]\nunordered = {unordered}\ntraffic = \"messages {words}\"\n\n\
             [[axis]]\nname = \"profile\"\n{points}\n\
             [[figure]]\ntitle = \"Latency\"\nabout = \"Share of messages with at least this latency.\"\nkind = \"ccdf\"\n\
             x = \"flow.latency\"\nx_axis = {{ log = true }}\n\n\
             [[figure]]\ntitle = \"Gain and cost\"\nabout = \"One point per run; lower left is better.\"\nkind = \"scatter\"\n\
             x = \"flow.two_way.wire_bytes_per_payload_byte\"\ny = \"flow.latency.p999\"\n",
            title = quoted(&format!("{} over {}", self.name, self.link)),
            about = quoted(&self.about),
            seeds = self.seeds,
            link = quoted(&self.link),
            unordered = !self.is_ordered,
            words = words.join(" "),
        );
        Ok(Study::parse("advice", &text)?)
    }
}

fn word((at, bytes): (u64, u32)) -> String {
    format!("{at}:{bytes}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexmit_lab::scenario::execute;

    use crate::advice::{Advice, DEFAULT_MAX_COST};

    const LINK: &str = "delay 50ms loss 5%";

    fn trace(messages: usize, gap_ms: u64) -> Trace {
        let row = |n: usize| {
            format!("mine,1,s2c,{},{}\n", 7_000_000 + n as u64 * gap_ms * 1000, 100 + n % 3)
        };
        let rows: String = (0..messages).map(row).collect();
        let text = format!("trace,flow_id,direction,time_us,payload_bytes\nmine,0,c2s,5,9\n{rows}");
        Trace::from_bytes("mine.csv", text.as_bytes()).unwrap()
    }

    fn question(trace: &Trace) -> Question {
        Question::new(trace, None, Sender::Server, LINK.to_owned()).unwrap()
    }

    #[test]
    fn a_capture_is_replayed_under_every_profile() {
        let study = Question { seeds: 1, ..question(&trace(240, 250)) }.study().unwrap();
        let page = study.page(|document| execute(&document.scenario, document.seed).ok());
        let advice = Advice::new(&page, DEFAULT_MAX_COST);
        let profiles: Vec<_> = advice.rows.iter().map(|row| row.profile.as_str()).collect();
        let expected: Vec<_> = candidates(false).map(|it| it.label).collect();
        assert_eq!(profiles, expected);
        // Tests have the rivals; those that deliver in order only do not fit.
        assert!(profiles.contains(&"quinn tuned") && !profiles.contains(&"kcp turbo"));
        assert!(advice.about.contains("flow 1") && advice.about.contains("240 of 240"));
        let best = advice.rows.iter().find(|row| Some(&row.profile) == advice.recommended.as_ref());
        let best = best.unwrap();
        assert!(best.p999_ms < advice.rows[0].p999_ms);
        assert!(advice.to_string().contains(&format!("Choose {}: 99.9 %", best.profile)));
    }

    #[test]
    fn long_captures_are_cut_to_what_a_study_may_have() {
        let question = question(&trace(80_000, 7));
        assert!((60_000..80_000).contains(&question.messages.len()));
        assert!(question.study().unwrap().text.len() <= MAX_BYTES);
        let question = self::question(&trace(2000, 1000));
        assert_eq!(question.messages.len(), 600, "ten minutes");
        // Ten minutes at 62.5 messages per second are not cut.
        assert_eq!(self::question(&trace(40_000, 16)).messages.len(), 37_500);
    }

    #[test]
    fn traffic_and_links_that_are_none_are_refused() {
        let of = |trace: &Trace, flow, sender| {
            Question::new(trace, flow, sender, LINK.to_owned()).unwrap_err().to_string()
        };
        let trace = trace(5, 100);
        assert_eq!(
            of(&trace, Some(0), Sender::Server),
            "mine has no message from the side that accepted (s2c): choose the direction c2s"
        );
        assert_eq!(of(&trace, Some(9), Sender::Server), "mine has no flow 9: choose one of 0, 1");
        assert!(of(&trace, None, Sender::Client).contains("at least two messages"));
        let wrong = Question { link: "delay fast\"".into(), ..question(&trace) };
        assert!(wrong.study().unwrap_err().to_string().contains("fast"));
    }

    #[test]
    fn ordered_traffic_has_tcp_and_kcp_among_its_candidates() {
        let ordered =
            Question { seeds: 1, is_ordered: true, ..question(&trace(40, 100)) }.study().unwrap();
        let page = ordered.page(|document| execute(&document.scenario, document.seed).ok());
        let advice = Advice::new(&page, DEFAULT_MAX_COST);
        let profiles: Vec<_> = advice.rows.iter().map(|row| row.profile.as_str()).collect();
        assert!(profiles.contains(&"tcp-interactive") && profiles.contains(&"kcp tuned"));
        assert_eq!(advice.rows.len(), candidates(true).count(), "each has run");
    }
}
