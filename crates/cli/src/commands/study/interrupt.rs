//! Interruption of a study: only the runs in progress are lost.

use std::io;
use std::process;
use std::sync::mpsc;
use std::thread;

use super::bar::Bar;
use crate::failure::{Failure, Kind};
use crate::signals::{Signals, block_on};

/// Ends the process at SIGINT or SIGTERM, with a hint how to continue. Runs in progress may take
/// minutes, so the process does not wait for them.
pub(super) fn watch(bar: &Bar) -> io::Result<()> {
    let bar = bar.clone();
    let (ready, is_ready) = mpsc::channel();
    thread::Builder::new().name("signals".into()).spawn(move || {
        let end = block_on(async {
            let signals = Signals::new();
            // The receiver is gone only if the process ends.
            let _ = ready.send(());
            signals?.stop().await;
            rexmit_perf::kernel::end_all();
            bar.clear();
            let message = "interrupted: finished runs are kept; repeat the command to continue";
            Err::<(), _>(Failure::new(Kind::Interrupted, message))
        });
        if let Err(failure) = end {
            failure.tell();
            process::exit(failure.code().into());
        }
    })?;
    let _ = is_ready.recv();
    Ok(())
}
