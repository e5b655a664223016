//! Unmodified browsers as peers, over a link that loses 2 % of all packets each way.

#![cfg(target_os = "linux")]

mod browser;
mod coturn;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use browser::{Browser, Kind, Request, Site, own_address};
use coturn::{Coturn, PASSWORD, USER};
use rexmit::emulator::{Emulator, EmulatorConfig};
use rexmit::path::{Delay, Loss, PathConfig};
use rexmit_dtls::Identity;
use rexmit_sctp::Reliability;
use rexmit_webrtc::{
    AgentConfig, ChannelConfig, ChannelId, CloseReason, Connection, Event, Message, ServeConfig,
    Server,
};
use serde_json::{Value, json};

/// The test fails if the page reports nothing for this time.
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// A browser that has not fetched the page after this time is started again.
const START_LIMIT: Duration = Duration::from_secs(100);
/// The test fails if a browser was started so often and has not fetched the page.
const MAX_STARTS: usize = 3;
/// The peer's silence after which it counts as disconnected: Firefox sends a check every 5 s, two of which may be lost.
const CONSENT: Duration = Duration::from_secs(30);
/// Messages on each channel that the server opens.
const FROM_SERVER: usize = 100;

/// A server behind an emulator; its candidates have the emulator's address.
async fn server_behind(path: PathConfig) -> (Arc<Server>, Emulator) {
    let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let emulator = EmulatorConfig::new(SocketAddr::new(own_address(), 0), free);
    let emulator = Emulator::start(&emulator.forward(path.clone()).backward(path)).unwrap();
    let agent = AgentConfig::new(Identity::generate().unwrap())
        .addresses(vec![emulator.local_addr()])
        .consent_timeout(CONSENT);
    let server = Server::bind(free, ServeConfig::new(agent)).await.unwrap();
    (Arc::new(server), emulator)
}

fn lossy() -> PathConfig {
    PathConfig {
        delay: Delay::constant(Duration::from_millis(5)),
        loss: Loss { uniform: 0.02, ..Loss::default() },
        ..PathConfig::default()
    }
}

/// The same; first the peer must have agreed to I-DATA (RFC 8260), or not.
async fn serve_interleaved(connection: Connection, is_interleaved: bool) -> CloseReason {
    // A SACK is sent for the first data, when both have agreed.
    let agreed = async || loop {
        if let Some(statistics) = connection.statistics().filter(|it| it.traffic.sacks_sent > 0) {
            break statistics.interleaving;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    assert_eq!(agreed().await, is_interleaved);
    serve(connection).await
}

/// Serves a connection until it ends, as the labels of its channels request, and returns the close reason.
async fn serve(mut connection: Connection) -> CloseReason {
    let mut ours = BTreeSet::new();
    let (mut expected, mut control) = (0, None);
    loop {
        match connection.event().await.expect("an event before the last one") {
            Event::ChannelOpened { channel, config, is_incoming: true }
                if config.label == "open some" =>
            {
                control = Some(channel);
                ours = open_some(&connection);
            }
            Event::ChannelOpened { channel, is_incoming: false, .. } => {
                for n in 0..FROM_SERVER {
                    connection.send(channel, Message::text(n.to_string())).await.unwrap();
                    expected += 1;
                }
            }
            Event::Message { channel, .. } if ours.contains(&channel) => {
                expected -= 1;
                if expected == 0 {
                    connection.send(control.unwrap(), Message::text("done")).await.unwrap();
                }
            }
            Event::Message { channel, message } if message.as_text() == Some("close") => {
                connection.close_channel(channel);
            }
            Event::ChannelOpened { channel, config, .. } if config.label == "signalling" => {
                control = Some(channel);
            }
            Event::Message { channel, message } if control == Some(channel) => {
                if let Some(reply) = signal(&connection, message.as_text().unwrap()) {
                    connection.send(channel, Message::text(reply)).await.unwrap();
                }
            }
            Event::IceRestarted => {
                connection.send(control.unwrap(), Message::text("restarted")).await.unwrap();
            }
            Event::Message { channel, message } => {
                connection.send(channel, message).await.unwrap();
            }
            Event::Closed(reason) => return reason,
            _ => {}
        }
    }
}

/// The reply to a message on the channel for signalling.
fn signal(connection: &Connection, text: &str) -> Option<String> {
    match text.split_once(' ').unwrap_or((text, "")) {
        ("offer", offer) => Some(format!("answer {}", connection.answer_again(offer).unwrap())),
        ("restart", _) => Some(format!("offer {}", connection.restart_ice().unwrap())),
        ("answer", answer) => connection.accept(answer).map(|()| None).unwrap(),
        _ => panic!("{text}"),
    }
}

fn open_some(connection: &Connection) -> BTreeSet<ChannelId> {
    let channels = [
        ChannelConfig::new("reliable").protocol("chat".to_owned()),
        ChannelConfig::new("retransmitted")
            .ordered(false)
            .reliability(Reliability::MaxRetransmissions(9)),
        ChannelConfig::new("timed").reliability(Reliability::Timed(Duration::from_secs(60))),
    ];
    channels.map(|config| connection.open(config).unwrap()).into()
}

/// Opens the page in a browser; `None` where there is no such browser. Firefox was seen to stall while it started.
async fn open(kind: Kind, site: &mut Site, query: &str) -> Option<Browser> {
    for _ in 0..MAX_STARTS {
        let browser = Browser::open(kind, &format!("{}?{query}", site.url()))?;
        if tokio::time::timeout(START_LIMIT, site.fetched.recv()).await.is_ok() {
            return Some(browser);
        }
        eprintln!("{kind:?} has not fetched the page: started again");
    }
    panic!("{kind:?} was started {MAX_STARTS} times and has not fetched the page");
}

/// Returns the next result that the page reports; serves all connections until then.
async fn next_result(
    site: &mut Site,
    ends: &mut Vec<tokio::task::JoinHandle<CloseReason>>,
) -> Value {
    loop {
        let request = tokio::time::timeout(TIME_LIMIT, site.requests.recv()).await;
        match request.expect("a sign of the page").expect("a site that runs") {
            Request::Connection(connection) => ends.push(tokio::spawn(serve(connection))),
            Request::Result(result) => return result,
        }
    }
}

async fn run(kind: Kind, count: usize) {
    let (server, _emulator) = server_behind(lossy()).await;
    let mut site = Site::start(Arc::clone(&server), include_str!("browser/page.html")).await;
    let Some(mut browser) = open(kind, &mut site, &format!("count={count}")).await else { return };
    let mut ends = Vec::new();

    let first = tokio::time::timeout(TIME_LIMIT, site.requests.recv()).await;
    let Some(Request::Connection(first)) = first.expect("an offer") else { panic!("no offer") };
    ends.push(tokio::spawn(serve_interleaved(first, kind == Kind::Firefox)));
    let found = &next_result(&mut site, &mut ends).await["traffic"];
    let is_right =
        found["ordered"] == true && found["unordered"] == true && found["count"] == count;
    assert!(is_right && found["kinds"] == json!(vec![true; 4]), "{found}");
    assert_eq!(found["sctp"], 262_144);

    let found = &next_result(&mut site, &mut ends).await["fromServer"];
    let seen = json!([
        ["reliable", "chat", true, null, null],
        ["retransmitted", "", false, 9, null],
        ["timed", "", true, null, 60_000]
    ]);
    assert_eq!(found["seen"], seen);

    let found = &next_result(&mut site, &mut ends).await["channels"];
    assert!(found["echoes"] == 100 && found["again"] == true, "{found}");
    // The page is the DTLS server, whose streams are odd (RFC 8832 §6).
    assert_eq!(found["ids"], json!(vec![1; 100]));

    let found = &next_result(&mut site, &mut ends).await["restarts"];
    assert_eq!(*found, json!({ "inOrder": true, "count": 500, "different": 3 }));

    let found = &next_result(&mut site, &mut ends).await["answers"];
    // As the DTLS client the page opens channels on even streams (RFC 8832 §6).
    let expected = json!({
        "type": "answer", "ordered": true, "unordered": true, "count": count,
        "seen": ["reliable", "retransmitted", "timed"], "ids": [0, 0, 0]
    });
    assert_eq!(*found, expected);

    let found = &next_result(&mut site, &mut ends).await["stay"];
    assert_eq!(found["stays"], true);
    let mut staying = ends.pop().expect("the page has made connections");
    for end in ends {
        assert_eq!(end.await.unwrap(), CloseReason::Peer);
    }
    // It ends neither by itself nor unnoticed.
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut staying).await.is_err());
    browser.kill();
    let end = tokio::time::timeout(TIME_LIMIT, staying).await.expect("a limit").unwrap();
    assert_eq!(end, CloseReason::ConsentExpired(CONSENT));
}

/// Runs a page that may send by a TURN server only.
async fn run_relayed(kind: Kind) {
    let Some(coturn) = Coturn::start(own_address()).await else { return };
    let agent = AgentConfig::new(Identity::generate().unwrap());
    let address = SocketAddr::new(own_address(), 0);
    let server = Arc::new(Server::bind(address, ServeConfig::new(agent)).await.unwrap());
    let mut site = Site::start(server, include_str!("browser/relay.html")).await;
    let turn = format!("turn:{}?transport=udp", coturn.address).replace('?', "%3F");
    let query = format!("turn={turn}&user={USER}&password={PASSWORD}");
    let Some(_browser) = open(kind, &mut site, &query).await else { return };
    let mut ends = Vec::new();
    let found = next_result(&mut site, &mut ends).await;
    let expected = json!({ "kinds": ["relay"], "used": "relay", "count": 200, "isInOrder": true });
    assert_eq!(found, expected);
    assert_eq!(ends.remove(0).await.unwrap(), CloseReason::Peer);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chromium_exchanges_messages_by_a_turn_server() {
    run_relayed(Kind::Chromium).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn firefox_exchanges_messages_by_a_turn_server() {
    run_relayed(Kind::Firefox).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chromium_exchanges_messages_over_a_lossy_link() {
    run(Kind::Chromium, 1000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn firefox_exchanges_messages_over_a_lossy_link() {
    run(Kind::Firefox, 1000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: make test-long"]
async fn browsers_exchange_ten_thousand_messages() {
    run(Kind::Chromium, 10_000).await;
    run(Kind::Firefox, 10_000).await;
}
