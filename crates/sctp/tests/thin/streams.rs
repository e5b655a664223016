//! A thin stream and a bulk stream in one association.

use rexmit_core::Instant;
use rexmit_sctp::recovery::MAX_GROUPS;
use rexmit_sctp::{OutboundMessage, ThinError};

use super::*;

/// The stream that is singled out.
const THIN: u16 = 3;

impl Script {
    fn single_out(&mut self, stream: u16, thin: Option<ThinConfig>) -> Result<(), ThinError> {
        let (now, id) = (Instant::from_millis(self.now_ms()), self.id());
        self.endpoint.set_stream_thin(now, id, stream, thin)
    }

    #[track_caller]
    fn send_on(&mut self, stream: u16, n: u32) {
        let message = OutboundMessage::new(stream, &b"payload"[..]);
        self.try_send(message).expect("accepted");
        assert_eq!(self.take_data(), [n]);
    }
}

/// Chunks 1 (bulk) and 2 (thin) are missing, and 3 to 7 (bulk) arrive.
#[test]
fn each_stream_is_treated_as_it_is() {
    let mut s = Script::thin(ThinConfig::OFF);
    s.single_out(THIN, Some(ThinConfig::M1_TO_M4)).expect("there is room");
    s.at(200).send_on(0, 1);
    s.send_on(THIN, 2);
    (3..=7).for_each(|n| s.send_on(0, n));
    let reported = s.statistics();
    assert!(!reported.thin.is_thin, "{reported:?}");
    assert_eq!(reported.thin_streams.len(), 1);
    assert!(
        reported.thin_streams[0].0 == THIN && reported.thin_streams[0].1.is_thin,
        "{reported:?}"
    );
    s.at(300).peer_sacks(tsn(0), &[(3, 3)], &[]);
    assert_eq!(s.take_data(), [2], "M4 for the thin stream");
    s.at(310).peer_sacks(tsn(0), &[(3, 4)], &[]);
    s.expect_silence_until(320);
    s.peer_sacks(tsn(0), &[(3, 5)], &[]);
    assert_eq!(s.take_data(), [1], "three reports for the bulk stream");
}

/// A stream with its own mechanisms does not use those of the association.
#[test]
fn a_single_stream_may_be_without_mechanisms() {
    let mut s = Script::thin(ThinConfig::M1_TO_M4);
    s.single_out(THIN, Some(ThinConfig::OFF)).expect("there is room");
    s.at(200).send_on(THIN, 1);
    s.expect_silence_until(1_199);
    s.at(1_200);
    assert_eq!(s.take_data(), [1]);
    s.at(1_300).peer_acknowledges(tsn(1));
    s.single_out(THIN, None).expect("it is known");
    assert_eq!(s.statistics().thin_streams, []);
    s.at(1_400).send_on(THIN, 2);
    // SRTT + 4 · RTTVAR is 250 ms, doubled by the timeout of the other stream; Karn's rule keeps the backoff.
    s.expect_silence_until(1_899);
    s.at(1_900);
    assert_eq!(s.take_data(), [2]);
}

#[test]
fn streams_that_do_not_exist_or_are_too_many_are_refused() {
    let mut s = Script::client_with(|_, a| a.streams.outbound = 100);
    s.take_init();
    let streams = 100;
    assert_eq!(s.single_out(100, Some(ThinConfig::OFF)), Err(ThinError::InvalidStream { streams }));
    let limit = MAX_GROUPS - 1;
    for stream in 0..limit as u16 {
        assert_eq!(s.single_out(stream, Some(ThinConfig::OFF)), Ok(()));
    }
    let one_more = s.single_out(99, Some(ThinConfig::OFF));
    assert_eq!(one_more, Err(ThinError::TooManyStreams { limit }));
    assert_eq!(s.single_out(0, Some(ThinConfig::M1_TO_M4)), Ok(()), "it is known");
}

/// With `by_stream`, each used stream is thin or not on its own.
#[test]
fn streams_are_singled_out_by_use_with_by_stream() {
    let by_stream = ThinConfig::OFF.with_sctp(ThinSctpConfig::OFF.by_stream(true));
    let mut s = Script::measured(|association| {
        association.recovery.thin = by_stream;
        association.recovery.max_burst = None;
        association.recovery.initial_window_packets = 100;
        association.recovery.initial_window_bytes = 100_000;
    });
    s.at(300);
    let streams = 10;
    for n in 1..=20_u16 {
        let message = OutboundMessage::new((n - 1) % 10, &b"payload"[..]);
        s.try_send(message).expect("accepted");
        let singled_out = s.statistics().thin_streams;
        assert_eq!(singled_out.len(), usize::from(n).min(streams));
        assert_eq!(singled_out[0].0, 0);
    }
    assert_eq!(s.take_data().len(), 20);
    assert_eq!(s.single_out(7, None), Ok(()));
    assert_eq!(s.statistics().thin_streams.len(), streams, "it is used all the same");
}

/// Mechanisms that the application sets for all streams also apply to streams that are singled out by use.
#[test]
fn mechanisms_of_all_streams_are_those_of_streams_singled_out_by_use() {
    let by_stream = ThinConfig::OFF.with_sctp(ThinSctpConfig::OFF.by_stream(true));
    let mut s = Script::thin(by_stream);
    s.at(200).send_on(THIN, 1);
    let (now, id) = (Instant::from_millis(s.now_ms()), s.id());
    let m1_to_m4 = ThinConfig::M1_TO_M4.with_sctp(ThinSctpConfig::OFF.by_stream(true));
    s.endpoint.set_thin(now, id, m1_to_m4).expect("valid");
    s.expect_silence_until(449);
    s.at(450);
    assert_eq!(s.take_data(), [1], "after SRTT + 4 RTTVAR, and not after a second");
}
