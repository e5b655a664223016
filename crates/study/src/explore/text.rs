//! The text of the study file with these settings.

use super::settings::{Rhythm, Settings, SettingsError};
use crate::advice::Candidate;
use crate::file::Study;

/// The name of the study, and of its file without the extension.
pub const NAME: &str = "lab";

const QUANTITIES: &str = "\
costs = [
    \"flow.latency.{p50,p99,p999,max}\",
    \"flow.two_way.{packets_per_message,wire_bytes_per_payload_byte}\",
    \"flow.undelivered\",
]";

impl Settings {
    /// The study.
    ///
    /// # Errors
    /// If the settings are not valid.
    pub fn study(&self) -> Result<Study, SettingsError> {
        Ok(Study::parse(NAME, &self.text()?)?)
    }

    /// The text of the study's file. Valid settings with the same meaning have the same text.
    ///
    /// # Errors
    /// If the settings are not valid.
    pub fn text(&self) -> Result<String, SettingsError> {
        self.validate()?;
        let points: String = self.chosen()?.into_iter().map(Candidate::point).collect();
        let bounds: Vec<String> = self.bounds().iter().map(|it| format!("{:?}", it.0)).collect();
        let first = &self.systems[0];
        let beside = self.bounds().iter().map(|(name, label)| {
            format!(
                "    {{ label = \"{label}\", quantity = \"flow.bound.{name}\", at.system = \"{first}\" }},\n"
            )
        });
        Ok(format!(
            "# `rexmit study run ./{NAME}.toml` runs it; the page of `rexmit lab serve` can load it.\n\
             title = \"{title}\"\nabout = \"{about}\"\nseeds = {seeds}\n{QUANTITIES}\n\n\
             [scenario]\nduration = \"{duration}s\"\nnetwork.forward = \"{link}\"\n\n\
             [scenario.thin.flow]\ntraffic = \"{traffic}\"\nunordered = {unordered}\nbounds = [{bounds}]\n\n\
             [[axis]]\nname = \"system\"\n{points}\n\
             [[figure]]\ntitle = \"Latency\"\nabout = \"Share of messages with at least this latency.\"\n\
             kind = \"ccdf\"\nx = \"flow.latency\"\nx_axis = {{ label = \"latency\", log = true }}\n\
             y_axis = {{ label = \"share of messages\", range = [{rarest}, 1.15] }}\nbeside = [\n{beside}]\n",
            title = self.title(),
            about = "Latency from the intended sending of a message to its delivery, and what it costs.",
            seeds = self.seeds,
            duration = self.duration_s,
            link = self.link(),
            traffic = self.traffic(),
            rarest = self.rarest(),
            unordered = !self.ordered,
            bounds = bounds.join(", "),
            beside = beside.collect::<String>(),
        ))
    }

    fn title(&self) -> String {
        let messages = match &self.rhythm {
            Rhythm::Every => format!("{} bytes every {} ms", self.size, self.interval_ms),
            Rhythm::Poisson => {
                format!("{} bytes every {} ms on average", self.size, self.interval_ms)
            }
            Rhythm::Trace(name) => format!("The trace {name}"),
        };
        format!(
            "{messages} over a round trip of {} ms with {} % loss",
            self.rtt_ms, self.loss_percent
        )
    }

    /// The messages, in the notation of studies. The clock of the sender is fast by 50 ppm, so that messages do not
    /// coincide with timers and acknowledgements again and again.
    pub(super) fn traffic(&self) -> String {
        let Self { interval_ms, size, .. } = self;
        match &self.rhythm {
            Rhythm::Every => format!("every {interval_ms}ms fast 50ppm size {size}"),
            Rhythm::Poisson => format!("poisson {interval_ms}ms size {size}"),
            Rhythm::Trace(name) => format!("trace {name}"),
        }
    }

    /// Both directions of the link, in netem's notation.
    fn link(&self) -> String {
        let mut words = format!("delay {}ms", self.rtt_ms / 2.0);
        if self.jitter_ms > 0.0 {
            words += &format!(" {}ms distribution normal ordered", self.jitter_ms);
        }
        match (self.loss_percent, self.burst_ms) {
            (0.0, _) => {}
            (loss, 0.0) => words += &format!(" loss {loss}%"),
            (loss, burst) => words += &format!(" loss burst {loss}% {burst}ms"),
        }
        if self.rate_kbit > 0 {
            words += &format!(" rate {}kbit limit {}", self.rate_kbit, self.queue);
        }
        words
    }

    /// The power of ten at or below the share that a single message of a system is. Bounds go on below it.
    fn rarest(&self) -> f64 {
        let messages = self.work_of_run().0.max(1) * u64::from(self.seeds);
        (10.0_f64).powi(-((messages as f64).log10().ceil() as i32))
    }

    /// The bounds of the latency that are defined for these settings, with their labels. They assume that no ACK is lost and no
    /// packet waits, which is the best case; a mean delay is no bound if there is jitter.
    fn bounds(&self) -> &'static [(&'static str, &'static str)] {
        const BOTH: [(&str, &str); 2] =
            [("reactive", "bound without copies"), ("bundled", "bound with bundled copies")];
        match (self.jitter_ms, &self.rhythm) {
            (0.0, Rhythm::Every) => &BOTH,
            (0.0, _) => &BOTH[..1],
            _ => &[],
        }
    }
}
