//! A server and its client over UDP sockets of this host.

#![cfg(feature = "tokio")]

use std::time::Duration;

use rexmit_dtls::Identity;
use rexmit_webrtc::{
    AgentConfig, ChannelConfig, Connection, Event, IceMode, Message, ServeConfig, Server,
};

const TIME_LIMIT: Duration = Duration::from_secs(60);

async fn bind(mode: IceMode) -> Server {
    let agent = AgentConfig::new(Identity::generate().unwrap());
    let mut config = ServeConfig::new(agent);
    config.agent.ice = mode;
    Server::bind("127.0.0.1:0".parse().unwrap(), config).await.unwrap()
}

/// Waits for the event.
async fn wait(connection: &mut Connection, fits: impl Fn(&Event) -> bool) {
    let wait = async {
        loop {
            let event = connection.event().await.expect("a connection");
            assert!(!matches!(event, Event::Closed(_)), "{event:?}");
            if fits(&event) {
                return;
            }
        }
    };
    tokio::time::timeout(TIME_LIMIT, wait).await.expect("an event");
}

#[tokio::test]
async fn an_ice_lite_server_and_a_full_client_exchange_messages_and_restart_ice() {
    let (server, client) = (bind(IceMode::Lite).await, bind(IceMode::Full).await);
    let (offer, mut one) = client.offer().unwrap();
    let (answer, mut other) = server.answer(&offer).unwrap();
    one.accept(&answer).unwrap();
    wait(&mut one, |event| *event == Event::Connected).await;
    wait(&mut other, |event| *event == Event::Connected).await;
    let channel = one.open(ChannelConfig::new("one")).unwrap();
    for text in ["before", "after"] {
        one.send(channel, Message::text(text)).await.unwrap();
        let is_it = |event: &Event| matches!(event, Event::Message { message, .. } if message.as_text() == Some(text));
        wait(&mut other, is_it).await;
        let offer = one.restart_ice().unwrap();
        one.accept(&other.answer_again(&offer).unwrap()).unwrap();
        wait(&mut one, |event| *event == Event::IceRestarted).await;
    }
}
