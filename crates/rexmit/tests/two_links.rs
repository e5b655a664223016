//! Two emulated links between two machines (network namespaces), each with a TUN device at either end: what
//! `interactive-multipath` does when one fails and, on request, how long messages take beside Multipath TCP of the kernel
//! (RFC 8684) over links with the same settings.

mod common;

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{in_time, netns};
use rexmit::emulator::{LinkConfig, TunEmulator};
use rexmit::tun::{NetNamespace, Tun, TunConfig};
use rexmit::{
    Association, AssociationConfig, CloseReason, Endpoint, EndpointConfig, Instant,
    OutboundMessage, TimeLimits, clock,
};
use rexmit_core::Seed;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::task::JoinHandle;

const UDP_PORT: u16 = 9899;
const SCTP_PORT: u16 = 5000;
const TCP_PORT: u16 = 5001;
const MESSAGE_BYTES: usize = 100;
/// The latency that a busy machine may add; failover after RFC 9260 takes longer than this by far.
const MARGIN: Duration = Duration::from_secs(10);

/// The addresses of an end, one per link.
fn addresses(end: u8) -> [Ipv4Addr; 2] {
    [1, 2].map(|link| Ipv4Addr::new(10, 133, link, 1 + end))
}

/// Two machines and the links between them, `near` to `far`.
struct Site {
    ends: [NetNamespace; 2],
    devices: [[String; 2]; 2],
    emulators: [TunEmulator; 2],
}

impl Site {
    /// Links that are `path` both ways; prints a note and returns `None` if that is not permitted.
    fn new(path: &str, seed: u64) -> Option<Self> {
        if Command::new("nft").arg("--version").output().is_err() {
            rexmit_testkit::not_run("`nft` is not installed (package nftables)");
            return None;
        }
        let ends = [netns::namespace()?, netns::namespace()?];
        let link = |link: usize| {
            let open = |end: usize| {
                let ipv4 = Some((addresses(end as u8)[link], 24));
                let config = TunConfig::default().ipv4(ipv4).queue_packets(10_000);
                netns::if_permitted(Tun::open_in(&ends[end], &config))
            };
            let (near, far) = (open(0)?, open(1)?);
            let names = [near.name().to_owned(), far.name().to_owned()];
            let path: rexmit::path::PathConfig = path.parse().expect("a path");
            let config = LinkConfig::default()
                .forward(path.clone())
                .backward(path)
                .seed(Seed::from_u64(seed + link as u64));
            Some((names, TunEmulator::start(&config, near, far).expect("an emulator")))
        };
        let ((first, one), (second, two)) = (link(0)?, link(1)?);
        Some(Self { ends, devices: [first, second], emulators: [one, two] })
    }

    /// Both ends drop what arrives over the first link, until [`mend`](Self::mend).
    fn cut(&self) {
        for (end, device) in self.ends.iter().zip(&self.devices[0]) {
            let rules = format!(
                "add table inet cut; \
                 add chain inet cut input {{ type filter hook input priority 0 ; }}; \
                 add rule inet cut input iifname {device} drop"
            );
            netns::output(end.command("nft").arg(rules));
        }
    }

    fn mend(&self) {
        for end in &self.ends {
            netns::output(end.command("nft").arg("flush ruleset"));
        }
    }

    /// The packets that the near end has sent over each link.
    fn packets(&self) -> [u64; 2] {
        self.emulators.each_ref().map(|it| it.statistics().forward.path.offered)
    }

    fn bind(&self, end: usize, association: AssociationConfig) -> Endpoint {
        let config = EndpointConfig::default()
            .port(SCTP_PORT)
            .accept(end == 1)
            .addresses(addresses(end as u8).map(IpAddr::from).to_vec())
            .association(Arc::new(association));
        let runtime = tokio::runtime::Handle::current();
        let bind = || {
            let _runtime = runtime.enter();
            Endpoint::bind_unencrypted((Ipv4Addr::UNSPECIFIED, UDP_PORT).into(), config)
        };
        let endpoint = self.ends[end].run(bind).expect("the namespace").expect("an endpoint");
        endpoint.with_time_limits(TimeLimits::NONE)
    }

    /// An association over both links, which the near end has begun, and the endpoints, to be kept.
    async fn associate(&self, config: &AssociationConfig) -> ([Endpoint; 2], [Association; 2]) {
        let [client, server] = [0, 1].map(|end| self.bind(end, config.clone()));
        let remote = SocketAddr::from((addresses(1)[0], UDP_PORT));
        let connect = async { client.connect(remote, SCTP_PORT).await.expect("an answer") };
        let accept = async { server.accept().await.expect("an association") };
        let (ours, theirs) = in_time(async { tokio::join!(connect, accept) }).await;
        ([client, server], [ours, theirs])
    }
}

/// Messages at regular times.
#[derive(Clone, Copy)]
struct Traffic {
    messages: u32,
    interval: Duration,
}

impl Traffic {
    fn at(self, start: Instant, number: u32) -> Instant {
        start + self.interval * number
    }

    /// Sends over SCTP. Returns the latency of each message, from when it was due.
    async fn over_sctp(self, [ours, theirs]: [Association; 2]) -> Vec<Duration> {
        let start = clock::now();
        let sending = async {
            for number in 0..self.messages {
                clock::sleep_until(self.at(start, number)).await;
                let message = OutboundMessage::new(0, vec![0; MESSAGE_BYTES]);
                let message = message.ppid(number).unordered(true);
                ours.send(message).await.expect("the association lasts");
            }
            assert_eq!(in_time(ours.shutdown()).await, CloseReason::Shutdown);
        };
        let receiving = async {
            let mut latencies = vec![None; self.messages as usize];
            while let Some(message) = theirs.recv().await {
                let latency = clock::now() - self.at(start, message.ppid);
                let known = latencies[message.ppid as usize].replace(latency);
                assert_eq!(known, None, "{} arrived twice", message.ppid);
            }
            latencies.into_iter().map(|latency| latency.expect("it arrived")).collect()
        };
        tokio::join!(sending, receiving).1
    }
}

/// The first link fails silently: all messages arrive, once, and new ones take the second link.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_data_takes_the_other_link_when_one_fails() {
    let Some(site) = Site::new("delay 10ms", 1) else { return };
    let traffic = Traffic { messages: 150, interval: Duration::from_millis(20) };
    let (_endpoints, ends) = site.associate(&AssociationConfig::interactive_multipath()).await;
    let sending = tokio::spawn(traffic.over_sctp(ends));
    in_time(async {
        while site.packets()[0] < 50 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let before = site.packets();
    assert!(before[1] < before[0], "{before:?}");
    site.cut();
    let latencies = in_time(sending).await.expect("all arrived");
    let after = site.packets();
    let [first, second] = [0, 1].map(|link| after[link] - before[link]);
    assert!(first < second && second >= 50, "{before:?}, {after:?}");
    let longest = latencies.iter().max().expect("messages");
    println!("longest latency: {} ms", longest.as_millis());
    assert!(*longest < MARGIN, "{longest:?}");
}

const IPPROTO_MPTCP: i32 = 262;

/// The same messages over Multipath TCP: the far end announces its second address, to which the near end opens a subflow.
fn over_mptcp(traffic: Traffic, ends: &[NetNamespace; 2]) -> std::io::Result<Vec<Duration>> {
    netns::ip(&ends[0], "mptcp limits set subflows 2 add_addr_accepted 2");
    netns::ip(&ends[1], "mptcp limits set subflows 2 add_addr_accepted 2");
    netns::ip(&ends[1], &format!("mptcp endpoint add {} signal", addresses(1)[1]));
    let socket = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::from(IPPROTO_MPTCP)));
    let address = SockAddr::from(SocketAddr::from((addresses(1)[0], TCP_PORT)));
    let listener = ends[1].run(|| -> std::io::Result<TcpListener> {
        let listener = socket()?;
        // Subflows go to either address.
        listener.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, TCP_PORT))))?;
        listener.listen(1)?;
        Ok(listener.into())
    });
    let listener = listener.expect("the namespace")?;
    let sender = ends[0].run(socket).expect("the namespace")?;
    sender.connect(&address)?;
    sender.set_tcp_nodelay(true)?;
    let (mut receiver, _) = listener.accept()?;
    let wait = |until| tokio::runtime::Handle::current().block_on(clock::sleep_until(until));
    wait(clock::now() + Duration::from_secs(2)); // Until the second subflow is established.
    let start = clock::now();
    thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            let mut latencies = Vec::new();
            let mut message = [0; MESSAGE_BYTES];
            loop {
                match receiver.read_exact(&mut message) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => return latencies,
                    Err(error) => panic!("{error}"),
                }
                let number = u32::from_be_bytes([message[0], message[1], message[2], message[3]]);
                latencies.push(clock::now() - traffic.at(start, number));
            }
        });
        for number in 0..traffic.messages {
            wait(traffic.at(start, number));
            let mut message = [0; MESSAGE_BYTES];
            message[..4].copy_from_slice(&number.to_be_bytes());
            (&sender).write_all(&message)?;
        }
        sender.shutdown(std::net::Shutdown::Write)?;
        Ok(receiving.join().expect("a receiver"))
    })
}

/// A line with percentiles, and with the packets that the near end sent per message.
fn report(name: &str, mut latencies: Vec<Duration>, site: &Site) {
    latencies.sort_unstable();
    let count = latencies.len();
    let at = |share: f64| latencies[((count as f64 * share) as usize).min(count - 1)].as_millis();
    let [first, second] = site.packets();
    let packets = (first + second) as f64 / count as f64;
    println!(
        "{name}: p50 {} ms, p99 {} ms, p99.9 {} ms, longest {} ms; {packets:.2} packets per message, {first} and {second}",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
    );
}

/// 2400 messages, one per 50 ms, over two links with bursts of losses, and over two the first of which fails for 3 s of
/// each 20 s.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "measures, for two minutes, on a machine that does nothing else"]
async fn beside_multipath_tcp_of_the_kernel() {
    let traffic = Traffic { messages: 2400, interval: Duration::from_millis(50) };
    let mut running = tokio::task::JoinSet::new();
    let links = [("bursts", "delay 50ms loss burst 5% 100ms"), ("one dies", "delay 50ms")];
    let systems = [
        ("interactive", AssociationConfig::interactive()),
        ("interactive-multipath", AssociationConfig::interactive_multipath()),
    ];
    let site = |path: &str| Some(Arc::new(Site::new(path, 7)?));
    let dying = |site: &Arc<Site>| {
        let site = Arc::clone(site);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_secs(17)).await;
                site.cut();
                tokio::time::sleep(Duration::from_secs(3)).await;
                site.mend();
            }
        })
    };
    for (kind, path) in links {
        for (name, association) in systems.clone() {
            let Some(site) = site(path) else { return };
            running.spawn(async move {
                let (_endpoints, ends) = site.associate(&association).await;
                let outages = (kind == "one dies").then(|| dying(&site));
                let latencies = traffic.over_sctp(ends).await;
                outages.iter().for_each(JoinHandle::abort);
                report(&format!("{kind}, {name}"), latencies, &site);
            });
        }
        let Some(site) = site(path) else { return };
        running.spawn(async move {
            let outages = (kind == "one dies").then(|| dying(&site));
            let of_thread = Arc::clone(&site);
            let run = move || over_mptcp(traffic, &of_thread.ends);
            let latencies = tokio::task::spawn_blocking(run).await.expect("it ends");
            outages.iter().for_each(JoinHandle::abort);
            match latencies {
                Ok(latencies) => report(&format!("{kind}, Multipath TCP"), latencies, &site),
                Err(error) => rexmit_testkit::not_run(format_args!("Multipath TCP: {error}")),
            }
        });
    }
    while let Some(run) = running.join_next().await {
        run.expect("a run");
    }
}
