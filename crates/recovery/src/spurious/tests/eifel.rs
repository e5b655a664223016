use rexmit_core::Instant;

use std::time::Duration;

use crate::spurious::episodes::*;

fn echo(ms: u64) -> Echo {
    Echo {
        sent_at: Instant::from_millis(ms),
        tick: Duration::from_millis(1),
        has_duplicate: false,
        peer_reports_duplicates: false,
        is_last: false,
    }
}

fn verdict(echo: Echo) -> bool {
    Eifel::default().on_ack(Some(Instant::from_millis(500)), echo)
}

/// RFC 3522 §3.2 steps 4 and 5.
#[test]
fn an_echo_from_before_the_retransmission_tells_it_was_needless() {
    assert!(verdict(echo(499)));
    assert!(!verdict(echo(500)), "the same tick may be the retransmission's");
    assert!(!verdict(echo(501)));
    assert!(!verdict(Echo { has_duplicate: true, ..echo(499) }));
    assert!(!verdict(Echo { is_last: true, ..echo(499) }), "all acknowledgements were lost");
    let both = Echo { is_last: true, peer_reports_duplicates: true, ..echo(499) };
    assert!(verdict(both), "it would have reported the duplicate");
}

/// RFC 3522 §3.2 step 4: then the algorithm is done.
#[test]
fn only_the_first_acknowledgement_counts() {
    let mut eifel = Eifel::default();
    let resent_at = Some(Instant::from_millis(500));
    assert!(!eifel.on_ack(None, echo(100)), "nothing was sent yet");
    assert!(!eifel.on_ack(resent_at, echo(600)));
    assert!(!eifel.on_ack(resent_at, echo(100)));
}
