//! `--qlog` and `--metrics` of commands that send a load.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use rexmit::Endpoint;
use rexmit::clock::now;
use rexmit_qlog::{About, MakeLog, VantagePoint};

use crate::failure::{Failure, Outcome};
use crate::metrics::{Listener, MetricsOption};
use crate::qlog::{self, Directory};

/// The options.
#[derive(Clone, Debug, Args)]
pub(super) struct SightOptions {
    /// Directory to write a qlog file of each of the first 64 connections to, for qvis and `rexmit trace page`.
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
    #[command(flatten)]
    metrics: MetricsOption,
}

/// The directory for qlog files and the listener for metrics that the options name, opened before the load begins.
#[derive(Debug)]
pub(super) struct Sight {
    logs: Option<Directory>,
    listener: Listener,
}

impl SightOptions {
    /// Creates the directory and listens for readers of the metrics, so that mistakes are reported before the load.
    pub(super) async fn open(&self) -> Result<Sight, Failure> {
        let logs = self.qlog.as_deref().map(Directory::create).transpose()?;
        Ok(Sight { logs, listener: self.metrics.bind().await? })
    }
}

impl Sight {
    /// Begins to trace `endpoints` and to serve their metrics. Returns the logs, to be finished after the load.
    pub(super) fn begin(self, endpoints: &[Endpoint]) -> Logs {
        if let Some(logs) = &self.logs {
            for (number, endpoint) in endpoints.iter().enumerate() {
                let about = About::new(format!("connection {number} of a load"));
                let about = qlog::from_now(about.vantage_point(VantagePoint::Client), now());
                let log = logs.log(&format!("connection{number}"), &about);
                endpoint.set_trace(log.map(|log| log.sink()));
            }
        }
        let endpoints: Arc<[Endpoint]> = endpoints.into();
        let shown = Arc::clone(&endpoints);
        self.listener.serve(move || Endpoint::metrics_of_all(&shown));
        Logs { directory: self.logs, endpoints }
    }
}

/// The files of a load.
#[derive(Debug)]
pub(super) struct Logs {
    directory: Option<Directory>,
    endpoints: Arc<[Endpoint]>,
}

impl Logs {
    /// Ends the traces, and reports files that are not complete.
    pub(super) fn finish(self) -> Outcome {
        let Some(directory) = self.directory else { return Ok(()) };
        self.endpoints.iter().for_each(|endpoint| endpoint.set_trace(None));
        directory.finish()
    }
}
