//! The examples run and print the expected results.

// Their functions are called as they are.
#[path = "../examples/echo.rs"]
#[allow(dead_code)]
mod echo;
#[cfg(target_os = "linux")]
#[path = "../examples/failover.rs"]
#[allow(dead_code)]
mod failover;
#[path = "../examples/game.rs"]
#[allow(dead_code)]
mod game;
#[cfg(target_os = "linux")]
#[path = "../examples/priorities.rs"]
#[allow(dead_code)]
mod priorities;
#[path = "../examples/rpc.rs"]
#[allow(dead_code)]
mod rpc;
#[path = "../examples/udp_loop.rs"]
#[allow(dead_code)]
mod udp_loop;

use std::time::Duration;

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it takes too long")
}

#[tokio::test]
async fn echo_returns_the_text() {
    assert_eq!(in_time(echo::run("hello")).await.unwrap(), "hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_players_lose_no_input() {
    let score = in_time(game::play(100, 10)).await.unwrap();
    assert_eq!(score.inputs, 1000);
    assert!(score.snapshots > 100, "{score:?}");
}

#[tokio::test]
async fn calls_get_their_answers() {
    let squares: Vec<u64> = (0..100).map(|number| number * number).collect();
    assert_eq!(in_time(rpc::squares(100)).await.unwrap(), squares);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn messages_use_the_other_path_and_the_application_is_notified() {
    let reported = in_time(failover::run(100)).await.unwrap();
    let has = |what: &str| reported.iter().any(|line| line == what);
    assert!(has("data is sent to 127.0.0.12"), "{reported:?}");
    assert!(has("127.0.0.11 is gone"), "{reported:?}");
    assert_eq!(reported.last().unwrap(), "the association has ended");
}

/// The median latency of an input, which waits for whole messages, is half of the time that the link needs for one of them:
/// 400 ms, or more on a busy machine. The best input that need not wait takes no longer than the link's queue, and what a
/// busy machine adds to the luckiest of more than thirty; several runs get a chance to have one.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interleaved_inputs_do_not_wait_for_a_large_message() {
    const RUNS: usize = 5;
    let first = rexmit::AssociationConfig::interactive().scheduling(rexmit::Scheduling::Priority);
    let mut seen = Vec::new();
    for _ in 0..RUNS {
        let interleaved = in_time(priorities::measure(first.clone(), 20)).await.unwrap();
        let whole = first.clone().interleaving(false);
        let whole = in_time(priorities::measure(whole, 20)).await.unwrap();
        let lucky = interleaved[interleaved.len() / 4];
        let median = whole[whole.len() / 2];
        if lucky * 3 < median {
            return;
        }
        seen.push((lucky, median));
    }
    panic!("interleaved inputs, and inputs behind whole messages: {seen:?}");
}

#[test]
fn the_loop_around_the_state_machine_carries_a_message_both_ways() {
    assert_eq!(udp_loop::run("hello").unwrap(), "hello");
}
