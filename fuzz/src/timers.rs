//! Timers of an endpoint expire.

/// The most calls that it takes until no timer of an endpoint is due.
const MOST_EXPIRIES: usize = 2;

/// Lets timers of an endpoint expire while one `is_due`. Packets that are sent for one timer may make another one due at
/// once ([`Machine::poll_timeout`](rexmit_core::Machine::poll_timeout)), which the next call handles.
///
/// # Panics
/// If a timer stays due.
pub(crate) fn expire<E>(exchange: &mut E, is_due: impl Fn(&E) -> bool, handle: impl Fn(&mut E)) {
    for _ in 0..MOST_EXPIRIES {
        if !is_due(exchange) {
            return;
        }
        handle(exchange);
    }
    assert!(!is_due(exchange), "a timer that stays due");
}
