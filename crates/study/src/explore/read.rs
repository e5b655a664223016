//! Settings from the text of a file that they were written to.

use thiserror::Error;
use toml::{Table, Value};

use super::settings::{Rhythm, Settings, SettingsError};
use crate::file::MAX_BYTES;

/// Why a file is not one of [`Settings`].
#[derive(Debug, Error)]
pub enum NotReadable {
    /// Larger than any study.
    #[error("the file has {0} bytes, but a study has at most {MAX_BYTES}")]
    Size(usize),
    /// The file is not TOML.
    #[error("the file is not TOML: {0}")]
    Toml(String),
    /// A field is missing, or has an unexpected value.
    #[error("{0} is missing or not as this page writes it: run the file with `rexmit study run`")]
    Field(&'static str),
    /// More than the settings.
    #[error("the file has more than the settings of this page: run it with `rexmit study run`")]
    More,
    /// Invalid settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

impl Settings {
    /// The settings whose [`text`](Self::text) is `text`, apart from comments and notation. Settings without effect, such as the
    /// queue of a link of unlimited rate, have their default value.
    ///
    /// # Errors
    /// If the file contains anything else: the page would otherwise show other settings than those of the file.
    pub fn read(text: &str) -> Result<Self, NotReadable> {
        if text.len() > MAX_BYTES {
            return Err(NotReadable::Size(text.len()));
        }
        let file = table(text)?;
        let mut settings = Self {
            seeds: integer(&file, "seeds").ok_or(NotReadable::Field("seeds"))?,
            systems: systems(&file).ok_or(NotReadable::Field("the axis `system`"))?,
            ..Self::default()
        };
        let scenario = file.get("scenario").and_then(Value::as_table);
        let scenario = scenario.ok_or(NotReadable::Field("scenario"))?;
        let duration = scenario.get("duration").and_then(Value::as_str);
        settings.duration_s = duration
            .and_then(|text| text.strip_suffix('s')?.parse().ok())
            .ok_or(NotReadable::Field("scenario.duration"))?;
        let link = words(scenario, ["network", "forward"]);
        link.and_then(|words| settings.set_link(&words))
            .ok_or(NotReadable::Field("scenario.network.forward"))?;
        let flow = scenario.get("thin").and_then(|thin| thin.get("flow")?.as_table());
        let flow = flow.ok_or(NotReadable::Field("scenario.thin.flow"))?;
        let unordered = flow.get("unordered").and_then(Value::as_bool);
        settings.ordered = !unordered.ok_or(NotReadable::Field("scenario.thin.flow.unordered"))?;
        let traffic = flow.get("traffic").and_then(Value::as_str);
        traffic
            .and_then(|text| settings.set_traffic(&text.split(' ').collect::<Vec<_>>()))
            .ok_or(NotReadable::Field("scenario.thin.flow.traffic"))?;
        match table(&settings.text()?)? == file {
            true => Ok(settings),
            false => Err(NotReadable::More),
        }
    }

    fn set_traffic(&mut self, words: &[&str]) -> Option<()> {
        match *words {
            ["every", interval, "fast", "50ppm", "size", size] => {
                (self.rhythm, self.interval_ms) = (Rhythm::Every, millis(interval)?);
                self.size = size.parse().ok()?;
            }
            ["poisson", interval, "size", size] => {
                (self.rhythm, self.interval_ms) = (Rhythm::Poisson, millis(interval)?);
                self.size = size.parse().ok()?;
            }
            ["trace", name] => self.rhythm = Rhythm::Trace(name.into()),
            _ => return None,
        }
        Some(())
    }

    fn set_link(&mut self, words: &[&str]) -> Option<()> {
        let ["delay", delay, rest @ ..] = words else { return None };
        self.rtt_ms = millis(delay)? * 2.0;
        let (jitter, rest) = match rest {
            [jitter, "distribution", "normal", "ordered", rest @ ..] => (millis(jitter)?, rest),
            _ => (0.0, rest),
        };
        self.jitter_ms = jitter;
        let (loss, burst, rest) = match rest {
            ["loss", "burst", loss, burst, rest @ ..] => (percent(loss)?, millis(burst)?, rest),
            ["loss", loss, rest @ ..] => (percent(loss)?, 0.0, rest),
            _ => (0.0, 0.0, rest),
        };
        (self.loss_percent, self.burst_ms) = (loss, burst);
        match rest {
            ["rate", rate, "limit", queue] => {
                self.rate_kbit = rate.strip_suffix("kbit")?.parse().ok()?;
                self.queue = queue.parse().ok()?;
            }
            [] => self.rate_kbit = 0,
            _ => return None,
        }
        Some(())
    }
}

fn table(text: &str) -> Result<Table, NotReadable> {
    text.parse::<Table>().map_err(|error| NotReadable::Toml(error.message().to_owned()))
}

fn integer(file: &Table, name: &str) -> Option<u32> {
    file.get(name)?.as_integer()?.try_into().ok()
}

fn systems(file: &Table) -> Option<Vec<String>> {
    let [axis] = &file.get("axis")?.as_array()?[..] else { return None };
    let points = axis.get("point")?.as_array()?.iter();
    points.map(|point| Some(point.get("label")?.as_str()?.to_owned())).collect()
}

fn words<'t>(table: &'t Table, [first, second]: [&str; 2]) -> Option<Vec<&'t str>> {
    Some(table.get(first)?.get(second)?.as_str()?.split(' ').collect())
}

fn millis(word: &str) -> Option<f64> {
    word.strip_suffix("ms")?.parse().ok()
}

fn percent(word: &str) -> Option<f64> {
    word.strip_suffix('%')?.parse().ok()
}
