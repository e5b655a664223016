//! Counts what the targets of whole exchanges feed to endpoints, so that `make fuzz` counts packets and not exchanges.
//!
//! An input is a packet that reaches an endpoint as no correct peer and no perfect network delivers it: it is invented or
//! changed, joined with another one, repeated, or overtaken. Packets that are delivered as they were sent, and lost ones, are
//! not counted.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

static INPUTS: AtomicU64 = AtomicU64::new(0);
/// Where `scripts/fuzz` reads the count.
static REPORT: OnceLock<Option<File>> = OnceLock::new();

/// Counts an input.
pub(crate) fn count() {
    INPUTS.fetch_add(1, Ordering::Relaxed);
}

/// Writes the count to the file that `REXMIT_FUZZ_INPUTS` names. Called at the end of each exchange: libFuzzer ends the
/// process without notice.
pub(crate) fn report() {
    let open = || File::create(std::env::var_os("REXMIT_FUZZ_INPUTS")?).ok();
    if let Some(file) = REPORT.get_or_init(open) {
        // Without the count, executions are counted.
        let _ = file.write_all_at(&INPUTS.load(Ordering::Relaxed).to_le_bytes(), 0);
    }
}
