//! Network namespaces: separate networks for threads, devices and programs.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, UnshareFlags, capabilities, move_into_link_name_space,
    unshare_unsafe,
};

use super::{TunError, interface};

/// The namespace of the calling thread. Not `/proc/self`, which is that of the main thread.
const OWN: &str = "/proc/thread-self/ns/net";
/// The directory in which `ip netns` keeps named namespaces.
const NAMED: &str = "/run/netns";

/// A network namespace: interfaces, addresses, routes and ports of its own.
///
/// It exists while it is in use: by a value of this type, a thread or program that was started in it, or a
/// named mount by `ip netns`. A clone is another handle of the same one.
///
/// ```no_run
/// use rexmit::tun::{NetNamespace, Tun, TunConfig};
/// use std::process::Command;
///
/// let namespace = NetNamespace::new()?;
/// let ipv4 = Some(("10.91.0.1".parse()?, 24));
/// let tun = Tun::open_in(&namespace, &TunConfig::default().ipv4(ipv4))?;
/// let listener = namespace.run(|| std::net::TcpListener::bind("10.91.0.1:80"))??;
/// let output = namespace.command("ip").arg("address").output()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct NetNamespace(Arc<File>);

impl NetNamespace {
    /// Creates a namespace whose only interface is its own loopback.
    ///
    /// # Errors
    /// If this is not permitted: it needs `CAP_SYS_ADMIN`, or a call of [`enter_user_namespace`] before.
    pub fn new() -> Result<Self, TunError> {
        in_a_thread(|| {
            // SAFETY: only a new network is asked for; the table of files stays shared.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
                .map_err(|error| TunError::from_namespace(error.into()))?;
            interface::switch_on("lo").map_err(TunError::from_namespace)?;
            Self::current()
        })
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// If `/proc` is not available.
    pub fn current() -> Result<Self, TunError> {
        Self::open(Path::new(OWN)).map_err(TunError::from_namespace)
    }

    /// The namespace that `ip netns add` made under this name.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn named(name: &str) -> Result<Self, TunError> {
        let open = || {
            // Names are names of files there, not paths.
            if Path::new(name).components().count() != 1 || name.starts_with('.') {
                return Err(io::ErrorKind::NotFound.into());
            }
            Self::open(&Path::new(NAMED).join(name))
        };
        open().map_err(|source| TunError::NoNamespace { name: name.into(), source })
    }

    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(Arc::new(File::open(path)?)))
    }

    /// Moves the calling thread into this namespace, permanently. Sockets made before stay where they are.
    ///
    /// # Errors
    /// If this is not permitted: it needs `CAP_SYS_ADMIN`.
    pub fn enter(&self) -> Result<(), TunError> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| TunError::from_namespace(error.into()))
    }

    /// Runs `task` in a new thread in this namespace, and waits for it. A panic is propagated to the caller.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub fn run<T: Send>(&self, task: impl FnOnce() -> T + Send) -> Result<T, TunError> {
        in_a_thread(|| self.enter().map(|()| task()))
    }

    /// A command that runs `program` in this namespace, for arguments to be added.
    #[must_use]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        self.adopt(&mut command);
        command
    }

    /// Makes `command` run in this namespace instead of that of the calling thread.
    pub fn adopt(&self, command: &mut Command) {
        let namespace = Arc::clone(&self.0);
        let enter = move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(())
        };
        // SAFETY: between fork and exec it does one system call, and no allocation: an error of
        // the kernel is a plain number.
        unsafe { command.pre_exec(enter) };
    }

    /// Whether both are the same namespace.
    ///
    /// # Errors
    /// The error of the system.
    pub fn is_same_as(&self, other: &Self) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let (this, that) = (self.0.metadata()?, other.0.metadata()?);
        Ok((this.dev(), this.ino()) == (that.dev(), that.ino()))
    }

    /// A path by which other programs can enter the namespace (`nsenter --net=PATH`) while this process has
    /// it.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

/// Gives this process privileges over network namespaces of its own; it needs no privileges before. Afterwards
/// [`NetNamespace::new`] and devices in new namespaces are permitted, those of the machine are not. The process keeps
/// its user and group, and programs that it starts have no privileges.
///
/// # Errors
/// If the system does not allow user namespaces, or if this process has more than one thread: call it at the
/// start of the program.
pub fn enter_user_namespace() -> Result<(), TunError> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    // SAFETY: the table of files stays shared.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER | UnshareFlags::NEWNET) }
        .map_err(|error| TunError::UserNamespace(error.into()))?;
    let (user, group) = (user.as_raw(), group.as_raw());
    // Without it the kernel accepts no map of groups (user_namespaces(7)).
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ];
    for (file, text) in maps {
        std::fs::write(Path::new("/proc/self").join(file), text)
            .map_err(TunError::UserNamespace)?;
    }
    Ok(())
}

/// Whether the calling thread has the privileges for devices and namespaces.
#[must_use]
pub fn may_create_namespaces() -> bool {
    let needed = CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN;
    capabilities(None).is_ok_and(|sets| sets.effective.contains(needed))
}

/// Makes the program of `command` end (by SIGTERM) with the thread that starts it, so that it does
/// not survive a parent that was killed.
pub fn end_with_parent(command: &mut Command) {
    let ask = || {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        Ok(())
    };
    // SAFETY: between fork and exec it does one system call, and no allocation.
    unsafe { command.pre_exec(ask) };
}

fn in_a_thread<T: Send>(task: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        scope.spawn(task).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
