//! The application of the endpoint under test.

use rexmit_tcp::{ConnectionStatistics, ReceiveError, SendError};

use super::*;

impl Script {
    /// Sends bytes, all of which must be accepted.
    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        assert_eq!(self.try_send(bytes), Ok(bytes.len()));
    }

    /// Sends as many bytes as are accepted.
    pub fn try_send(&mut self, bytes: &[u8]) -> Result<usize, SendError> {
        self.endpoint.send(self.run.now, self.id(), bytes)
    }

    /// Reads all bytes received so far; none at the end of the peer's data.
    #[track_caller]
    pub fn receive(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while let Ok(some) = self.try_receive(4096)
            && !some.is_empty()
        {
            all.extend(some);
        }
        all
    }

    /// Reads up to `most` bytes; none at the end of the peer's data.
    pub fn try_receive(&mut self, most: usize) -> Result<Vec<u8>, ReceiveError> {
        let mut bytes = vec![0; most];
        let len = self.endpoint.receive(self.run.now, self.id(), &mut bytes)?;
        bytes.truncate(len);
        Ok(bytes)
    }

    /// The application finishes sending.
    pub fn finish(&mut self) {
        self.endpoint.finish(self.run.now, self.id());
    }

    /// The application closes the connection.
    pub fn close(&mut self) {
        self.endpoint.close(self.run.now, self.id());
    }

    /// The application ends the connection at once.
    pub fn abort(&mut self) {
        self.endpoint.abort(self.run.now, self.id());
    }

    /// Whether the script has a connection.
    pub fn has_connection(&self) -> bool {
        self.run.id.is_some()
    }

    /// The state of the connection; `None` if it has ended.
    pub fn state(&self) -> Option<State> {
        self.endpoint.state(self.id())
    }

    /// The counters of the connection.
    #[track_caller]
    pub fn statistics(&self) -> ConnectionStatistics {
        self.endpoint.statistics(self.id()).expect("the connection exists")
    }

    /// The counters of the endpoint.
    pub fn counted(&self) -> EndpointStatistics {
        *self.endpoint.endpoint_statistics()
    }
}
