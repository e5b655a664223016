//! The path of a question: given, or estimated from a capture.

use std::path::Path;
use std::time::Duration;

use rexmit_lab::analysis::{Analysis, DirectionAnalysis};
use rexmit_lab::traffic::Sender;

/// The round-trip time if nothing else is known.
pub const DEFAULT_RTT: Duration = Duration::from_millis(100);
/// The loss rate of each direction if nothing else is known.
pub const DEFAULT_LOSS: f64 = 0.02;

/// The properties of the path that the user gives; the others are estimated.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct PathGiven {
    /// The round-trip time.
    pub rtt: Option<Duration>,
    /// The loss rate of each direction, from 0 to 1.
    pub loss: Option<f64>,
    /// Both directions in netem's notation, instead of the others.
    pub link: Option<String>,
}

impl PathGiven {
    /// Both directions in netem's notation, and a sentence on the properties not given: estimated from the packets of `sender` in a
    /// connection of a capture with ACKs, or assumed.
    pub(super) fn complete(&self, file: &Path, flow: u32, sender: Sender) -> (String, String) {
        if let Some(link) = &self.link {
            return (link.clone(), "The path is given.".to_owned());
        }
        if let (Some(rtt), Some(loss)) = (self.rtt, self.loss) {
            return (link(rtt, &loss_words(loss, None)), "The path is given.".to_owned());
        }
        let analysis = Analysis::open(file, None).ok();
        let directions = analysis.map(|it| it.directions).unwrap_or_default();
        let found = directions.into_iter().find(|it| it.flow == flow && it.direction == sender);
        match found.filter(|it| it.path.rtt_ms.is_some()) {
            Some(found) => self.estimated(&found),
            None => self.assumed(),
        }
    }

    fn estimated(&self, found: &DirectionAnalysis) -> (String, String) {
        let rtt_ms = found.path.rtt_ms.unwrap_or_default();
        let (loss, burst) = (found.path.loss, found.path.burst);
        let losses = self.loss.map_or_else(|| loss_words(loss, burst), |it| loss_words(it, None));
        let path = link(self.rtt.unwrap_or(Duration::from_secs_f64(rtt_ms / 1e3)), &losses);
        let mut parts = Vec::new();
        if self.rtt.is_none() {
            parts.push(format!("a round trip takes {rtt_ms:.1} ms"));
        }
        if self.loss.is_none() {
            let (lost, packets) = (found.path.lost, found.sent.packets);
            let bursts = burst.map_or(String::new(), |it| format!(", {it:.1} in a row on average"));
            parts.push(format!("{lost} of {packets} packets were lost{bursts}"));
        }
        (path, format!("Estimated from the capture: {}.", parts.join("; ")))
    }

    fn assumed(&self) -> (String, String) {
        let (rtt, loss) = (self.rtt.unwrap_or(DEFAULT_RTT), self.loss.unwrap_or(DEFAULT_LOSS));
        let mut parts = Vec::new();
        if self.rtt.is_none() {
            parts.push(format!("a round trip of {} ms", rtt.as_millis()));
        }
        if self.loss.is_none() {
            parts.push(format!("{} % loss", loss * 100.0));
        }
        let about = format!("Assumed, as the file has no ACKs: {}.", parts.join(", "));
        (link(rtt, &loss_words(loss, None)), about)
    }
}

/// One direction of a link, in netem's notation.
fn link(rtt: Duration, losses: &str) -> String {
    format!("delay {}us {losses}", rtt.as_micros() / 2)
}

/// A loss rate, of packets lost at random or, if several are lost in a row on average, by the Gilbert-Elliott model.
/// There, a burst begins with probability p per packet and ends with probability r; on average 1/r packets are lost in
/// a row, and a share p/(p+r) of all.
fn loss_words(loss: f64, burst: Option<f64>) -> String {
    /// Below this mean number of losses in a row, losses are treated as independent.
    const IN_BURSTS: f64 = 1.2;
    let percent = |share: f64| (share * 1e8).round() / 1e6;
    match burst.filter(|it| *it >= IN_BURSTS && loss < 1.0) {
        None => format!("loss {}%", percent(loss)),
        Some(burst) => {
            let r = 1.0 / burst;
            let p = (r * loss / (1.0 - loss)).min(1.0);
            format!("loss gemodel {}% {}%", percent(p), percent(r))
        }
    }
}

#[cfg(test)]
mod tests {
    use rexmit_netsim::path::PathConfig;

    use super::*;

    #[test]
    fn defaults_are_used_for_a_file_without_packets() {
        let complete = |given: PathGiven| given.complete(Path::new("none.csv"), 0, Sender::Client);
        let (link, about) = complete(PathGiven::default());
        assert_eq!(link, "delay 50000us loss 2%");
        assert!(about.contains("a round trip of 100 ms, 2 % loss"), "{about}");
        let rtt = Some(Duration::from_millis(80));
        let (link, about) = complete(PathGiven { rtt, ..PathGiven::default() });
        assert_eq!(link, "delay 40000us loss 2%");
        assert!(about.contains(": 2 % loss"), "{about}");
        let (link, _) = complete(PathGiven { rtt, loss: Some(0.001), link: None });
        assert_eq!(link, "delay 40000us loss 0.1%");
        let own = "delay 7ms".to_owned();
        assert_eq!(complete(PathGiven { link: Some(own.clone()), ..PathGiven::default() }).0, own);
    }

    #[test]
    fn bursts_have_the_rate_and_the_length_that_were_found() {
        assert_eq!(loss_words(0.05, Some(1.05)), "loss 5%");
        // r = 1/2; p/(p + r) = 0.1.
        assert_eq!(loss_words(0.1, Some(2.0)), "loss gemodel 5.555556% 50%");
        for (loss, burst) in [(0.0, None), (0.3, Some(4.0)), (1.0, Some(9.0)), (0.9, Some(1.3))] {
            let words = link(DEFAULT_RTT, &loss_words(loss, burst));
            assert!(words.parse::<PathConfig>().is_ok(), "{words}");
        }
    }
}
