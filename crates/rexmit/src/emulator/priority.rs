//! The scheduling priority of a thread, mainly the relay's.

use std::time::Duration;

#[cfg(feature = "serde")]
use serde::Serialize;

/// The time slice requested if real-time priority is not permitted: the kernel's minimum. A thread with short
/// slices is scheduled sooner when it wakes up.
const SHORT_SLICE: Duration = Duration::from_micros(100);

/// The scheduling priority of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Priority {
    /// The priority of an ordinary thread.
    #[default]
    Normal,
    /// Short time slices: the thread is woken up sooner, with the same share of the processor. Needs no privileges, but
    /// Linux 6.12.
    ShortSlice,
    /// Ahead of every ordinary thread (`SCHED_FIFO`). Needs `CAP_SYS_NICE` or an `RLIMIT_RTPRIO`.
    RealTime,
}

impl Priority {
    /// Gives the calling thread the best priority that the system grants, and returns it. For threads that
    /// measure; their work must be short, because it delays all ordinary tasks.
    pub fn raise() -> Self {
        let real_time = libc::sched_attr {
            sched_policy: libc::SCHED_FIFO as u32,
            sched_priority: 1,
            ..no_change()
        };
        let short_slice =
            libc::sched_attr { sched_runtime: SHORT_SLICE.as_nanos() as u64, ..no_change() };
        match () {
            () if set(&real_time) => Self::RealTime,
            // Older kernels accept this without effect.
            () if set(&short_slice) => Self::ShortSlice,
            () => Self::Normal,
        }
    }
}

/// `SCHED_OTHER` at the usual niceness.
const fn no_change() -> libc::sched_attr {
    libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    }
}

fn set(attributes: &libc::sched_attr) -> bool {
    const CALLING_THREAD: libc::pid_t = 0;
    // SAFETY: the kernel only reads the structure, whose `size` says how much of it there is.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setattr, CALLING_THREAD, std::ptr::from_ref(attributes), 0)
    };
    result == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_priority_that_is_reported() {
        let (raised, policy) = std::thread::spawn(|| {
            // SAFETY: no pointers are passed.
            (Priority::raise(), unsafe { libc::sched_getscheduler(0) })
        })
        .join()
        .unwrap();
        assert_eq!(policy == libc::SCHED_FIFO, raised == Priority::RealTime);
    }
}
