#include "workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 4

static void *zeroed(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size);
	if (memory == NULL) {
		perror("calloc");
		exit(2);
	}
	return memory;
}

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t generator_of(const struct plan *plan, uint32_t number)
{
	return plan->key ^ ((uint64_t)plan->direction << 32) ^ number;
}

static uint32_t size_of(uint32_t number, uint64_t draw)
{
	uint32_t below;
	if (number % 400 == 10)
		return LARGEST_MESSAGE;
	if (number % 100 < 3)
		return number % 100 + 1;
	if (draw % 100 < 80)
		below = 1 << 10;
	else if (draw % 100 < 98)
		below = 1 << 12;
	else
		below = 1 << 16;
	return 1 + (uint32_t)((draw >> 32) % below);
}

void plan_init(struct plan *plan, uint64_t seed, enum direction direction, uint32_t count,
               uint16_t streams)
{
	uint32_t *next_sequence = zeroed(streams, sizeof *next_sequence);
	plan->key = splitmix64(&seed);
	plan->direction = direction;
	plan->count = count;
	plan->messages = zeroed(count, sizeof *plan->messages);
	for (uint32_t number = 0; number < count; number++) {
		struct message *message = &plan->messages[number];
		uint64_t state = generator_of(plan, number);
		uint64_t place = splitmix64(&state), size = splitmix64(&state);
		message->stream = (uint16_t)((place & 0xffffffffu) % streams);
		message->sequence =
		    (place >> 32) % 3 == 0 ? UNORDERED : next_sequence[message->stream]++;
		message->size = size_of(number, size);
	}
	free(next_sequence);
}

static void put_le(uint8_t *bytes, uint64_t value, int count)
{
	for (int i = 0; i < count; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
}

static void header_of(const struct plan *plan, uint32_t number, uint8_t header[16])
{
	const struct message *message = &plan->messages[number];
	put_le(header, number << 1 | (message->sequence == UNORDERED), 4);
	header[4] = (uint8_t)plan->direction;
	header[5] = 0;
	put_le(header + 6, message->stream, 2);
	put_le(header + 8, message->sequence, 4);
	put_le(header + 12, message->size, 4);
}

void plan_write_payload(const struct plan *plan, uint32_t number, uint8_t *payload)
{
	uint32_t size = plan->messages[number].size;
	uint64_t state = generator_of(plan, number);
	uint8_t part[16];

	splitmix64(&state); /* those of plan_init */
	splitmix64(&state);
	header_of(plan, number, part);
	memcpy(payload, part, size < 16 ? size : 16);
	for (uint32_t at = 16; at < size; at += 8) {
		put_le(part, splitmix64(&state), 8);
		memcpy(payload + at, part, size - at < 8 ? size - at : 8);
	}
}

void verifier_init(struct verifier *verifier, struct plan plan, uint16_t streams)
{
	memset(verifier, 0, sizeof *verifier);
	verifier->plan = plan;
	verifier->is_received = zeroed(plan.count, sizeof(bool));
	verifier->next_sequence = zeroed(streams, sizeof(uint32_t));
	verifier->counts.lost = plan.count;
}

static bool is_message(struct verifier *verifier, uint32_t number, uint16_t stream,
                       const uint8_t *payload, size_t size)
{
	const struct message *message;
	if (number >= verifier->plan.count)
		return false;
	message = &verifier->plan.messages[number];
	if (message->stream != stream || message->size != size)
		return false;
	plan_write_payload(&verifier->plan, number, verifier->expected);
	return memcmp(payload, verifier->expected, size) == 0;
}

/* The number of the message that these bytes are, or -1. */
static int64_t identify(struct verifier *verifier, uint16_t stream, const uint8_t *payload,
                        size_t size)
{
	int64_t seen = -1;
	if (size >= NUMBER_BYTES) {
		uint32_t word = payload[0] | (uint32_t)payload[1] << 8 |
		                (uint32_t)payload[2] << 16 | (uint32_t)payload[3] << 24;
		if (is_message(verifier, word >> 1, stream, payload, size))
			seen = word >> 1;
		return seen;
	}
	/* Several short messages may have the same bytes: the first not yet seen is meant. */
	for (uint32_t number = 0; number < verifier->plan.count; number++) {
		if (!is_message(verifier, number, stream, payload, size))
			continue;
		if (!verifier->is_received[number])
			return number;
		seen = number;
	}
	return seen;
}

void verifier_on_delivery(struct verifier *verifier, uint16_t stream, const uint8_t *payload,
                          size_t size)
{
	struct counts *counts = &verifier->counts;
	int64_t number = identify(verifier, stream, payload, size);
	uint32_t sequence;

	if (number < 0) {
		counts->corrupted++;
		return;
	}
	if (verifier->is_received[number]) {
		counts->duplicated++;
		return;
	}
	verifier->is_received[number] = true;
	counts->received++;
	counts->lost--;
	sequence = verifier->plan.messages[number].sequence;
	if (sequence == UNORDERED)
		return;
	if (sequence < verifier->next_sequence[stream])
		counts->out_of_order++;
	else
		verifier->next_sequence[stream] = sequence + 1;
}
