//! The game: bouncing balls, and the messages that describe them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rexmit_webrtc::{ChannelConfig, Connection, Event, Message, SendError};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// Between two snapshots.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);
const BALLS: usize = 12;
/// The stream of a channel that is not announced.
const STREAM: u16 = 0;
/// Between two attempts to send the first snapshot.
const FIRST_RETRY: Duration = Duration::from_millis(5);

/// The server's clock in milliseconds.
#[expect(clippy::disallowed_methods, reason = "a program, not a protocol")]
fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0
}

/// The position of a ball after `seconds`, from 0 to 1, if it starts at 0.
fn bounced(seconds: f64, speed: f64) -> f64 {
    let way = (seconds * speed).rem_euclid(2.0);
    if way > 1.0 { 2.0 - way } else { way }
}

/// The state of the game at this time: its number, the time, and the balls.
pub(crate) fn snapshot(number: u64) -> String {
    let now = now_ms();
    let seconds = now / 1000.0 % 100_000.0;
    let balls: Vec<String> = (0..BALLS)
        .map(|n| {
            let speed = 0.2 + n as f64 * 0.03;
            let (x, y) = (bounced(seconds, speed), bounced(seconds, 1.7 * speed));
            format!("[{x:.3},{y:.3}]")
        })
        .collect();
    format!("{{\"n\":{number},\"t\":{now:.2},\"balls\":[{}]}}", balls.join(","))
}

/// The answer to a page that compares its clock with ours: the page's message, and the time.
pub(crate) fn clock_answer(asked: &str) -> String {
    format!("{{\"asked\":{asked},\"t\":{:.2}}}", now_ms())
}

/// A page's question about the clock: a number.
pub(crate) fn is_clock_question(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// How the page and the server open a channel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Both know its stream in advance (`negotiated` in JavaScript): the first snapshot is sent with the association's
    /// COOKIE ECHO, a round trip earlier, and no message of the browser can be lost before it.
    Negotiated,
    /// The page announces it (DCEP, RFC 8832).
    Dcep,
}

/// Sends snapshots on the page's channel until the connection ends.
pub(crate) async fn play(mut connection: Connection, opening: Opening) {
    let sender = connection.sender();
    let (opened, mut channel) = watch::channel(None);
    if opening == Opening::Negotiated {
        let config = ChannelConfig::new("snapshots").ordered(false).negotiated(Some(STREAM));
        let _ = opened.send(connection.open(config).ok());
    }
    let sending = tokio::spawn(async move {
        let Ok(Some(channel)) = channel.wait_for(Option::is_some).await.map(|it| *it) else {
            return;
        };
        // The first one as soon as there is an association.
        while sender.send(channel, Message::text(snapshot(0))).await == Err(SendError::NotConnected)
        {
            tokio::time::sleep(FIRST_RETRY).await;
        }
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        for number in 1.. {
            ticks.tick().await;
            if sender.send(channel, Message::text(snapshot(number))).await.is_err() {
                return;
            }
        }
    });
    while let Some(event) = connection.event().await {
        match event {
            Event::ChannelOpened { channel, .. } => drop(opened.send(Some(channel))),
            Event::Message { channel, message } => {
                if let Some(asked) = message.as_text().filter(|text| is_clock_question(text)) {
                    let _ = connection.send(channel, Message::text(clock_answer(asked))).await;
                }
            }
            _ => {}
        }
    }
    sending.abort();
}
