/* Messages with deadlines over a link of 50 ms each way that drops one datagram in twenty, in virtual time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rexmit.h"

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                            \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

/* Fewer under valgrind. */
#ifndef MESSAGES
#define MESSAGES 4000
#endif
enum { CAPACITY = 1500, MAX_FLYING = 256 };
static const uint64_t MILLISECOND = 1000000, DELAY = 50 * 1000000, INTERVAL = 50 * 1000000;

struct datagram {
    uint64_t arrives;
    int to;
    size_t length;
    uint8_t bytes[CAPACITY];
};

static rexmit_address address[2];
static struct datagram flying[MAX_FLYING];

struct outcome {
    unsigned late, packets, infeasible;
    double achievable;
};

/* Sends messages, each of which has `deadline` unless it is NULL. */
static struct outcome run(rexmit_config *config, const rexmit_timely_delivery *deadline) {
    struct outcome outcome = {0, 0, 0, 0};
    uint8_t seed[32] = {0};
    rexmit_endpoint *side[2];
    uint64_t association, random = 88172645463325252u;
    size_t in_flight = 0;
    unsigned in_time = 0, accepted = 0;
    for (int i = 0; i < 2; i++) {
        CHECK(rexmit_config_set_accept(config, i == 1) == REXMIT_OK);
        seed[0] = (uint8_t)i;
        CHECK(rexmit_endpoint_new(config, seed, &side[i]) == REXMIT_OK);
    }
    CHECK(rexmit_connect(side[0], 0, &address[1], 1, 5000, &association) == REXMIT_OK);
    const uint64_t end = INTERVAL * (MESSAGES + 40);
    for (uint64_t now = 0, next = 0; now < end; now = next > now ? next : now + 1) {
        for (size_t i = 0; i < in_flight;) {
            struct datagram *next = &flying[i];
            if (next->arrives > now) {
                i++;
                continue;
            }
            CHECK(rexmit_endpoint_handle_input(side[next->to], now, &address[next->to], &address[1 - next->to],
                                               next->bytes, next->length) == REXMIT_OK);
            memmove(next, next + 1, (--in_flight - i) * sizeof *next);
        }
        if (now % INTERVAL == 0 && now >= 20 * INTERVAL && accepted < MESSAGES) {
            rexmit_delivery plain = REXMIT_DELIVERY(1);
            rexmit_buffer stamp = {(const uint8_t *)&now, sizeof now};
            plain.flags = REXMIT_UNORDERED;
            CHECK((deadline ? rexmit_send_within(side[0], now, association, deadline, &stamp, 1, NULL)
                            : rexmit_send(side[0], now, association, &plain, &stamp, 1, NULL)) == REXMIT_OK);
            accepted++;
        }
        for (int i = 0; i < 2; i++) {
            rexmit_event event;
            rexmit_message message;
            if (rexmit_endpoint_poll_timeout(side[i]) <= now)
                CHECK(rexmit_endpoint_handle_timeout(side[i], now) == REXMIT_OK);
            while (rexmit_endpoint_poll_event(side[i], &event) == REXMIT_OK) {
                CHECK(event.kind != REXMIT_EVENT_CLOSED);
                if (event.kind == REXMIT_EVENT_INFEASIBLE) {
                    outcome.infeasible++;
                    outcome.achievable = event.data.infeasible.achievable;
                }
                while (event.kind == REXMIT_EVENT_READABLE &&
                       rexmit_receive(side[i], now, event.association, &message) == REXMIT_OK) {
                    uint64_t then;
                    memcpy(&then, message.data, sizeof then);
                    in_time += now - then <= 100 * MILLISECOND;
                    rexmit_message_free(&message);
                }
            }
            for (;;) {
                rexmit_address local, remote;
                struct datagram *next = &flying[in_flight];
                rexmit_status status = rexmit_endpoint_poll_transmit(side[i], now, &local, &remote, next->bytes,
                                                                     CAPACITY, &next->length);
                if (status == REXMIT_NOTHING)
                    break;
                CHECK(status == REXMIT_OK);
                next->to = 1 - i;
                next->arrives = now + DELAY;
                outcome.packets += i == 0;
                /* xorshift64 */
                random ^= random << 13, random ^= random >> 7, random ^= random << 17;
                if (now < 10 * INTERVAL || random % 20 != 0)
                    CHECK(++in_flight < MAX_FLYING);
            }
        }
        next = (now / INTERVAL + 1) * INTERVAL;
        for (int i = 0; i < 2; i++) {
            const uint64_t timeout = rexmit_endpoint_poll_timeout(side[i]);
            next = timeout < next ? timeout : next;
        }
        for (size_t i = 0; i < in_flight; i++)
            next = flying[i].arrives < next ? flying[i].arrives : next;
    }
    CHECK(accepted == MESSAGES);
    outcome.late = MESSAGES - in_time;
    for (int i = 0; i < 2; i++)
        rexmit_endpoint_free(side[i]);
    return outcome;
}

int main(void) {
    rexmit_timely_delivery within = {REXMIT_DELIVERY(1), 100, 0.99};
    within.delivery.flags = REXMIT_UNORDERED;
    CHECK(rexmit_address_parse("192.0.2.1:9899", &address[0]) == REXMIT_OK);
    CHECK(rexmit_address_parse("192.0.2.2:9899", &address[1]) == REXMIT_OK);

    /* A retransmission would be too late: without a deadline one in twenty is late, with one every message has copies. */
    rexmit_config *config = rexmit_config_new();
    const struct outcome plain = run(config, NULL), copied = run(config, &within);
    CHECK(plain.late > MESSAGES / 40 && plain.infeasible == 0);
    CHECK(copied.late < MESSAGES / 50 && copied.infeasible == 0);

    /* The same as a setting of the association. */
    CHECK(rexmit_config_set_deadline(config, 100, 0.99) == REXMIT_OK);
    const struct outcome set = run(config, NULL);
    CHECK(set.late < MESSAGES / 50);
    CHECK(rexmit_config_set_deadline(config, 0, 0) == REXMIT_OK);
    CHECK(run(config, NULL).late == plain.late);

    /* A budget of one packet and one byte in a hundred is too little, and the event says so. */
    CHECK(rexmit_config_set_copy_budget(config, 1, 1) == REXMIT_OK);
    const struct outcome poor = run(config, &within);
    CHECK(poor.late > MESSAGES / 40 && poor.packets < copied.packets);
    CHECK(poor.infeasible > 0 && poor.achievable > 0.9 && poor.achievable < 0.99);

    /* The profile has a budget and a deadline of its own. */
    CHECK(rexmit_config_set_profile(config, REXMIT_INTERACTIVE) == REXMIT_OK);
    CHECK(run(config, &within).late == copied.late);

    /* Every profile, up to the last. */
    for (uint32_t profile = 0; profile <= REXMIT_INTERACTIVE_MULTIPATH; profile++) {
        CHECK(rexmit_config_set_profile(config, profile) == REXMIT_OK);
        CHECK(rexmit_config_validate(config) == REXMIT_OK);
    }
    CHECK(rexmit_config_set_profile(config, REXMIT_INTERACTIVE_MULTIPATH + 1) == REXMIT_INVALID_ARGUMENT);
    /* Bundled copies cost bytes, but save time, also without deadlines. */
    CHECK(rexmit_config_set_profile(config, REXMIT_INTERACTIVE_BUNDLING) == REXMIT_OK);
    const struct outcome bundled = run(config, NULL);
    CHECK(bundled.late < plain.late && bundled.packets < copied.packets);
    rexmit_config_free(config);
    return 0;
}
