/* Two endpoints without sockets, over a link of this program's own that drops every eighth datagram: 100 messages
 * cross it in virtual time. An engine with a loop and sockets of its own does the same with real ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rexmit.h"

enum { MESSAGES = 100, CAPACITY = 1500, MAX_FLYING = 256 };
static const uint64_t MILLISECOND = 1000000, DELAY = 50 * 1000000;

struct datagram {
    uint64_t arrives;
    int to;
    size_t length;
    uint8_t bytes[CAPACITY];
};

static rexmit_endpoint *side[2];
static rexmit_address address[2];
static struct datagram flying[MAX_FLYING];
static size_t in_flight;
static unsigned sent;

static void fail(const char *what) {
    fprintf(stderr, "sans_io: %s\n", what);
    exit(1);
}

/* Puts on the link what an endpoint has to send. */
static void transmit(int from, uint64_t now) {
    rexmit_address local, remote;
    for (;;) {
        struct datagram *next = &flying[in_flight];
        rexmit_status status = rexmit_endpoint_poll_transmit(side[from], now, &local, &remote,
                                                             next->bytes, CAPACITY, &next->length);
        if (status == REXMIT_NOTHING)
            return;
        if (status != REXMIT_OK)
            fail(rexmit_endpoint_error(side[from]));
        next->to = 1 - from;
        next->arrives = now + DELAY;
        if (++sent % 8 != 0 && ++in_flight == MAX_FLYING)
            fail("the link is full");
    }
}

/* Delivers what has arrived by now. */
static void deliver(uint64_t now) {
    for (size_t i = 0; i < in_flight;) {
        struct datagram *next = &flying[i];
        if (next->arrives > now) {
            i++;
            continue;
        }
        int to = next->to;
        if (rexmit_endpoint_handle_input(side[to], now, &address[to], &address[1 - to],
                                         next->bytes, next->length) != REXMIT_OK)
            fail(rexmit_endpoint_error(side[to]));
        memmove(next, next + 1, (--in_flight - i) * sizeof *next);
    }
}

int main(void) {
    uint8_t seed[32] = {0};
    for (int i = 0; i < 2; i++) {
        rexmit_config *config = rexmit_config_new();
        rexmit_config_set_accept(config, i == 1);
        seed[0] = (uint8_t)i;
        if (rexmit_endpoint_new(config, seed, &side[i]) != REXMIT_OK)
            fail(rexmit_config_error(config));
        rexmit_config_free(config);
    }
    rexmit_address_parse("192.0.2.1:9899", &address[0]);
    rexmit_address_parse("192.0.2.2:9899", &address[1]);

    uint64_t association;
    if (rexmit_connect(side[0], 0, &address[1], 1, 5000, &association) != REXMIT_OK)
        fail(rexmit_endpoint_error(side[0]));
    unsigned received = 0, accepted = 0;
    uint64_t now = 0, longest = 0;
    for (; received < MESSAGES && now < 60000 * MILLISECOND; now += MILLISECOND) {
        deliver(now);
        if (now % (50 * MILLISECOND) == 0 && accepted < MESSAGES) {
            rexmit_delivery delivery = REXMIT_DELIVERY(0);
            rexmit_buffer stamp = {(const uint8_t *)&now, sizeof now};
            if (rexmit_send(side[0], now, association, &delivery, &stamp, 1, NULL) != REXMIT_OK)
                fail(rexmit_endpoint_error(side[0]));
            accepted++;
        }
        for (int i = 0; i < 2; i++) {
            rexmit_event event;
            rexmit_message message;
            if (rexmit_endpoint_poll_timeout(side[i]) <= now)
                rexmit_endpoint_handle_timeout(side[i], now);
            while (rexmit_endpoint_poll_event(side[i], &event) == REXMIT_OK) {
                if (event.kind == REXMIT_EVENT_CLOSED)
                    fail(event.data.closed.text);
                while (event.kind == REXMIT_EVENT_READABLE &&
                       rexmit_receive(side[i], now, event.association, &message) == REXMIT_OK) {
                    uint64_t then;
                    memcpy(&then, message.data, sizeof then);
                    if (now - then > longest)
                        longest = now - then;
                    received++;
                    rexmit_message_free(&message);
                }
            }
            transmit(i, now);
        }
    }
    rexmit_statistics statistics;
    if (rexmit_get_statistics(side[0], association, &statistics, sizeof statistics) != REXMIT_OK)
        fail(rexmit_endpoint_error(side[0]));
    printf("%u of %d messages, the latest after %u ms; %u packets, %u probes\n", received, MESSAGES,
           (unsigned)(longest / MILLISECOND), (unsigned)statistics.traffic.packets_sent,
           (unsigned)statistics.retransmitted.probe);
    for (int i = 0; i < 2; i++)
        rexmit_endpoint_free(side[i]);
    return received == MESSAGES ? 0 : 1;
}
