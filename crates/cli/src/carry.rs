//! Standard input and output as the two directions of an association.
//!
//! Both block, so each has a thread of its own. The queues in between are short, so a slow reader
//! of the output throttles the peer, and a slow network throttles the reading of the input.

use std::fs::OpenOptions;
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use rexmit::clock::{now, sleep_until};
use rexmit::{Association, AssociationStatistics, CloseReason, Event, OutboundMessage, SendError};
use tokio::sync::{Notify, mpsc};

use crate::events::in_words;
use crate::failure::{Failure, Kind, Outcome};
use crate::signals::Signals;
use crate::values;

/// Time for which the side that ended the association keeps answering a peer that missed the last
/// packet. The peer retransmits after its timeout, one second or a little more (RFC 9260 §8.4,
/// §16).
pub(crate) const LINGER: Duration = Duration::from_millis(1500);

/// Input that arrives within this time after the peer ended the association counts as intended for that association.
const INPUT_GRACE: Duration = Duration::from_millis(100);

/// Messages queued between a thread and the association.
const QUEUE: usize = 64;
/// Longer lines are split into several messages.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// The options of carrying data: message boundaries, streams and the end.
#[derive(Clone, Debug, Args)]
pub(crate) struct Carry {
    /// Send pieces of the input as they are read, instead of one message per line.
    #[arg(long, visible_alias = "messages")]
    binary: bool,
    /// Largest message of --binary, in bytes; at most 262144.
    #[arg(long, value_name = "SIZE", default_value = "16kb", value_parser = values::message_size,
          requires = "binary")]
    chunk: usize,
    /// Number of streams, used in turn; order is kept within a stream only.
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) streams: u16,
    /// Allow the peer to receive each message as soon as it arrives, in any order.
    #[arg(long)]
    unordered: bool,
    /// At the end of the input, keep the association until the peer's input has ended too; an empty
    /// input always does. SCTP has no half-closed state, so the end of the input is signalled by a
    /// reset of all outgoing streams (RFC 6525).
    #[arg(long)]
    keep_open: bool,
    /// Print events as they happen, and statistics at the end, on standard error.
    #[arg(short, long)]
    verbose: bool,
    /// Print the statistics at the end as JSON: on standard error, after everything else that is printed there, or to a
    /// file of its own.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    json: Option<Option<PathBuf>>,
}

fn not_written(file: &Path, error: &io::Error) -> Failure {
    let what = format!("{}: {error}; choose another file with --json", file.display());
    Failure::new(Kind::File, what)
}

/// State shared by the two directions.
#[derive(Default)]
struct Shared {
    peer_input_ended: Notify,
}

/// How the input and the association ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum InputEnd {
    /// All of it was sent, then this side ended the association.
    Sent,
    /// The association ended first, with nothing left to send.
    Overtaken,
    /// The association ended first, before all of the input was sent.
    Unsent,
}

impl InputEnd {
    /// The result if the association ended first, possibly before any input was read.
    async fn overtaken(mut input: mpsc::Receiver<Bytes>) -> Self {
        tokio::select! {
            Some(_) = input.recv() => Self::Unsent,
            () = sleep_until(now() + INPUT_GRACE) => Self::Overtaken,
        }
    }
}

impl Carry {
    /// Carries data until the association has ended or `signals` request a stop. Returns whether
    /// this side ended the association.
    pub(crate) async fn run(
        &self,
        association: Association,
        signals: &Signals,
    ) -> Result<bool, Failure> {
        let shared = Shared::default();
        let (output, writer) = spawn_writer();
        let traffic = async {
            tokio::join!(
                self.send(&association, &shared),
                receive(&association, output),
                self.watch(&association, &shared),
            )
        };
        let (input, received, failed) = tokio::select! {
            outcome = traffic => outcome,
            () = signals.stop() => {
                association.abort(b"interrupted");
                return Err(Failure::new(Kind::Interrupted, "interrupted: the association was aborted"));
            }
        };
        received?;
        writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let reason = association.closed().await;
        self.tell_statistics(&association.statistics())?;
        judge(&reason, failed, input)?;
        Ok(input == InputEnd::Sent)
    }

    /// Sends the input, then shuts the association down.
    async fn send(&self, association: &Association, shared: &Shared) -> InputEnd {
        let mut input = self.spawn_reader();
        let mut has_input = false;
        let mut streams = (0..association.outbound_streams().min(self.streams)).cycle();
        loop {
            let payload = tokio::select! {
                payload = input.recv() => payload,
                _ = association.closed() => return InputEnd::overtaken(input).await,
            };
            let Some(payload) = payload else { break };
            has_input = true;
            let message = OutboundMessage::new(streams.next().unwrap_or(0), payload)
                .unordered(self.unordered);
            if let Err(error) = association.send(message).await {
                if error != SendError::Closing {
                    eprintln!("rexmit: {error}");
                }
                association.closed().await;
                return InputEnd::Unsent;
            }
        }
        // Without input, this side only listens.
        if self.keep_open || !has_input {
            if let Err(error) = association.reset_streams(&[]) {
                self.note(&format!(
                    "the end of the input cannot be signalled to the peer: {error}"
                ));
            }
            tokio::select! {
                () = shared.peer_input_ended.notified() => {}
                _ = association.closed() => return InputEnd::Overtaken,
            }
        }
        association.shutdown().await;
        InputEnd::Sent
    }

    /// Reads the input in a thread that lives as long as the process.
    fn spawn_reader(&self) -> mpsc::Receiver<Bytes> {
        let (to, from) = mpsc::channel(QUEUE);
        let chunk = self.binary.then_some(self.chunk);
        std::thread::spawn(move || {
            let mut input = io::stdin().lock();
            loop {
                let mut payload = Vec::new();
                let read = match chunk {
                    Some(bytes) => read_some(&mut input, bytes, &mut payload),
                    None => {
                        (&mut input).take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut payload)
                    }
                };
                match read {
                    Ok(0) => return,
                    Ok(_) if to.blocking_send(payload.into()).is_err() => return,
                    Ok(_) => {}
                    Err(error) => return eprintln!("rexmit: the input cannot be read: {error}"),
                }
            }
        });
        from
    }

    /// Prints events. Returns the number of messages that failed.
    async fn watch(&self, association: &Association, shared: &Shared) -> u64 {
        let mut failed = 0;
        while let Some(event) = association.event().await {
            match &event {
                Event::PeerResetStreams(_) | Event::PeerShutdown => {
                    shared.peer_input_ended.notify_one();
                }
                Event::MessageFailed { .. } => failed += 1,
                Event::EventsDropped(missed) => failed += missed.messages_failed,
                _ => {}
            }
            self.note(&in_words(&event));
        }
        failed
    }

    /// Checks, before anything is sent, that the file of `--json` can be written.
    pub(crate) fn check(&self) -> Outcome {
        if let Some(Some(file)) = &self.json {
            let opened = OpenOptions::new().append(true).create(true).open(file);
            opened.map_err(|error| not_written(file, &error))?;
        }
        Ok(())
    }

    fn note(&self, text: &str) {
        if self.verbose {
            eprintln!("{text}");
        }
    }

    fn tell_statistics(&self, statistics: &AssociationStatistics) -> Outcome {
        if let Some(file) = &self.json {
            let line = serde_json::to_string(statistics).map_err(io::Error::from)?;
            match file {
                Some(file) => {
                    let written = std::fs::write(file, line + "\n");
                    written.map_err(|error| not_written(file, &error))?;
                }
                None => eprintln!("{line}"),
            }
        } else if self.verbose {
            let (traffic, recovery) = (&statistics.traffic, &statistics.recovery);
            eprintln!(
                "sent {} messages, {} bytes, in {} packets; {} chunks retransmitted, {} of them \
                 spuriously\nreceived {} messages, {} bytes, in {} packets",
                traffic.messages_accepted,
                traffic.payload_accepted_bytes,
                traffic.packets_sent,
                recovery.retransmitted.total(),
                recovery.spurious.total(),
                traffic.messages_delivered,
                traffic.payload_delivered_bytes,
                traffic.packets_received,
            );
            for path in &statistics.paths {
                let (remote, bytes) = (path.remote, path.max_packet_bytes);
                eprintln!("path to {remote}: SCTP packets of up to {bytes} bytes");
            }
        }
        Ok(())
    }
}

/// Reads at most `bytes`, without waiting for more than the first.
fn read_some(input: &mut impl Read, bytes: usize, payload: &mut Vec<u8>) -> io::Result<usize> {
    payload.resize(bytes, 0);
    let read = loop {
        match input.read(payload) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    payload.truncate(read);
    Ok(read)
}

async fn receive(association: &Association, output: mpsc::Sender<Bytes>) -> Outcome {
    while let Some(message) = association.recv().await {
        if output.send(message.payload).await.is_err() {
            association.abort(b"the output was closed");
            return Err(Failure::new(
                Kind::Failed,
                "the output was closed: the association was aborted",
            ));
        }
    }
    Ok(())
}

type Writer = std::thread::JoinHandle<io::Result<()>>;

/// Writes the output in a thread that ends when the returned sender is dropped.
fn spawn_writer() -> (mpsc::Sender<Bytes>, Writer) {
    let (to, mut from) = mpsc::channel::<Bytes>(QUEUE);
    let writer = std::thread::spawn(move || {
        let mut output = io::stdout().lock();
        while let Some(payload) = from.blocking_recv() {
            output.write_all(&payload)?;
            if from.is_empty() {
                output.flush()?;
            }
        }
        output.flush()
    });
    (to, writer)
}

/// The exit code for the end of the association.
fn judge(reason: &CloseReason, failed: u64, input: InputEnd) -> Outcome {
    let lost = match failed {
        0 => String::new(),
        1 => "; a message was possibly not delivered".into(),
        n => format!("; {n} messages were possibly not delivered"),
    };
    let words = match reason {
        CloseReason::Shutdown if input == InputEnd::Unsent => {
            "the peer ended the association before all of the input was sent: it may want \
             --keep-open"
                .into()
        }
        CloseReason::Shutdown if failed == 0 => return Ok(()),
        reason => reason.to_string(),
    };
    Err(Failure::new(Kind::Peer, format!("{words}{lost}")))
}
