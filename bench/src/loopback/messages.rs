//! Small messages per second, in one direction and in both: all contestants take turns.

use super::{Direction, PACKET_BYTES, Peer, Run, Transfer, quinn, rexmit, usrsctp};
use crate::report::{Row, Target};
use crate::sample::{median, median_ratio};

const SIZE: usize = 100;
/// Messages that a receiver has to get per second.
const LIMIT: f64 = 400_000.0;
/// Messages of a run, of both ends together if both send.
const MESSAGES: u64 = 1_000_000;

/// The runs of a contestant, or the error of its first failed one.
type Runs = Result<Vec<Run>, String>;

/// A program, or why it cannot run.
struct Contestant {
    name: &'static str,
    peer: Result<Peer, String>,
    runs: Vec<Run>,
}

impl Contestant {
    fn new(name: &'static str, peer: Result<Peer, String>) -> Self {
        Self { name, peer, runs: Vec::new() }
    }

    /// Adds a run, unless one has failed.
    fn take_turn(&mut self, transfer: Transfer) {
        let Ok(peer) = &self.peer else { return };
        match peer.run(transfer) {
            Ok(run) => self.runs.push(run),
            Err(why) => self.peer = Err(why),
        }
    }

    fn into_runs(self) -> Runs {
        self.peer.map(|_| self.runs)
    }
}

/// The rows of both directions.
pub(super) fn measure(repetitions: usize) -> Vec<Row> {
    let directions = [Direction::OneWay, Direction::BothWays];
    directions.into_iter().flat_map(|direction| rows(direction, repetitions)).collect()
}

fn rows(direction: Direction, repetitions: usize) -> Vec<Row> {
    let what = match direction {
        Direction::OneWay => "messages of 100 bytes over UDP on loopback",
        Direction::BothWays => "messages of 100 bytes over UDP on loopback, both directions",
    };
    let messages = match direction {
        Direction::OneWay => MESSAGES,
        Direction::BothWays => MESSAGES / 2,
    };
    let transfer = Transfer { direction, messages, size: SIZE, packet_bytes: PACKET_BYTES };
    let mut contestants = [
        Contestant::new("rexmit", rexmit::peer(false)),
        Contestant::new("usrsctp", usrsctp::peer()),
        Contestant::new("quinn's streams", quinn::peer(&[quinn::PLAIN])),
        Contestant::new("quinn's datagrams", quinn::peer(&[quinn::PLAIN, quinn::DATAGRAMS])),
    ];
    for _ in 0..repetitions {
        contestants.iter_mut().for_each(|it| it.take_turn(transfer));
    }
    let [ours, rivals @ ..] = contestants;
    let ours = match ours.into_runs() {
        Ok(ours) => ours,
        Err(why) => return vec![Row::not_run(what, "the others", &why)],
    };
    let limit = (direction == Direction::OneWay).then(|| limit_row(what, &ours));
    let rivals = rivals.map(|rival| {
        let name = rival.name;
        let is_reliable = rival.peer.as_ref().is_ok_and(|peer| peer.is_reliable);
        match rival.into_runs() {
            Ok(theirs) => rival_row(what, name, is_reliable, &ours, &theirs),
            Err(why) => Row::not_run(what, name, &why),
        }
    });
    limit.into_iter().chain(rivals).collect()
}

fn limit_row(what: &str, ours: &[Run]) -> Row {
    Row {
        what: what.into(),
        ours: in_words(ours),
        against: "limit".into(),
        theirs: format!("{:.0} k messages/s", LIMIT / 1e3),
        ratio: Some(median_of(ours, Run::messages_per_second) / LIMIT),
        target: Target::AtLeast(1.0),
        note: note(),
    }
}

fn rival_row(what: &str, name: &str, is_reliable: bool, ours: &[Run], theirs: &[Run]) -> Row {
    let loss = if is_reliable {
        String::new()
    } else {
        let percent =
            theirs.iter().map(|run| run.arrived).sum::<f64>() / theirs.len() as f64 * 100.0;
        format!(
            " Datagrams are neither ordered nor retransmitted: {percent:.2} % arrived, and the rate is that of these."
        )
    };
    let rates = |runs: &[Run]| runs.iter().map(Run::messages_per_second).collect::<Vec<_>>();
    Row {
        what: what.into(),
        ours: in_words(ours),
        against: name.into(),
        theirs: in_words(theirs),
        ratio: Some(median_ratio(&rates(ours), &rates(theirs))),
        target: Target::None,
        note: note() + &loss,
    }
}

fn median_of(runs: &[Run], value: impl FnMut(&Run) -> f64) -> f64 {
    median(&runs.iter().map(value).collect::<Vec<_>>())
}

/// The rate of each receiver, then the messages per second of processor time.
fn in_words(runs: &[Run]) -> String {
    let receivers = runs.first().map_or(0, |run| run.receivers.len());
    let rates: Vec<String> = (0..receivers)
        .map(|n| median_of(runs, |run| run.receivers[n].messages_per_second()))
        .map(|rate| format!("{:.0}", rate / 1e3))
        .collect();
    let cpu = median_of(runs, Run::messages_per_cpu_second) / 1e3;
    format!("{} k messages/s, {cpu:.0} k per CPU second", rates.join(" + "))
}

fn note() -> String {
    "Two processes, of one thread each except for usrsctp's; one association, ordered messages, as fast as the receiver gets \
     them; wall time at the receiver, and received messages per second of processor time of both processes. In both directions \
     the ratio is that of the sums. quinn has packets of the same size without protection; a stream has no messages: as many \
     bytes, written 100 at a time."
        .into()
}
