/* For LD_PRELOAD under User Mode Linux. It saves and restores the registers of its processes by ptrace with
 * a buffer of a fixed size; where the processor has more state than fits (AMX), the system refuses to
 * restore a part of it (EFAULT) and the kernel stops at once with "ptrace set fp regs failed". Here the part
 * replaces the beginning of the whole state, which is read first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

typedef long (*ptrace_call)(enum __ptrace_request, pid_t, void *, void *);

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
	if (original == NULL)
		original = (ptrace_call)dlsym(RTLD_NEXT, "ptrace");
	return original(request, process, address, data);
}
