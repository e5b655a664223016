//! Whether a server is ready.

/// Whether a TCP socket listens or a UDP socket is bound in the network namespace of the calling thread.
#[must_use]
pub fn is_anybody_listening() -> bool {
    let has = |table: &str, state: &str| {
        let text = std::fs::read_to_string(format!("/proc/thread-self/net/{table}"));
        // The fourth column is the state: 0A listening, 07 what UDP sockets are in.
        text.unwrap_or_default().lines().any(|line| line.split_whitespace().nth(3) == Some(state))
    };
    has("tcp", "0A") || has("tcp6", "0A") || has("udp", "07") || has("udp6", "07")
}
