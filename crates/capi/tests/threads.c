/* The promise about threads: different endpoints are used by different threads at the same time, and an endpoint moves
 * from the thread that made it to another one. Compiled with the thread sanitizer.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rexmit.h"

enum { THREADS = 4, MESSAGES = 200, CAPACITY = 1500 };

struct pair {
    rexmit_endpoint *side[2];
    rexmit_address address[2];
    uint64_t association;
    unsigned received;
};

static void check(rexmit_status status, const char *call) {
    if (status != REXMIT_OK) {
        fprintf(stderr, "threads: %s: %s\n", call, rexmit_status_text(status));
        exit(1);
    }
}

static void make(struct pair *pair, int number) {
    memset(pair, 0, sizeof *pair);
    for (int i = 0; i < 2; i++) {
        uint8_t seed[32] = {(uint8_t)number, (uint8_t)i};
        rexmit_config *config = rexmit_config_new();
        rexmit_config_set_accept(config, i == 1);
        check(rexmit_endpoint_new(config, seed, &pair->side[i]), "endpoint_new");
        rexmit_config_free(config);
    }
    check(rexmit_address_parse("192.0.2.1:9899", &pair->address[0]), "address_parse");
    check(rexmit_address_parse("192.0.2.2:9899", &pair->address[1]), "address_parse");
    check(rexmit_connect(pair->side[0], 0, &pair->address[1], 1, 5000, &pair->association), "connect");
}

/* Moves all packets of one side to the other, and counts the messages that have arrived. */
static void turn(struct pair *pair, int from, uint64_t now) {
    uint8_t packet[CAPACITY];
    size_t length;
    rexmit_address local, remote;
    rexmit_event event;
    rexmit_message message;
    while (rexmit_endpoint_poll_transmit(pair->side[from], now, &local, &remote, packet, CAPACITY, &length) ==
           REXMIT_OK)
        check(rexmit_endpoint_handle_input(pair->side[1 - from], now, &pair->address[1 - from], &pair->address[from],
                                           packet, length),
              "handle_input");
    while (rexmit_endpoint_poll_event(pair->side[1 - from], &event) == REXMIT_OK)
        while (event.kind == REXMIT_EVENT_READABLE &&
               rexmit_receive(pair->side[1 - from], now, event.association, &message) == REXMIT_OK) {
            pair->received++;
            rexmit_message_free(&message);
        }
}

static void *run(void *argument) {
    struct pair *pair = argument;
    uint64_t now = 0;
    for (unsigned sent = 0; pair->received < MESSAGES && now < 60000000000; now += 10000000) {
        if (sent < MESSAGES) {
            rexmit_delivery delivery = REXMIT_DELIVERY(0);
            rexmit_buffer text = {(const uint8_t *)"hello", 5};
            check(rexmit_send(pair->side[0], now, pair->association, &delivery, &text, 1, NULL), "send");
            sent++;
        }
        for (int from = 0; from < 2; from++) {
            rexmit_endpoint_handle_timeout(pair->side[from], now);
            turn(pair, from, now);
        }
    }
    return NULL;
}

int main(void) {
    static struct pair pairs[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        make(&pairs[i], i); /* in this thread, and used in another one */
        if (pthread_create(&threads[i], NULL, run, &pairs[i]) != 0)
            return 1;
    }
    unsigned received = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        received += pairs[i].received;
        for (int side = 0; side < 2; side++)
            rexmit_endpoint_free(pairs[i].side[side]);
    }
    printf("%u of %d messages\n", received, THREADS * MESSAGES);
    return received == THREADS * MESSAGES ? 0 : 1;
}
