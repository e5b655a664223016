use rexmit_core::Instant;

use std::time::Duration;

use crate::Echo;
use crate::spurious::episodes::*;

fn echo(ms: u64) -> EifelAck {
    EifelAck {
        echo: Echo { sent_at: Instant::from_millis(ms), tick: Duration::from_millis(1) },
        has_duplicate: false,
        peer_reports_duplicates: false,
        is_last: false,
    }
}

fn verdict(ack: EifelAck) -> bool {
    Eifel::default().on_ack(Some(Instant::from_millis(500)), ack)
}

/// RFC 3522 §3.2 steps 4 and 5.
#[test]
fn an_echo_from_before_the_retransmission_shows_it_was_spurious() {
    assert!(verdict(echo(499)));
    assert!(!verdict(echo(500)), "the same tick may be the retransmission's");
    assert!(!verdict(echo(501)));
    assert!(!verdict(EifelAck { has_duplicate: true, ..echo(499) }));
    assert!(!verdict(EifelAck { is_last: true, ..echo(499) }), "all acknowledgements were lost");
    let both = EifelAck { is_last: true, peer_reports_duplicates: true, ..echo(499) };
    assert!(verdict(both), "it would have reported the duplicate");
}

/// RFC 3522 §3.2 step 4: then the algorithm is done.
#[test]
fn only_the_first_acknowledgement_counts() {
    let mut eifel = Eifel::default();
    let retransmitted_at = Some(Instant::from_millis(500));
    assert!(!eifel.on_ack(None, echo(100)), "nothing was sent yet");
    assert!(!eifel.on_ack(retransmitted_at, echo(600)));
    assert!(!eifel.on_ack(retransmitted_at, echo(100)));
}
