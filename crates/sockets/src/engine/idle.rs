//! Ends associations that were idle too long (SCTP_AUTOCLOSE, [`Autoclose`](super::autoclose::Autoclose)).

use super::Engine;

impl Engine {
    /// Begins to monitor an established association, if its socket has the option.
    pub(super) fn begin_autoclose(&mut self, association: u32) {
        let now = self.now;
        let Some(known) = self.associations.get_mut(&association) else { return };
        let socket = known.socket.and_then(|number| self.sockets.get(&number));
        let Some(socket) = socket.filter(|socket| !socket.is_one_to_one()) else { return };
        known.autoclose = socket.settings.autoclose();
        known.last_used = now;
        if let Some(time) = known.autoclose {
            self.autoclose.watch(now + time, association);
        }
    }

    /// Ends associations that were idle for their limit.
    pub(super) fn close_idle(&mut self) {
        while let Some(association) = self.autoclose.take_due(self.now) {
            let Some(known) = self.associations.get(&association) else { continue };
            let Some(time) = known.autoclose else { continue };
            let idle_at = known.last_used + time;
            if idle_at > self.now {
                self.autoclose.watch(idle_at, association);
            } else {
                self.shut_down(association);
            }
        }
    }
}
