//! Errors of devices and namespaces, with texts that say what to do.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use thiserror::Error;

/// Why a TUN device or a network namespace could not be created or opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TunError {
    /// The kernel has no TUN driver, or its device node is missing.
    #[error(
        "/dev/net/tun is missing: load the driver with `sudo modprobe tun` (in a container, pass \
         the device: --device /dev/net/tun)"
    )]
    NoDriver,
    /// This user may not open the device node.
    #[error(
        "/dev/net/tun may not be opened by this user: run as root, or `sudo chmod a+rw /dev/net/tun`"
    )]
    NodePermission,
    /// Network interfaces require privileges.
    #[error(
        "a TUN device needs CAP_NET_ADMIN: run as root, or grant it with `sudo setcap \
         cap_net_admin,cap_sys_admin+ep {}`", program.display()
    )]
    Permission {
        /// This program.
        program: PathBuf,
    },
    /// Network namespaces require privileges.
    #[error(
        "a network namespace needs CAP_SYS_ADMIN: run as root, or grant it with `sudo setcap \
         cap_net_admin,cap_sys_admin+ep {}`", program.display()
    )]
    NamespacePermission {
        /// This program.
        program: PathBuf,
    },
    /// The system does not allow unprivileged user namespaces.
    #[error(
        "an unprivileged user namespace is refused ({0}): run as root, or allow them \
         (`sudo sysctl user.max_user_namespaces=10000`; on Ubuntu also \
         `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`)"
    )]
    UserNamespace(io::Error),
    /// There is no namespace of this name.
    #[error(
        "there is no network namespace {name}: `ip netns list` lists those that are ({source})"
    )]
    NoNamespace {
        /// The name given.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Another interface has the name.
    #[error("there is a network interface {name} already: choose another name")]
    NameInUse {
        /// The name given.
        name: String,
    },
    /// There is no device of this name.
    #[error("there is no network interface {name}")]
    NoDevice {
        /// The name given.
        name: String,
    },
    /// The name, MTU or address is not possible for an interface.
    #[error("the configuration of the TUN device is invalid: {0}")]
    InvalidConfig(String),
    /// An interface of this machine has an address in the same network.
    #[error("{address} is taken: {interface} has {taken}; choose another network")]
    AddressTaken {
        /// The address given.
        address: IpAddr,
        /// The interface with the other address.
        interface: String,
        /// The address of that interface.
        taken: IpAddr,
    },
    /// Another error of the operating system.
    #[error("{doing}: {source}")]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl TunError {
    /// The error for a failed attempt to open the device node.
    pub(super) fn from_node(source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Self::NoDriver,
            Some(libc::EACCES | libc::EPERM) => Self::NodePermission,
            _ => Self::Io { doing: "/dev/net/tun cannot be opened", source },
        }
    }

    /// The error for a failed attempt to create an interface.
    pub(super) fn from_interface(name: Option<&str>, source: io::Error) -> Self {
        match (source.raw_os_error(), name) {
            (Some(libc::EACCES | libc::EPERM), _) => Self::Permission { program: program() },
            (Some(libc::EBUSY | libc::EEXIST), Some(name)) => Self::NameInUse { name: name.into() },
            (Some(libc::EINVAL), _) => Self::InvalidConfig(source.to_string()),
            _ => Self::Io { doing: "the TUN device cannot be set up", source },
        }
    }

    /// The error for a failed attempt to create or enter a namespace.
    pub(super) fn from_namespace(source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::EPERM) => Self::NamespacePermission { program: program() },
            _ => Self::Io { doing: "no network namespace", source },
        }
    }

    /// Whether a permission or the driver is missing, so that no other configuration would succeed.
    #[must_use]
    pub fn is_not_permitted(&self) -> bool {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        match self {
            Self::NoDriver
            | Self::NodePermission
            | Self::Permission { .. }
            | Self::NamespacePermission { .. }
            | Self::UserNamespace(_) => true,
            // The kernel's files are read-only in many containers.
            Self::Io { source, .. } => {
                matches!(source.kind(), PermissionDenied | ReadOnlyFilesystem)
            }
            _ => false,
        }
    }
}

fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "rexmit".into())
}
