//! A browser without a screen.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use clap::ValueEnum;

/// The browsers that can be opened.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Browser {
    Chromium,
    Firefox,
}

impl Browser {
    /// Opens `url` with an empty profile in this directory.
    pub(crate) fn open(self, url: &str, profile: &Path) -> std::io::Result<Child> {
        let mut command = match self {
            Self::Chromium => {
                let mut command = Command::new("chromium");
                command
                    .args(["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"])
                    .args(["--disable-background-networking", "--disable-component-update"])
                    .args(["--disable-background-timer-throttling", "--disable-dev-shm-usage"])
                    .args(["--disable-renderer-backgrounding", "--remote-debugging-port=0"])
                    .arg("--window-size=1000,790")
                    .arg(format!("--user-data-dir={}", profile.display()));
                command
            }
            Self::Firefox => {
                let mut command = Command::new("firefox-esr");
                command.args(["--no-remote", "--new-instance", "--profile"]).arg(profile);
                command.env("HOME", profile);
                command
            }
        };
        command.arg("--headless").arg(url).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    }
}
