//! The first process of a kernel of [`rexmit_kernels::Simulation`]: mounts file systems, executes the script of the kernel's
//! configuration, and switches the kernel off. Users do not call it.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() {
    if let Err(error) = first::run() {
        eprintln!("rexmit-kernels-init: {error}");
        std::process::exit(1);
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod first {
    use std::fs;
    use std::io;
    use std::process::Command;

    use rustix::mount::{MountFlags, mount};
    use rustix::system::{RebootCommand, reboot};

    /// The directory that is shared with the simulation.
    const SHARED: &str = "/mnt";

    pub(crate) fn run() -> io::Result<()> {
        if rustix::process::getpid() != rustix::process::Pid::INIT {
            return Err(io::Error::other("this is the first program of a kernel, not for users"));
        }
        for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run")] {
            mount(kind, place, kind, MountFlags::empty(), None)?;
        }
        let ended = Command::new("/bin/sh")
            .arg("script")
            .current_dir(SHARED)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin")
            .env("HOME", "/run")
            .env("TMPDIR", "/run")
            .status();
        let status = match ended {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        fs::write(format!("{SHARED}/status"), status)?;
        rustix::fs::sync();
        Ok(reboot(RebootCommand::PowerOff)?)
    }
}
