//! The progress bar of a study, on standard error; none unless that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rexmit_study::runner::Progress;

/// A progress bar that counts runs.
#[derive(Clone)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new(is_hidden: bool) -> Self {
        let target =
            if is_hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let template = "{bar:40}  {pos} of {len} runs, {elapsed} so far{msg}";
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        Self(ProgressBar::with_draw_target(Some(0), target).with_style(style))
    }

    pub(super) fn show(&self, progress: &Progress) {
        self.0.set_length(progress.runs as u64);
        self.0.set_position((progress.done + progress.failed) as u64);
        let left = progress.left.map(|left| format!(", about {} left", words(left)));
        let failed = (progress.failed > 0).then(|| format!(", {} failed", progress.failed));
        self.0.set_message(left.unwrap_or_default() + &failed.unwrap_or_default());
    }

    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// A duration, rounded for people.
pub(super) fn words(duration: Duration) -> String {
    let seconds = duration.as_secs_f64().round() as u64;
    match seconds {
        0 => "a second".into(),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
