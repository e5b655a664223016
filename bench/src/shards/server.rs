//! The server: an async endpoint that receives all messages of all associations, as an application does.

use std::io::BufRead;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rexmit::{Endpoint, EndpointConfig};
use rustix::thread::{Pid, gettid};

use super::{SCTP_PORT, Snapshot};
use crate::sample::{monotonic, process_cpu_time};

/// A counter of received messages for each association, so that threads share none.
type Counters = Arc<Mutex<Vec<Arc<AtomicU64>>>>;

pub(super) fn run(shards: usize) -> ExitCode {
    match serve(shards) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(shards: usize) -> Result<(), Box<dyn std::error::Error>> {
    let threads: Arc<Mutex<Vec<Pid>>> = Arc::default();
    let started = Arc::clone(&threads);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(shards)
        .enable_all()
        .on_thread_start(move || lock(&started).push(gettid()))
        .build()?;
    let _guard = runtime.enter();
    let config = EndpointConfig::default().port(SCTP_PORT).accept(true).shards(shards);
    let endpoint = Endpoint::bind_unencrypted((Ipv4Addr::LOCALHOST, 0).into(), config)?;
    let counters = Counters::default();
    runtime.spawn(accept(endpoint.clone(), Arc::clone(&counters)));
    println!("{}", endpoint.local_addr().port());
    for line in std::io::stdin().lock().lines() {
        line?;
        let statistics = endpoint.statistics();
        let snapshot = Snapshot {
            messages: lock(&counters).iter().map(|it| it.load(Ordering::Relaxed)).sum(),
            at: monotonic().as_secs_f64(),
            cpu_seconds: process_cpu_time().as_secs_f64(),
            thread_seconds: lock(&threads).iter().map(|&id| thread_seconds(id)).collect(),
            associations: endpoint.association_counts(),
            redirected: statistics.packets_redirected + statistics.packets_dropped,
        };
        println!("{}", serde_json::to_string(&snapshot)?);
    }
    // Its clients have gone.
    runtime.shutdown_background();
    Ok(())
}

async fn accept(endpoint: Endpoint, counters: Counters) {
    while let Some(association) = endpoint.accept().await {
        let received = Arc::new(AtomicU64::new(0));
        lock(&counters).push(Arc::clone(&received));
        tokio::spawn(async move {
            while association.recv().await.is_some() {
                received.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// The processor time of a thread of this process.
fn thread_seconds(id: Pid) -> f64 {
    let path = format!("/proc/self/task/{}/schedstat", id.as_raw_nonzero());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}
