/* The messages of an interoperability run and the check of what arrived; the rules are stated in
 * interop/README.md and followed by the Rust and Go peers alike. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#define LARGEST_MESSAGE 65536
#define PPID 53
#define UNORDERED UINT32_MAX

enum direction { CLIENT_TO_SERVER = 0, SERVER_TO_CLIENT = 1 };

struct message {
	uint16_t stream;
	uint32_t sequence; /* its place among the ordered ones of its stream, or UNORDERED */
	uint32_t size;
};

struct plan {
	uint64_t key;
	enum direction direction;
	uint32_t count;
	struct message *messages;
};

struct counts {
	uint32_t received, lost, duplicated, out_of_order, corrupted;
};

struct verifier {
	struct plan plan;
	bool *is_received;
	uint32_t *next_sequence; /* per stream */
	struct counts counts;
	uint8_t expected[LARGEST_MESSAGE];
};

void plan_init(struct plan *, uint64_t seed, enum direction, uint32_t count, uint16_t streams);

/* Writes message `number` to `payload`, which has room for LARGEST_MESSAGE bytes. */
void plan_write_payload(const struct plan *, uint32_t number, uint8_t *payload);

/* Takes over the plan. */
void verifier_init(struct verifier *, struct plan, uint16_t streams);
void verifier_on_delivery(struct verifier *, uint16_t stream, const uint8_t *payload, size_t size);

#endif
