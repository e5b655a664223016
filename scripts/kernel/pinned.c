/* For LD_PRELOAD under the kernel that scripts/kernel-host builds: whatever it asks the system for at random comes from
 * the environment's REXMIT_KERNEL_SEED, so that a run can be repeated. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

/* SplitMix64: each value of the state gives 64 bits. */
static uint64_t next(uint64_t *state)
{
	uint64_t bits = *state += 0x9e3779b97f4a7c15;

	bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
	bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
	return bits ^ (bits >> 31);
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
	static uint64_t state;
	static int is_seeded;
	uint8_t *bytes = buffer;
	size_t done;

	(void)flags;
	if (!is_seeded) {
		const char *seed = getenv("REXMIT_KERNEL_SEED");
		state = seed ? strtoull(seed, NULL, 10) : 0;
		is_seeded = 1;
	}
	for (done = 0; done < length; done++)
		bytes[done] = (uint8_t)(next(&state) >> 56);
	return (ssize_t)length;
}
