//! `SO_LINGER` with a time: calls of `close` that wait for the end of an association.

use std::collections::BTreeMap;

/// The most calls of `close` that wait; further ones return at once, so that other calls find room.
const MAX_WAITING: usize = 1024;

/// The closed sockets whose associations go on, of those that linger.
#[derive(Debug, Default)]
pub(super) struct Lingers {
    associations: BTreeMap<u64, u32>,
    sockets: BTreeMap<u32, Lingering>,
    /// The associations for whose end requests wait.
    waiting: BTreeMap<u64, u32>,
}

/// A closed socket, and the request to be answered when its association has ended.
#[derive(Debug)]
struct Lingering {
    socket: u64,
    token: Option<u64>,
}

impl Lingers {
    /// Enters a closed socket whose association goes on.
    pub(super) fn begin(&mut self, socket: u64, association: u32) {
        self.associations.insert(socket, association);
        self.sockets.entry(association).or_insert(Lingering { socket, token: None });
    }

    /// Has a request wait; returns the one to be answered instead: this one if there is nothing to wait for or no room, or
    /// one that waited before.
    pub(super) fn wait(&mut self, socket: u64, token: u64) -> Option<u64> {
        let found = self.associations.get(&socket).copied();
        let found = found.filter(|_| self.waiting.len() < MAX_WAITING);
        let Some((association, lingering)) =
            found.and_then(|found| Some((found, self.sockets.get_mut(&found)?)))
        else {
            return Some(token);
        };
        self.waiting.insert(token, association);
        lingering.token.replace(token).inspect(|before| _ = self.waiting.remove(before))
    }

    /// Forgets a request whose program waits no longer.
    pub(super) fn forget(&mut self, token: u64) {
        let association = self.waiting.remove(&token);
        let lingering = association.and_then(|association| self.sockets.get_mut(&association));
        if let Some(lingering) = lingering.filter(|it| it.token == Some(token)) {
            lingering.token = None;
        }
    }

    /// Removes the socket of an association that has ended; returns the request to be answered.
    pub(super) fn end(&mut self, association: u32) -> Option<u64> {
        let Lingering { socket, token } = self.sockets.remove(&association)?;
        self.associations.remove(&socket);
        token.inspect(|token| _ = self.waiting.remove(token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_for_the_end_of_the_association() {
        let mut lingers = Lingers::default();
        assert_eq!(lingers.wait(1, 70), Some(70), "it has no association");
        lingers.begin(1, 10);
        assert_eq!(lingers.wait(1, 71), None);
        assert_eq!(lingers.wait(1, 72), Some(71), "the later one waits");
        assert_eq!((lingers.end(10), lingers.end(10)), (Some(72), None));
        assert!(lingers.associations.is_empty() && lingers.waiting.is_empty());
    }

    #[test]
    fn waiting_requests_are_bounded() {
        let mut lingers = Lingers::default();
        for n in 0..=MAX_WAITING as u64 {
            lingers.begin(n, n as u32);
            let refused = (n == MAX_WAITING as u64).then_some(n);
            assert_eq!(lingers.wait(n, n), refused);
        }
        lingers.forget(0);
        assert_eq!(lingers.wait(MAX_WAITING as u64, 1 << 40), None);
        assert_eq!(lingers.end(0), None, "its program waits no longer");
    }
}
