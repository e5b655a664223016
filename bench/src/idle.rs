//! The cost of an idle association: its memory, the processor time of its heartbeats, and the additional cost of
//! packets of other associations.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use rexmit_core::{Instant, Machine, Route, Seed};
use rexmit_sctp::{AssociationId, Endpoint, EndpointConfig, Event, OutboundMessage};

use crate::report::{Row, Target};
use crate::sample::{cpu_time, median, median_ratio};

const FEW: u32 = 100;
const SOME: u32 = 1000;
const MANY: u32 = 100_000;
const LIMIT_BYTES: f64 = 4096.0;
const PORT: u16 = 5000;
const MESSAGE_BYTES: usize = 100;
/// The duration of the idle phase, which includes the first heartbeat.
const SILENCE: Duration = Duration::from_secs(65);
const BURST_MESSAGES: u32 = 100;
const PING_PONGS: u32 = 20_000;

/// The traffic of an association before it became idle.
#[derive(Clone, Copy)]
pub enum Past {
    /// The association was established, and no message was sent.
    None,
    /// One message each way.
    Message,
    /// A hundred messages at once in each direction.
    Burst,
}

/// A client and a server endpoint, directly connected, with any number of associations between them.
pub struct Crowd {
    now: Instant,
    client: Endpoint,
    server: Endpoint,
    of_client: Vec<AssociationId>,
    of_server: Vec<AssociationId>,
    packet: Vec<u8>,
    packets: u64,
}

/// The route of an association: each has its own addresses, by which the endpoints distinguish them.
fn route(number: u32) -> Route {
    let address = |network: u32| {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::from_bits((network << 24) + number + 1)), 9899)
    };
    Route { local: address(10), remote: address(11) }
}

impl Crowd {
    /// Establishes this many associations with the given history.
    ///
    /// # Panics
    /// If one of them is not established, or a message not delivered.
    #[must_use]
    pub fn new(associations: u32, past: Past) -> Self {
        let endpoint = |seed, accept| {
            let config = EndpointConfig::default().accept(accept);
            Endpoint::new(config, &Seed::from_u64(seed)).expect("the default is valid")
        };
        let mut crowd = Self {
            now: Instant::from_millis(1000),
            client: endpoint(1, false),
            server: endpoint(2, true),
            of_client: Vec::new(),
            of_server: Vec::new(),
            packet: Vec::new(),
            packets: 0,
        };
        for number in 0..associations {
            crowd.client.connect(crowd.now, route(number), PORT).expect("there is room");
            crowd.pump();
        }
        assert_eq!(crowd.of_client.len(), associations as usize);
        assert_eq!(crowd.of_server.len(), associations as usize);
        for number in 0..associations as usize {
            match past {
                Past::None => {}
                Past::Message => crowd.ping_pong(number, 1),
                Past::Burst => crowd.ping_pong(number, BURST_MESSAGES),
            }
        }
        // Until the last acknowledgement was sent.
        crowd.run_for(Duration::from_secs(1));
        assert!(crowd.client.is_idle() && crowd.server.is_idle());
        crowd
    }

    /// Exchanges packets until both are idle, and discards the events.
    fn pump(&mut self) {
        let (now, packet) = (self.now, &mut self.packet);
        loop {
            let before = self.packets;
            while let Some(route) = self.client.poll_transmit(now, packet) {
                self.packets += 1;
                self.server.handle_input(now, route.reversed(), packet);
            }
            while let Some(route) = self.server.poll_transmit(now, packet) {
                self.packets += 1;
                self.client.handle_input(now, route.reversed(), packet);
            }
            take_events(&mut self.client, &mut self.of_client);
            take_events(&mut self.server, &mut self.of_server);
            if self.packets == before {
                return;
            }
        }
    }

    /// Sends this many messages to the server, and as many back.
    fn ping_pong(&mut self, number: usize, messages: u32) {
        let (here, there) = (self.of_client[number], self.of_server[number]);
        let message = || OutboundMessage::new(0, vec![0; MESSAGE_BYTES]);
        self.now += Duration::from_nanos(100);
        for _ in 0..messages {
            self.client.send(self.now, here, message()).expect("there is room");
        }
        self.pump();
        for _ in 0..messages {
            self.server.receive(self.now, there).expect("it has arrived");
            self.server.send(self.now, there, message()).expect("there is room");
        }
        self.pump();
        for _ in 0..messages {
            self.client.receive(self.now, here).expect("it has arrived");
        }
    }

    /// Advances the time, and handles the timers that are due.
    fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        let next = |crowd: &Self| {
            let deadlines = [crowd.client.poll_timeout(), crowd.server.poll_timeout()];
            deadlines.into_iter().flatten().min().filter(|&at| at <= end)
        };
        while let Some(at) = next(self) {
            self.now = self.now.max(at);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            self.pump();
        }
        self.now = end;
    }
}

fn take_events(endpoint: &mut Endpoint, ids: &mut Vec<AssociationId>) {
    while let Some((id, event)) = endpoint.poll_event() {
        match event {
            Event::Connected { .. } => ids.push(id),
            Event::Closed(reason) => panic!("closed: {reason:?}"),
            _ => {}
        }
    }
}

/// The memory of idle associations; `counted` returns by how many bytes a call increases the allocated memory.
pub fn measure_memory(counted: fn(&mut dyn FnMut()) -> i64) -> Vec<Row> {
    [Past::None, Past::Message, Past::Burst].map(|past| memory(counted, past)).into()
}

/// The processor time of idle associations: their own, and that added to others.
#[must_use]
pub fn measure_time(repetitions: usize) -> Vec<Row> {
    let mut crowds = [FEW, SOME, MANY].map(|n| Crowd::new(n, Past::Message));
    let [few, some, many] = &mut crowds;
    vec![ping_pongs(few, many, repetitions), heartbeats(some, many)]
}

fn memory(counted: fn(&mut dyn FnMut()) -> i64, past: Past) -> Row {
    let mut crowd = None;
    let bytes = counted(&mut || crowd.insert(Crowd::new(MANY, past)).run_for(SILENCE));
    let each = bytes as f64 / (2.0 * f64::from(MANY));
    let after = match past {
        Past::None => "just established".into(),
        Past::Message => "after a message each way".into(),
        Past::Burst => format!("after {BURST_MESSAGES} at once each way"),
    };
    Row {
        what: format!("memory of an idle association, {after}"),
        ours: format!("{each:.0} bytes"),
        against: "limit".into(),
        theirs: format!("{LIMIT_BYTES} bytes"),
        ratio: Some(each / LIMIT_BYTES),
        target: Target::AtMost(1.0),
        note: format!(
            "Bytes allocated per end of an association, of {MANY} between two endpoints, after \
             {SILENCE:?} without a message; includes the endpoints' tables."
        ),
    }
}

/// The ratio of the time for a message and its reply with many idle associations to that with few.
fn ping_pongs(few: &mut Crowd, many: &mut Crowd, repetitions: usize) -> Row {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..repetitions {
        for (crowd, times) in [&mut *few, &mut *many].into_iter().zip(&mut times) {
            let last = crowd.of_client.len() - 1;
            let ((), elapsed) = cpu_time(|| (0..PING_PONGS).for_each(|_| crowd.ping_pong(last, 1)));
            times.push(elapsed.as_nanos() as f64 / f64::from(PING_PONGS));
        }
    }
    let [few, many] = times;
    Row {
        what: format!("ping-pong beside {MANY} idle associations"),
        ours: format!("{:.0} ns", median(&many)),
        against: format!("beside {FEW}"),
        theirs: format!("{:.0} ns", median(&few)),
        ratio: Some(median_ratio(&many, &few)),
        target: Target::AtMost(1.2),
        note: "A message and its answer in memory, both endpoints.".into(),
    }
}

/// Processor time of the heartbeats alone, per association.
fn heartbeats(some: &mut Crowd, many: &mut Crowd) -> Row {
    let per_hour = |crowd: &mut Crowd, seconds: u64| {
        let before = crowd.packets;
        let ((), elapsed) = cpu_time(|| crowd.run_for(Duration::from_secs(seconds)));
        let packets = crowd.packets - before;
        let associations = crowd.of_client.len() as f64;
        let hours = seconds as f64 / 3600.0;
        (elapsed.as_secs_f64() * 1e6 / associations / hours, packets as f64 / associations / hours)
    };
    // The first minute after the set-up has its own rhythm.
    some.run_for(Duration::from_secs(60));
    many.run_for(Duration::from_secs(60));
    let (some, _) = per_hour(some, 3600);
    let (many, packets) = per_hour(many, 60);
    Row {
        what: format!("processor time per hour of each of {MANY} idle associations"),
        ours: format!("{many:.0} µs"),
        against: format!("each of {SOME}"),
        theirs: format!("{some:.0} µs"),
        ratio: Some(many / some),
        target: Target::None,
        note: format!(
            "Both ends, all of it heartbeats and their answers: {packets:.0} packets. What grows \
             is the share of memory that is not in a cache."
        ),
    }
}
