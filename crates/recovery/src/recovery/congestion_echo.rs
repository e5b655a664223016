//! Packets that routers mark instead of dropping them (ECN).

use rexmit_core::trace::Tracer;

use super::LossRecovery;

/// A report of the peer that a router has marked the packet of a unit instead of dropping it (RFC 3168 §6.1.2).
#[derive(Clone, Copy, Debug)]
pub struct CongestionEcho {
    /// The lowest unit of the packet.
    pub unit: u64,
}

impl CongestionEcho {
    /// Reduces the window as for a loss, once per window of data, and pauses redundant copies. Returns the last unit that was
    /// sent before the latest reduction: reports of units up to it are answered. `None` if the unit was never sent.
    pub fn answer<P>(self, to: &mut LossRecovery<P>, tracer: &mut Tracer<'_>) -> Option<u64> {
        let Self { unit } = self;
        let LossRecovery { state, loss, spurious, .. } = to;
        let (cumulative, next) = (state.outstanding.cumulative(), state.outstanding.next_unit());
        if unit >= next {
            return None;
        }
        let path = state.outstanding.unit(unit).map_or(state.paths.data_path(), |unit| unit.path);
        if state.groups.yields {
            state.paths[path].queue.get_or_insert_default().losses.on_marked();
        }
        // The mark calls for a reduction, even if that of a recovery in progress turns out to be spurious: it is not undone.
        for it in spurious.iter_mut() {
            it.mark_unprovable(path);
            it.end_f_rto(path);
        }
        let recover = state.fast_recovery.recover().unwrap_or_default();
        let answered = state.paths[path].marks_answered.max(recover);
        let reduced = if unit <= answered {
            answered
        } else if state.fast_recovery.is_on_path(path) {
            unit
        } else {
            let flight_size = state.outstanding.bytes() - state.fast_recovery.beyond_window();
            state.couple_windows();
            state.paths[path].window.on_marked(flight_size);
            state.trace_window(path, tracer);
            if state.splits_fast_retransmit() {
                state.begin_path_recovery(path);
            } else {
                state.begin_recovery();
                loss.on_repaired(cumulative, next - 1);
                if state.fast_recovery.on_acked(cumulative) {
                    loss.on_recovery_left(None);
                }
            }
            next - 1
        };
        state.paths[path].marks_answered = reduced;
        Some(reduced)
    }
}
