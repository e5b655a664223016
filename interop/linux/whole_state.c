/* For LD_PRELOAD under User Mode Linux. It saves and restores the registers of its processes by ptrace with
 * a buffer of a fixed size; where the processor has more state than fits (AMX), the system refuses to
 * restore a part of it (EFAULT) and the kernel stops at once with "ptrace set fp regs failed". Here the part
 * replaces the beginning of the whole state, which is read first.
 *
 * It also runs its processes by ptrace, and stops at once if one gets a signal that it does not expect ("child stopped
 * with signal 18"). A machine or container that is paused and resumed sends SIGSTOP and SIGCONT to all processes: here
 * they are ignored, and the process goes on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

typedef long (*ptrace_call)(enum __ptrace_request, pid_t, void *, void *);

/* The process that was resumed last, and how. A process that was never resumed announces itself by SIGSTOP. */
static pid_t resumed;
static enum __ptrace_request resumed_by;

static int resumes(enum __ptrace_request request)
{
	return request == PTRACE_CONT || request == PTRACE_SYSCALL || request == PTRACE_SINGLESTEP ||
	       request == PTRACE_SYSEMU || request == PTRACE_SYSEMU_SINGLESTEP;
}

static long restore(pid_t process, const struct iovec *part)
{
	static uint8_t state[1 << 16] __attribute__((aligned(64)));
	struct iovec whole = { .iov_base = state, .iov_len = sizeof state };
	void *set = (void *)(uintptr_t)NT_X86_XSTATE;
	size_t length;
	if (syscall(SYS_ptrace, PTRACE_GETREGSET, process, set, &whole) < 0)
		return -1;
	length = part->iov_len < whole.iov_len ? part->iov_len : whole.iov_len;
	memcpy(state, part->iov_base, length);
	return syscall(SYS_ptrace, PTRACE_SETREGSET, process, set, &whole);
}

long ptrace(enum __ptrace_request request, ...)
{
	static ptrace_call original;
	va_list arguments;
	pid_t process;
	void *address, *data;

	va_start(arguments, request);
	process = va_arg(arguments, pid_t);
	address = va_arg(arguments, void *);
	data = va_arg(arguments, void *);
	va_end(arguments);
	if (request == PTRACE_SETREGSET && (uintptr_t)address == NT_X86_XSTATE)
		return restore(process, data);
	if (resumes(request)) {
		resumed = process;
		resumed_by = request;
	}
	if (original == NULL)
		original = (ptrace_call)dlsym(RTLD_NEXT, "ptrace");
	return original(request, process, address, data);
}

static int is_pause(int status)
{
	return WIFSTOPPED(status) && (WSTOPSIG(status) == SIGCONT || WSTOPSIG(status) == SIGSTOP);
}

pid_t waitpid(pid_t process, int *status, int options)
{
	int ignored;
	pid_t found;

	if (status == NULL)
		status = &ignored;
	do
		found = (pid_t)syscall(SYS_wait4, process, status, options, NULL);
	while (found > 0 && found == resumed && is_pause(*status) &&
	       syscall(SYS_ptrace, resumed_by, found, NULL, NULL) == 0);
	if (found > 0 && found == resumed && !WIFSTOPPED(*status))
		resumed = 0;
	return found;
}
