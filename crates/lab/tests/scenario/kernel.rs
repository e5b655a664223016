//! Runs with hosts of a kernel. The kernel here is a stand-in with our own transports: its figures must be those of a
//! simulation of the same transports.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use rexmit_core::{Instant, Route, Seed};
use rexmit_lab::hosts::{ConnectionEvent, ReadResult, Transport, WriteResult};
use rexmit_lab::kernel::{
    HostPlan, Kernel, KernelError, KernelHost, KernelProtocol, SctpCounters, SocketId,
};
use rexmit_lab::scenario::{ExecuteError, RunOutcome, Scenario, execute, execute_in};
use rexmit_sctp::{AssociationConfig, Endpoint as Sctp};
use rexmit_tcp::{ConnectionConfig, Endpoint as Tcp};
use serde_json::{Value, json};

use crate::{run, scenario};

/// A kernel with the clock and the hosts of a test.
struct StandIn {
    clock: Arc<Mutex<Instant>>,
    hosts: Vec<Arc<Mutex<dyn Timed>>>,
    plans: Vec<HostPlan>,
    waits: usize,
}

/// The timers of a host.
trait Timed: Send {
    fn next(&self) -> Option<Instant>;
    fn expire(&mut self, now: Instant);
}

struct Inside<T: Transport> {
    endpoint: T,
    clock: Arc<Mutex<Instant>>,
    plan: HostPlan,
    ids: Vec<T::Id>,
}

impl<T: Transport> Inside<T> {
    fn number(&mut self, id: T::Id) -> SocketId {
        let known = self.ids.iter().position(|&other| other == id);
        known.unwrap_or_else(|| {
            self.ids.push(id);
            self.ids.len() - 1
        }) as SocketId
    }

    fn now(&self) -> Instant {
        *self.clock.lock().unwrap()
    }
}

impl<T: Transport> Timed for Inside<T> {
    fn next(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn expire(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }
}

struct Handle<T: Transport>(Arc<Mutex<Inside<T>>>);

impl<T: Transport> KernelHost for Handle<T> {
    fn deliver(&mut self, route: Route, packet: &[u8]) {
        let mut inside = self.0.lock().unwrap();
        let now = inside.now();
        inside.endpoint.handle_input(now, route, packet);
    }

    fn transmit(&mut self, packet: &mut Vec<u8>) -> Option<Route> {
        let mut inside = self.0.lock().unwrap();
        let now = inside.now();
        inside.endpoint.poll_transmit(now, packet)
    }

    fn connection_event(&mut self) -> Option<(SocketId, ConnectionEvent)> {
        let mut inside = self.0.lock().unwrap();
        loop {
            let event = inside.endpoint.poll_event()?;
            if let Some((id, event)) = T::connection_event(&event) {
                return Some((inside.number(id), event));
            }
        }
    }

    fn connect(&mut self, remote: SocketAddr) -> Option<SocketId> {
        let mut inside = self.0.lock().unwrap();
        let (now, local) = (inside.now(), SocketAddr::new(inside.plan.address, 0));
        let id = inside.endpoint.begin(now, local, remote)?;
        Some(inside.number(id))
    }

    fn write(&mut self, id: SocketId, bytes: &mut Bytes) -> WriteResult {
        let mut inside = self.0.lock().unwrap();
        let (now, id) = (inside.now(), inside.ids[id as usize]);
        inside.endpoint.write(now, id, bytes)
    }

    fn read(&mut self, id: SocketId, each: &mut dyn FnMut(&[u8])) -> ReadResult {
        let mut inside = self.0.lock().unwrap();
        let (now, id) = (inside.now(), inside.ids[id as usize]);
        inside.endpoint.read(now, id, each)
    }

    fn finish(&mut self, id: SocketId) {
        let mut inside = self.0.lock().unwrap();
        let (now, id) = (inside.now(), inside.ids[id as usize]);
        inside.endpoint.finish(now, id);
    }

    fn abort(&mut self, id: SocketId) {
        let mut inside = self.0.lock().unwrap();
        let (now, id) = (inside.now(), inside.ids[id as usize]);
        inside.endpoint.abort(now, id);
    }

    fn sctp_counters(&self) -> Option<SctpCounters> {
        let is_sctp = self.0.lock().unwrap().plan.protocol != KernelProtocol::Tcp;
        is_sctp.then_some(SctpCounters { timeouts: 7, fast_retransmits: 5 })
    }
}

impl StandIn {
    fn new() -> Self {
        Self { clock: Arc::default(), hosts: Vec::new(), plans: Vec::new(), waits: 0 }
    }

    fn add<T: Transport>(&mut self, plan: HostPlan, endpoint: T) -> Box<dyn KernelHost> {
        let inside = Inside { endpoint, clock: Arc::clone(&self.clock), plan, ids: Vec::new() };
        let inside = Arc::new(Mutex::new(inside));
        self.hosts.push(inside.clone());
        Box::new(Handle(inside))
    }
}

impl Kernel for StandIn {
    fn host(&mut self, plan: HostPlan) -> Result<Box<dyn KernelHost>, KernelError> {
        self.plans.push(plan.clone());
        // The names from which the simulation derives the endpoints' seeds, so that the random times of heartbeats are
        // the same.
        let name = match self.hosts.len() / 2 {
            0 => "thin game".to_owned(),
            connection => format!("thin game {connection}"),
        };
        let end = if plan.listens_on.is_some() { "receiver" } else { "sender" };
        let seed = Seed::from_u64(1).split(&name).split(end);
        if plan.settings.iter().any(|(_, value)| value == "impossible") {
            return Err(KernelError::Failed("the kernel refuses".into()));
        }
        Ok(match plan.protocol {
            KernelProtocol::Tcp => {
                let connection = Arc::new(ConnectionConfig::sack().nagle(plan.has_nagle));
                let config = rexmit_tcp::EndpointConfig::default().connection(connection);
                let mut endpoint = Tcp::new(config, &seed).unwrap();
                plan.listens_on.iter().for_each(|&port| endpoint.listen(port, None).unwrap());
                self.add(plan, endpoint)
            }
            KernelProtocol::Sctp { .. } => {
                let config = rexmit_sctp::EndpointConfig::default()
                    .port(7000)
                    .accept(true)
                    .association(Arc::new(AssociationConfig::rfc9260()));
                self.add(plan, Sctp::new(config, &seed).unwrap())
            }
        })
    }

    fn wait(&mut self, until: Instant, ready: &mut Vec<usize>) -> Result<Instant, KernelError> {
        self.waits += 1;
        ready.clear();
        let next = |host: &Arc<Mutex<dyn Timed>>| host.lock().unwrap().next();
        let due = self.hosts.iter().filter_map(next).min();
        let mut clock = self.clock.lock().unwrap();
        let now = due.map_or(until, |due| due.min(until)).max(*clock);
        *clock = now;
        drop(clock);
        for (number, host) in self.hosts.iter().enumerate() {
            let mut host = host.lock().unwrap();
            if host.next().is_some_and(|at| at <= now) {
                host.expire(now);
                ready.push(number);
            }
        }
        Ok(now)
    }
}

fn thin(transport: &str, more: &Value) -> Value {
    let mut all = json!({
        "duration": "300s",
        "network": {"forward": "delay 50ms loss 5%"},
        "thin": {"game": {"traffic": "every 251ms size 100", "transport": transport, "connections": 3}},
    });
    let more = more.as_object().unwrap().clone();
    all.as_object_mut().unwrap().extend(more);
    all
}

fn of_kernel() -> Value {
    json!({"clock": "kernel", "hosts": {"game": "linux-6.12"}})
}

fn in_kernel(scenario: &Scenario) -> (RunOutcome, StandIn) {
    let mut kernel = StandIn::new();
    let outcome = execute_in(&mut kernel, scenario, 1).expect("it runs");
    (outcome, kernel)
}

#[test]
fn a_kernel_with_our_transports_gives_the_figures_of_the_simulation() {
    for transport in ["tcp", "sctp"] {
        let (kernel, stand_in) = in_kernel(&scenario(thin(transport, &of_kernel())));
        let simulated = run(thin(transport, &json!({})), 1);
        let common = |outcome: &RunOutcome| {
            let parts = ["mean", "p50", "p90", "p99", "p999", "max"];
            let names = parts.map(|part| format!("game.latency.{part}"));
            let more = ["game.transport_latency.mean", "game.messages", "game.packets_per_message"];
            let names = names.into_iter().chain(more.map(str::to_owned));
            names.map(|name| (outcome.quantities[&name], name)).collect::<Vec<_>>()
        };
        assert_eq!(common(&kernel), common(&simulated), "{transport}");
        // Lost packets were retransmitted: the kernel's own timers have expired, too.
        assert!(kernel.quantities["game.latency.max"] > 200.0);
        assert_eq!(kernel.quantities["game.undelivered"], 0.0);
        assert_eq!(stand_in.plans.len(), 6);
        // A kernel has no trace of the sender.
        assert!(!kernel.quantities.contains_key("game.retransmissions.all"));
        // What it counts, of three senders.
        let counted = |name: &str| kernel.quantities.get(&format!("game.events.{name}")).copied();
        let expected = (transport == "sctp").then_some([21.0, 15.0]);
        assert_eq!(
            counted("timeout").zip(counted("fast_retransmit")),
            expected.map(|[t, f]| (t, f))
        );
    }
}

#[test]
fn a_transfer_between_hosts_of_a_kernel_competes_with_our_own() {
    let of_kernel = scenario(json!({
        "duration": "20s",
        "clock": "kernel",
        "network": {"forward": "delay 10ms rate 8mbit limit 50"},
        "bulk": {"theirs": {"transport": "tcp"}, "ours": {"transport": "tcp", "profile": "tcp-sack"}},
        "hosts": {"theirs": {"kernel": "linux-6.12", "sysctl": {"net.ipv4.tcp_sack": 1}}},
    }));
    let (outcome, kernel) = in_kernel(&of_kernel);
    let goodput = |flow: &str| outcome.quantities[&format!("{flow}.goodput")];
    let both = goodput("theirs") + goodput("ours");
    assert!((7e6..8e6).contains(&both), "{both}");
    assert!(goodput("theirs") > 1e6 && goodput("ours") > 1e6);
    assert_eq!(kernel.plans.len(), 2);
    assert_eq!(kernel.plans[1].settings, [("net.ipv4.tcp_sack".to_owned(), "1".to_owned())]);
    assert_eq!(kernel.plans[0].address, kernel.plans[1].peer);
}

#[test]
fn unsupported_requests_to_a_kernel_are_refused() {
    let problems = |more: Value| {
        let mut json = thin("tcp", &of_kernel());
        let Value::Object(more) = more else { panic!() };
        for (name, value) in more {
            match (&mut json[&name], value) {
                (Value::Object(old), Value::Object(new)) => old.extend(new),
                (old, new) => *old = new,
            }
        }
        let found = scenario(json).validate().expect_err("it is refused");
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let game = |field: &str, value: Value| {
        let mut game = thin("tcp", &json!({}))["thin"]["game"].clone();
        game[field] = value;
        json!({"thin": {"game": game}})
    };
    assert!(problems(json!({"clock": "virtual"})).contains("clock = \"kernel\""));
    assert!(problems(json!({"hosts": {"game": "linux-2.6"}})).contains("linux-6.12 or linux-6.1"));
    let mut two = thin("tcp", &of_kernel());
    two["bulk"] = json!({"greedy": {}});
    two["hosts"]["greedy"] = json!("linux-6.1");
    let found = scenario(two.clone()).validate().expect_err("of two kernels");
    assert!(found.iter().any(|problem| problem.to_string().contains("a run has one kernel")));
    two["hosts"]["game"] = json!("linux-6.1");
    assert!(scenario(two).validate().is_ok());
    assert!(problems(json!({"hosts": {"other": "linux-6.12"}})).contains("no thin or bulk flow"));
    for name in ["kernel.panic", "net.ipv4..x", "net/ipv4"] {
        let host = json!({"kernel": "linux-6.12", "sysctl": {name: 1}});
        assert!(
            problems(json!({"hosts": {"game": host}})).contains("settings have names"),
            "{name}"
        );
    }
    assert!(problems(game("profile", json!("tcp-cubic"))).contains("thin.game.profile"));
    assert!(problems(game("send_buffer", json!("64kb"))).contains("thin.game.send_buffer"));
    assert!(problems(game("connections", json!(129))).contains("at most 128"));
}

#[test]
fn a_refusal_of_the_kernel_is_reported_with_the_flow() {
    let host = json!({"kernel": "linux-6.12", "sysctl": {"net.ipv4.tcp_sack": "impossible"}});
    let refused = scenario(thin("tcp", &json!({"clock": "kernel", "hosts": {"game": host}})));
    let error = execute_in(&mut StandIn::new(), &refused, 1).unwrap_err();
    assert!(matches!(error, ExecuteError::Scenario(_)), "{error:?}");
    assert_eq!(error.to_string(), "thin.game: the kernel refuses");
}

#[test]
fn a_run_of_a_kernel_does_not_run_elsewhere() {
    let of_kernel = scenario(thin("tcp", &of_kernel()));
    assert!(execute(&of_kernel, 1).unwrap_err().is_not_permitted());
    let simulated = scenario(thin("tcp", &json!({})));
    let error = execute_in(&mut StandIn::new(), &simulated, 1).unwrap_err();
    assert!(error.to_string().contains("clock"), "{error}");
}
