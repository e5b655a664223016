//! The speed of the simulator for a thin stream, relative to real time: two endpoints, the lossy path between them, and
//! the applications.

use std::time::Duration;

use rexmit_core::{Instant, Seed};
use rexmit_netsim::network::{Context, HostId, Network, Occurrence, PointToPoint};
use rexmit_netsim::path::PathConfig;
use rexmit_sctp::{AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage};

use crate::report::{Row, Target};
use crate::sample::{cpu_time, median};

/// RTT 100 ms, 5 % of the packets lost in each direction.
const PATH: &str = "delay 50ms loss 5%";
const INTERVAL: Duration = Duration::from_millis(250);
const MESSAGE_BYTES: usize = 100;
const HOURS: u64 = 2;
const LIMIT: f64 = 20_000.0;
const PORT: u16 = 5000;

/// The application: one host sends, the other counts what it receives.
struct Game {
    sender: HostId,
    association: Option<AssociationId>,
    message: Vec<u8>,
    end: Instant,
    sent: u64,
    delivered: u64,
}

impl Game {
    fn on(
        &mut self,
        context: &mut Context<'_, Endpoint>,
        occurrence: Occurrence<(AssociationId, Event)>,
    ) {
        let now = context.now();
        match occurrence {
            Occurrence::Event((id, Event::Connected { incoming: false, .. })) => {
                self.association = Some(id);
                context.wake_at(self.sender, now, 0);
            }
            Occurrence::Wake(_) => {
                let id = self.association.expect("connected");
                let message = OutboundMessage::new(0, self.message.clone());
                context.machine().send(now, id, message).expect("there is room");
                self.sent += 1;
                if now + INTERVAL < self.end {
                    context.wake_at(self.sender, now + INTERVAL, 0);
                }
            }
            Occurrence::Event((id, Event::Readable)) => {
                while let Some(message) = context.machine().receive(now, id) {
                    assert_eq!(message.payload.len(), MESSAGE_BYTES);
                    self.delivered += 1;
                }
            }
            Occurrence::Event((_, Event::Closed(reason))) => panic!("closed: {reason:?}"),
            Occurrence::Event(_) => {}
        }
    }
}

/// The measurements of one run.
pub struct Run {
    /// The number of messages, all of which arrived.
    pub messages: u64,
    /// Simulator events.
    pub events: u64,
}

/// Two hours of a game, in virtual time.
///
/// # Panics
/// If not every message arrives.
#[must_use]
pub fn run(seed: u64) -> Run {
    let seed = Seed::from_u64(seed);
    let endpoint = |name: &str, accept| {
        let association = rexmit_sctp::AssociationConfig::rfc9260().into();
        let config = EndpointConfig::default().accept(accept).association(association);
        Endpoint::new(config, &seed.split(name)).expect("the default is valid")
    };
    let path: PathConfig = PATH.parse().expect("the words of a path");
    let mut network = Network::new(&seed);
    let machines = [endpoint("a", false), endpoint("b", true)];
    let pair = PointToPoint::build(&mut network, machines, &path).expect("a new network");
    let [sender, _] = pair.hosts;
    let end = Instant::ZERO + Duration::from_secs(HOURS * 3600);
    network
        .machine_mut(sender)
        .connect(Instant::ZERO, PointToPoint::route(), PORT)
        .expect("the first association");
    let message = vec![0; MESSAGE_BYTES];
    let mut game = Game { sender, association: None, message, end, sent: 0, delivered: 0 };
    // The last lost data is retransmitted after the end.
    let until = end + Duration::from_secs(300);
    network.run_until(until, |context, occurrence| game.on(context, occurrence)).expect("rests");
    assert_eq!(game.delivered, game.sent, "nothing is lost");
    Run { messages: game.sent, events: network.stats().events }
}

/// The speed of the simulator, `repetitions` times.
#[must_use]
pub fn measure(repetitions: usize) -> Vec<Row> {
    let mut speeds = Vec::new();
    let mut last = Run { messages: 0, events: 0 };
    for seed in 0..repetitions as u64 {
        let (done, elapsed) = cpu_time(|| run(seed));
        speeds.push((HOURS * 3600) as f64 / elapsed.as_secs_f64());
        last = done;
    }
    let speed = median(&speeds);
    vec![Row {
        what: format!("{HOURS} h of a game in virtual time"),
        ours: format!("{speed:.0} × real time"),
        against: "limit".into(),
        theirs: format!("{LIMIT:.0} × real time"),
        ratio: Some(speed / LIMIT),
        target: Target::AtLeast(1.0),
        note: format!(
            "4 messages/s of {MESSAGE_BYTES} bytes, {PATH} in both directions: {} messages, all \
             delivered, {} events; one thread.",
            last.messages, last.events
        ),
    }]
}
