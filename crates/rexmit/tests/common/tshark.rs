//! Wireshark's verdict on a capture.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Wireshark's command-line program.
pub(crate) struct Tshark;

/// The path of tshark; prints a note and returns `None` if it is not installed.
pub(crate) fn find() -> Option<Tshark> {
    if Command::new("tshark").arg("--version").output().is_err() {
        rexmit_testkit::not_run("`tshark` is not installed (package tshark)");
        return None;
    }
    Some(Tshark)
}

impl Tshark {
    /// The number of packets in a capture that match a display filter; checksums are verified.
    pub(crate) fn count(&self, capture: &Path, filter: &str) -> usize {
        self.field(capture, filter, "frame.number").lines().count()
    }

    /// The value of a field in the packets that match a display filter, one line for each.
    pub(crate) fn field(&self, capture: &Path, filter: &str, field: &str) -> String {
        let mut command = Command::new("tshark");
        command.arg("-r").arg(capture).args(["-o", "tcp.check_checksum:TRUE"]);
        // The payload is data, whatever protocol the ports belong to: random bytes on port 80 are no HTTP.
        command.args(["-d", "tcp.port==1-65535,data"]);
        command.args(["-Y", filter, "-T", "fields", "-e", field]);
        super::netns::output(&mut command)
    }
}

/// A directory for a test; removed when dropped.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("rexmit-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("a directory");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
