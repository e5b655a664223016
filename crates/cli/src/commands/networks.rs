//! Privileges for creating network namespaces.

use rexmit::tun::{enter_user_namespace, may_create_namespaces};

use crate::failure::Outcome;

/// Obtains the privileges to create namespaces and devices in them; without root, by a user
/// namespace. Must be called before any thread is started.
pub(super) fn permit() -> Outcome {
    if !may_create_namespaces() {
        enter_user_namespace()?;
    }
    Ok(())
}
