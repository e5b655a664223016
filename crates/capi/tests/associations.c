/* The settings of a configuration, and the calls that change an association: each with its effect on two endpoints
 * without sockets, over a link of 20 ms each way in virtual time. With FROZEN it does without the calls that the header in
 * tests/abi lacks.
 */
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

enum { CLIENT, SERVER, CAPACITY = 1500, MAX_FLYING = 1024, MAX_EVENTS = 1024 };
static const uint64_t MILLISECOND = 1000000, DELAY = 20 * 1000000;

struct datagram {
    uint64_t arrives;
    int to;
    rexmit_address source, target;
    size_t length;
    uint8_t bytes[CAPACITY];
};

/* An event with the first stream of its list, as the list is valid until the next event only. */
struct seen {
    rexmit_event event;
    uint16_t stream;
};

static uint64_t now = 1;
static rexmit_endpoint *side[2];
static uint64_t association[2];
static bool is_connected[2];
static rexmit_address home[2], second[2], third;
static struct datagram flying[MAX_FLYING];
static size_t in_flight;
static struct seen seen[2][MAX_EVENTS];
static size_t seen_count[2];
/* What a side has sent: datagrams, the bytes of the largest, and the addresses of the last. */
static unsigned sent[2];
static size_t largest;
static rexmit_address last_source[2], last_target[2];
/* Messages that a side has received, unless it does not read. */
static unsigned received[2];
static bool is_reading;
/* Datagrams of the client to lose, the sides from which none arrives, and the address to which none does. */
static unsigned lose;
static bool is_cut[2];
static const rexmit_address *unreachable;

static rexmit_address parsed(const char *text) {
    rexmit_address address;
    CHECK(rexmit_address_parse(text, &address) == REXMIT_OK);
    return address;
}

static bool is_same_host(const rexmit_address *a, const rexmit_address *b) {
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static void transmit(int from) {
    static const uint8_t unspecified[16];
    for (;;) {
        CHECK(in_flight < MAX_FLYING);
        struct datagram *next = &flying[in_flight];
        const rexmit_status status = rexmit_endpoint_poll_transmit(side[from], now, &next->source, &next->target,
                                                                   next->bytes, CAPACITY, &next->length);
        if (status == REXMIT_NOTHING)
            return;
        CHECK(status == REXMIT_OK);
        if (memcmp(next->source.bytes, unspecified, sizeof unspecified) == 0)
            next->source = home[from];
        next->source.port = home[from].port;
        next->to = 1 - from;
        next->arrives = now + DELAY;
        sent[from]++;
        largest = next->length > largest ? next->length : largest;
        last_source[from] = next->source;
        last_target[from] = next->target;
        if (from == CLIENT && lose > 0)
            lose--;
        else if (!is_cut[from] && !(unreachable && is_same_host(&next->target, unreachable)))
            in_flight++;
    }
}

static void deliver(void) {
    for (size_t i = 0; i < in_flight;) {
        struct datagram *next = &flying[i];
        if (next->arrives > now) {
            i++;
            continue;
        }
        CHECK(rexmit_endpoint_handle_input(side[next->to], now, &next->target, &next->source, next->bytes,
                                           next->length) == REXMIT_OK);
        memmove(next, next + 1, (--in_flight - i) * sizeof *next);
    }
}

static void read_events(int of) {
    rexmit_event event;
    while (rexmit_endpoint_poll_event(side[of], &event) == REXMIT_OK) {
        const bool has_streams =
            event.kind == REXMIT_EVENT_STREAMS_RESET || event.kind == REXMIT_EVENT_PEER_RESET_STREAMS;
        if (event.kind == REXMIT_EVENT_CONNECTED)
            association[of] = event.association, is_connected[of] = true;
        CHECK(seen_count[of] < MAX_EVENTS);
        struct seen *next = &seen[of][seen_count[of]++];
        next->event = event;
        next->stream = has_streams && event.data.streams.count > 0 ? event.data.streams.streams[0] : 0;
    }
}

static void read_messages(int of) {
    rexmit_message message;
    while (is_reading && rexmit_receive(side[of], now, association[of], &message) == REXMIT_OK) {
        received[of]++;
        rexmit_message_free(&message);
    }
}

/* The next time at which something is due, `end` at the latest. */
static uint64_t next_due(uint64_t end) {
    uint64_t due = end;
    for (int i = 0; i < 2; i++) {
        const uint64_t timeout = rexmit_endpoint_poll_timeout(side[i]);
        due = timeout < due ? timeout : due;
    }
    for (size_t i = 0; i < in_flight; i++)
        due = flying[i].arrives < due ? flying[i].arrives : due;
    return due > now ? due : now + 1;
}

static void run(unsigned milliseconds) {
    for (const uint64_t end = now + milliseconds * MILLISECOND; now < end; now = next_due(end)) {
        deliver();
        for (int i = 0; i < 2; i++) {
            if (rexmit_endpoint_poll_timeout(side[i]) <= now)
                CHECK(rexmit_endpoint_handle_timeout(side[i], now) == REXMIT_OK);
            read_events(i);
            read_messages(i);
            transmit(i);
        }
    }
}

/* The next event of this kind, after which earlier ones are forgotten; NULL without one. */
static const struct seen *next_event(int of, rexmit_event_kind kind) {
    static struct seen found;
    for (size_t i = 0; i < seen_count[of]; i++)
        if (seen[of][i].event.kind == kind) {
            found = seen[of][i];
            seen_count[of] -= i + 1;
            memmove(seen[of], &seen[of][i + 1], seen_count[of] * sizeof found);
            return &found;
        }
    return NULL;
}

/* Two configurations: of the client, and of the server. */
struct configs {
    rexmit_config *of[2];
};

static struct configs defaults(void) {
    struct configs both = {{rexmit_config_new(), rexmit_config_new()}};
    CHECK(rexmit_config_set_accept(both.of[SERVER], true) == REXMIT_OK);
    return both;
}

/* A new pair of endpoints, of which the client begins to connect. Frees the configurations. */
static void begin(struct configs both) {
    for (int i = 0; i < 2; i++) {
        const uint8_t seed[32] = {(uint8_t)i};
        rexmit_endpoint_free(side[i]);
        CHECK(rexmit_endpoint_new(both.of[i], seed, &side[i]) == REXMIT_OK);
        rexmit_config_free(both.of[i]);
        seen_count[i] = 0, sent[i] = received[i] = 0, is_cut[i] = is_connected[i] = false;
    }
    in_flight = 0, largest = 0, lose = 0, is_reading = true, unreachable = NULL;
    CHECK(rexmit_connect(side[CLIENT], now, &home[SERVER], 1, 5000, &association[CLIENT]) == REXMIT_OK);
}

/* The same, and connected. */
static void pair(struct configs both) {
    begin(both);
    run(200);
    CHECK(is_connected[CLIENT] && is_connected[SERVER]);
}

static rexmit_status send_with(const rexmit_delivery *delivery, size_t length, uint64_t *id) {
    static uint8_t bytes[70000];
    const rexmit_buffer buffer = {bytes, length};
    CHECK(length <= sizeof bytes);
    return rexmit_send(side[CLIENT], now, association[CLIENT], delivery, &buffer, 1, id);
}

static rexmit_status send_bytes(uint16_t stream, size_t length) {
    const rexmit_delivery delivery = REXMIT_DELIVERY(stream);
    return send_with(&delivery, length, NULL);
}

static rexmit_statistics statistics(int of) {
    rexmit_statistics all;
    CHECK(rexmit_get_statistics(side[of], association[of], &all, sizeof all) == REXMIT_OK);
    return all;
}

static rexmit_path_statistics path(int of, uint8_t number) {
    rexmit_path_statistics one;
    CHECK(rexmit_get_path_statistics(side[of], association[of], number, &one, sizeof one) == REXMIT_OK);
    return one;
}

static void streams_packets_and_associations_have_limits(void) {
    struct configs both = defaults();
    CHECK(rexmit_config_set_outbound_streams(both.of[CLIENT], 10) == REXMIT_OK);
    CHECK(rexmit_config_set_max_inbound_streams(both.of[SERVER], 4) == REXMIT_OK);
    CHECK(rexmit_config_set_max_associations(both.of[CLIENT], 1) == REXMIT_OK);
    for (int i = 0; i < 2; i++) {
        CHECK(rexmit_config_set_max_packet_bytes(both.of[i], 10) == REXMIT_OK);
        CHECK(rexmit_config_validate(both.of[i]) == REXMIT_CONFIG);
        CHECK(rexmit_config_set_max_packet_bytes(both.of[i], 600) == REXMIT_OK);
    }
    pair(both);
    CHECK(next_event(CLIENT, REXMIT_EVENT_CONNECTED)->event.data.connected.outbound_streams == 4);
    CHECK(next_event(SERVER, REXMIT_EVENT_CONNECTED)->event.data.connected.inbound_streams == 4);
    CHECK(send_bytes(4, 1) == REXMIT_NOT_FOUND);
    CHECK(send_bytes(3, 5000) == REXMIT_OK);
    run(500);
    CHECK(received[SERVER] == 1 && largest <= 600);
    uint64_t other;
    CHECK(rexmit_connect(side[CLIENT], now, &third, 1, 5000, &other) == REXMIT_LIMIT);

    both = defaults();
    CHECK(rexmit_config_set_outbound_streams(both.of[CLIENT], 10) == REXMIT_OK);
    pair(both);
    CHECK(next_event(CLIENT, REXMIT_EVENT_CONNECTED)->event.data.connected.outbound_streams == 10);
    CHECK(send_bytes(3, 5000) == REXMIT_OK);
    run(500);
    CHECK(received[SERVER] == 1 && largest > 600 && largest <= 1232);
    CHECK(rexmit_connect(side[CLIENT], now, &third, 1, 5000, &other) == REXMIT_OK);
}

static void buffers_have_limits(void) {
    struct configs both = defaults();
    CHECK(rexmit_config_set_send_buffer_bytes(both.of[CLIENT], 3000) == REXMIT_OK);
    pair(both);
    rexmit_status status = REXMIT_OK;
    unsigned accepted = 0;
    while ((status = send_bytes(0, 1000)) == REXMIT_OK)
        CHECK(++accepted <= 3);
    CHECK(status == REXMIT_BUFFER_FULL && accepted == 3 && statistics(CLIENT).send_buffered_bytes == 3000);
    run(500);
    CHECK(next_event(CLIENT, REXMIT_EVENT_WRITABLE) && received[SERVER] == 3);
    CHECK(statistics(CLIENT).send_buffered_bytes == 0);

    /* The server does not read: what it cannot hold stays with the client. */
    both = defaults();
    CHECK(rexmit_config_set_receive_buffer_bytes(both.of[SERVER], 20000) == REXMIT_OK);
    CHECK(rexmit_config_validate(both.of[SERVER]) == REXMIT_CONFIG);
    CHECK(rexmit_config_set_max_message_bytes(both.of[SERVER], 10000) == REXMIT_OK);
    CHECK(rexmit_config_set_max_message_bytes(both.of[CLIENT], 10000) == REXMIT_OK);
    pair(both);
    is_reading = false;
    CHECK(send_bytes(0, 10001) == REXMIT_TOO_LARGE);
    for (int n = 0; n < 100; n++)
        CHECK(send_bytes(0, 1000) == REXMIT_OK);
    run(5000);
    const uint64_t held = statistics(SERVER).receive_buffered_bytes;
    CHECK(held > 10000 && held <= 22000);
    CHECK(statistics(CLIENT).send_buffered_bytes > 70000);
    is_reading = true;
    run(5000);
    CHECK(received[SERVER] == 100 && statistics(CLIENT).send_buffered_bytes == 0);
}

static void silence_has_limits(void) {
    /* Heartbeats of an idle association: none, and some. */
    struct configs both = defaults();
    for (int i = 0; i < 2; i++)
        CHECK(rexmit_config_set_heartbeat_interval(both.of[i], 0) == REXMIT_OK);
    pair(both);
    sent[CLIENT] = sent[SERVER] = 0;
    run(60000);
    CHECK(sent[CLIENT] == 0 && sent[SERVER] == 0);
    both = defaults();
    CHECK(rexmit_config_set_heartbeat_interval(both.of[CLIENT], 1000) == REXMIT_OK);
    pair(both);
    sent[CLIENT] = 0;
    run(60000);
    CHECK(sent[CLIENT] >= 20 && sent[CLIENT] <= 60);

    /* A peer that vanished is unreachable after two seconds, or not for minutes. */
    for (int limited = 0; limited < 2; limited++) {
        both = defaults();
        CHECK(rexmit_config_set_dead_after(both.of[CLIENT], limited ? 2000 : 0) == REXMIT_OK);
        pair(both);
        is_cut[SERVER] = true;
        CHECK(send_bytes(0, 1) == REXMIT_OK);
        run(1900);
        CHECK(!next_event(CLIENT, REXMIT_EVENT_CLOSED));
        run(2000);
        const struct seen *closed = next_event(CLIENT, REXMIT_EVENT_CLOSED);
        CHECK(limited ? closed && closed->event.data.closed.reason == REXMIT_CLOSED_UNREACHABLE : !closed);
    }

    /* A server that never answered: the first INIT and one retransmission. (Interactive profiles send more, early.) */
    both = defaults();
    CHECK(rexmit_config_set_profile(both.of[CLIENT], REXMIT_RFC9260) == REXMIT_OK);
    CHECK(rexmit_config_set_max_init_retransmits(both.of[CLIENT], 1) == REXMIT_OK);
    begin(both);
    is_cut[SERVER] = true;
    run(20000);
    CHECK(sent[CLIENT] == 2);
    CHECK(next_event(CLIENT, REXMIT_EVENT_CLOSED)->event.data.closed.reason == REXMIT_CLOSED_CONNECT_TIMED_OUT);
}

static void messages_are_reported(void) {
    struct configs both = defaults();
    CHECK(rexmit_config_set_report_sent(both.of[CLIENT], true) == REXMIT_OK);
    pair(both);
    const rexmit_delivery delivery = REXMIT_DELIVERY(0);
    uint64_t id;
    CHECK(send_with(&delivery, 1, &id) == REXMIT_OK);
    run(500);
    CHECK(next_event(CLIENT, REXMIT_EVENT_MESSAGE_SENT)->event.data.message.id == id);
    CHECK(!next_event(CLIENT, REXMIT_EVENT_MESSAGE_ACKNOWLEDGED));

    both = defaults();
    CHECK(rexmit_config_set_report_acknowledged(both.of[CLIENT], true) == REXMIT_OK);
    pair(both);
    CHECK(send_with(&delivery, 1, &id) == REXMIT_OK);
    run(500);
    CHECK(next_event(CLIENT, REXMIT_EVENT_MESSAGE_ACKNOWLEDGED)->event.data.message.id == id);
    CHECK(!next_event(CLIENT, REXMIT_EVENT_MESSAGE_SENT));
}

static void extensions_are_offered_or_not(void) {
    const uint16_t streams[] = {3};
    for (int offered = 0; offered < 2; offered++) {
        struct configs both = defaults();
        CHECK(rexmit_config_set_partial_reliability(both.of[SERVER], offered) == REXMIT_OK);
        CHECK(rexmit_config_set_stream_reset(both.of[SERVER], offered) == REXMIT_OK);
        CHECK(rexmit_config_set_dynamic_addresses(both.of[SERVER], offered) == REXMIT_OK);
        pair(both);
        const rexmit_status expected = offered ? REXMIT_OK : REXMIT_NOT_SUPPORTED;
        CHECK(rexmit_reset_streams(side[CLIENT], now, association[CLIENT], streams, 1) == expected);
        CHECK(rexmit_add_address(side[CLIENT], now, association[CLIENT], &second[CLIENT]) == expected);
        CHECK(rexmit_set_shared_key(side[CLIENT], now, association[CLIENT], 1, (const uint8_t *)"key", 3) == expected);
        run(500);

        /* A message that is lost for longer than its lifetime is abandoned, or else delivered late. */
        rexmit_delivery brief = REXMIT_DELIVERY(0);
        uint64_t id;
        brief.lifetime = 50;
        brief.reserved = 1;
        CHECK(send_with(&brief, 1, &id) == REXMIT_INVALID_ARGUMENT);
        brief.reserved = 0;
        received[SERVER] = 0;
        is_cut[CLIENT] = true;
        CHECK(send_with(&brief, 1, &id) == REXMIT_OK);
        run(300);
        is_cut[CLIENT] = false;
        run(5000);
        const struct seen *failed = next_event(CLIENT, REXMIT_EVENT_MESSAGE_FAILED);
        CHECK(received[SERVER] == (offered ? 0 : 1) && (failed != NULL) == (offered == 1));
        CHECK(!failed || (failed->event.data.message.id == id &&
                          failed->event.data.message.reason == REXMIT_FAILED_EXPIRED));
    }
}

static void streams_are_reset(void) {
    const uint16_t streams[] = {3}, wrong[] = {16};
    pair(defaults());
    CHECK(rexmit_reset_streams(side[CLIENT], now, association[CLIENT], wrong, 1) == REXMIT_NOT_FOUND);
    CHECK(rexmit_reset_streams(side[CLIENT], now, association[CLIENT], NULL, 1) == REXMIT_INVALID_ARGUMENT);
    CHECK(rexmit_reset_streams(side[CLIENT], now, association[CLIENT], streams, 1) == REXMIT_OK);
    CHECK(rexmit_reset_streams(side[CLIENT], now, association[CLIENT], streams, 1) == REXMIT_ALREADY);
    run(500);
    const struct seen *ours = next_event(CLIENT, REXMIT_EVENT_STREAMS_RESET);
    CHECK(ours && ours->stream == 3 && ours->event.data.streams.count == 1 && ours->event.data.streams.performed);
    const struct seen *theirs = next_event(SERVER, REXMIT_EVENT_PEER_RESET_STREAMS);
    CHECK(theirs && theirs->stream == 3 && theirs->event.data.streams.count == 1);
    CHECK(rexmit_reset_streams(side[CLIENT], now, association[CLIENT], NULL, 0) == REXMIT_OK);
    run(500);
    CHECK(next_event(SERVER, REXMIT_EVENT_PEER_RESET_STREAMS)->event.data.streams.count == 0);
}

/* Loses a message of this stream; whether the probe timer retransmitted it, and not the retransmission timer. */
static bool is_probed(uint16_t stream) {
    const rexmit_by_cause before = statistics(CLIENT).retransmitted;
    received[SERVER] = 0;
    lose = 1;
    CHECK(send_bytes(stream, 100) == REXMIT_OK);
    run(5000);
    const rexmit_by_cause after = statistics(CLIENT).retransmitted;
    CHECK(received[SERVER] == 1);
    CHECK(after.probe - before.probe + after.timeout - before.timeout == 1);
    return after.probe > before.probe;
}

static void thin_streams_have_mechanisms(void) {
    struct configs both = defaults();
    for (int i = 0; i < 2; i++)
        CHECK(rexmit_config_set_heartbeat_interval(both.of[i], 0) == REXMIT_OK);
    pair(both);
    CHECK(statistics(CLIENT).is_thin && is_probed(0) && is_probed(3));
    CHECK(rexmit_set_thin(side[CLIENT], now, association[CLIENT], 4711) == REXMIT_INVALID_ARGUMENT);
    CHECK(rexmit_set_thin(side[CLIENT], now, association[CLIENT], REXMIT_RFC9260) == REXMIT_OK);
    CHECK(!is_probed(0) && !is_probed(3));

    /* One stream is singled out, and no longer. */
    CHECK(rexmit_set_stream_thin(side[CLIENT], now, association[CLIENT], 16, REXMIT_INTERACTIVE) == REXMIT_NOT_FOUND);
    CHECK(rexmit_set_stream_thin(side[CLIENT], now, association[CLIENT], 3, REXMIT_INTERACTIVE) == REXMIT_OK);
    CHECK(!is_probed(0) && is_probed(3));
    CHECK(rexmit_unset_stream_thin(side[CLIENT], now, association[CLIENT], 16) == REXMIT_NOT_FOUND);
    CHECK(rexmit_unset_stream_thin(side[CLIENT], now, association[CLIENT], 3) == REXMIT_OK);
    CHECK(!is_probed(0) && !is_probed(3));
    CHECK(rexmit_set_thin(side[CLIENT], now, association[CLIENT], REXMIT_INTERACTIVE) == REXMIT_OK);
    CHECK(is_probed(0));
}

static void data_takes_the_primary_path(void) {
    struct configs both = defaults();
    for (int i = 0; i < 2; i++) {
        CHECK(rexmit_config_add_address(both.of[i], &home[i]) == REXMIT_OK);
        CHECK(rexmit_config_add_address(both.of[i], &second[i]) == REXMIT_OK);
    }
    pair(both);
    run(3000); /* until the second path is confirmed */
    CHECK(statistics(CLIENT).paths == 2);
    rexmit_path_statistics first = path(CLIENT, 0), other = path(CLIENT, 1);
    CHECK(first.is_primary && !other.is_primary && other.state == REXMIT_PATH_ACTIVE && first.srtt >= 2 * DELAY);
    CHECK(is_same_host(&other.local, &second[CLIENT]) && is_same_host(&other.remote, &second[SERVER]));
    CHECK(rexmit_get_path_statistics(side[CLIENT], association[CLIENT], 2, &first, sizeof first) == REXMIT_NOT_FOUND);

    CHECK(send_bytes(0, 100) == REXMIT_OK);
    transmit(CLIENT);
    CHECK(is_same_host(&last_source[CLIENT], &home[CLIENT]) && is_same_host(&last_target[CLIENT], &home[SERVER]));
    CHECK(rexmit_set_primary(side[CLIENT], now, association[CLIENT], 2) == REXMIT_NOT_FOUND);
    CHECK(rexmit_set_primary(side[CLIENT], now, association[CLIENT], 1) == REXMIT_OK);
    CHECK(send_bytes(0, 100) == REXMIT_OK);
    transmit(CLIENT);
    CHECK(is_same_host(&last_source[CLIENT], &second[CLIENT]) && is_same_host(&last_target[CLIENT], &second[SERVER]));
    run(500);
    CHECK(path(CLIENT, 1).is_primary && received[SERVER] == 2);
    CHECK(next_event(CLIENT, REXMIT_EVENT_DATA_PATH_CHANGED)->event.data.path.path == 1);
}

/* Whether the peer has accepted the last change of an address of the client's, which is `what`. */
static bool is_changed(uint8_t what, const rexmit_address *address) {
    run(1000);
    const struct seen *changed = next_event(CLIENT, REXMIT_EVENT_ADDRESS_CHANGED);
    if (!changed)
        return false;
    CHECK(changed->event.data.address_change.what == what);
    CHECK(is_same_host(&changed->event.data.address_change.address, address));
    return changed->event.data.address_change.refused == 0;
}

static void addresses_come_and_go(void) {
    const rexmit_address loopback = parsed("127.0.0.1:1");
    pair(defaults());
    rexmit_endpoint *client = side[CLIENT];
    const uint64_t id = association[CLIENT];
    CHECK(rexmit_add_address(client, now, id, &loopback) == REXMIT_INVALID_ARGUMENT);
    CHECK(rexmit_add_address(client, now, id, &second[CLIENT]) == REXMIT_OK);
    CHECK(rexmit_add_address(client, now, id, &second[CLIENT]) == REXMIT_ALREADY);
    CHECK(is_changed(1, &second[CLIENT]));
    const struct seen *added = next_event(SERVER, REXMIT_EVENT_PEER_ADDRESS_ADDED);
    CHECK(added && is_same_host(&added->event.data.path.address, &second[CLIENT]));

#ifndef FROZEN
    /* The server sends to the address that the client prefers. */
    CHECK(rexmit_set_peer_primary(client, now, id, &third) == REXMIT_NOT_FOUND);
    CHECK(rexmit_set_peer_primary(client, now, id, &second[CLIENT]) == REXMIT_OK);
    CHECK(is_changed(3, &second[CLIENT]));
    const struct seen *preferred = next_event(SERVER, REXMIT_EVENT_DATA_PATH_CHANGED);
    CHECK(preferred && is_same_host(&preferred->event.data.path.address, &second[CLIENT]));
#endif

    CHECK(rexmit_delete_address(client, now, id, &third) == REXMIT_NOT_FOUND);
    CHECK(rexmit_delete_address(client, now, id, &home[CLIENT]) == REXMIT_OK);
    CHECK(is_changed(2, &home[CLIENT]));
    const struct seen *deleted = next_event(SERVER, REXMIT_EVENT_PEER_ADDRESS_DELETED);
    CHECK(deleted && is_same_host(&deleted->event.data.path.address, &home[CLIENT]));
    CHECK(send_bytes(0, 1) == REXMIT_OK);
    run(500);
    CHECK(received[SERVER] == 1 && is_same_host(&last_source[CLIENT], &second[CLIENT]));

    /* The host changes its network: everything is sent from the new address, and the server answers there. */
    CHECK(rexmit_move_to(client, now, id, &loopback) == REXMIT_INVALID_ARGUMENT);
    CHECK(rexmit_move_to(client, now, id, &third) == REXMIT_OK);
    CHECK(is_changed(1, &third));
    CHECK(send_bytes(0, 1) == REXMIT_OK);
    run(500);
    CHECK(received[SERVER] == 2 && is_same_host(&last_source[CLIENT], &third));
    CHECK(is_same_host(&last_target[SERVER], &third));
}

/* Keys authenticate changes of addresses: with a key that the server does not have, it ignores them. */
static void keys_authenticate(void) {
    const uint8_t *right = (const uint8_t *)"right", *wrong = (const uint8_t *)"wrong";
    struct configs both = defaults();
    CHECK(rexmit_config_add_shared_key(both.of[CLIENT], 7, NULL, 5) == REXMIT_INVALID_ARGUMENT);
    CHECK(rexmit_config_add_shared_key(both.of[CLIENT], 7, right, 5) == REXMIT_OK);
    CHECK(rexmit_config_add_shared_key(both.of[SERVER], 7, wrong, 5) == REXMIT_OK);
    pair(both);
    CHECK(rexmit_add_address(side[CLIENT], now, association[CLIENT], &second[CLIENT]) == REXMIT_OK);
    CHECK(!is_changed(1, &second[CLIENT]) && !next_event(SERVER, REXMIT_EVENT_PEER_ADDRESS_ADDED));

    both = defaults();
    for (int i = 0; i < 2; i++)
        CHECK(rexmit_config_add_shared_key(both.of[i], 7, right, 5) == REXMIT_OK);
    pair(both);
    rexmit_endpoint *client = side[CLIENT], *server = side[SERVER];
    const uint64_t id = association[CLIENT], id_there = association[SERVER];
    CHECK(rexmit_add_address(client, now, id, &second[CLIENT]) == REXMIT_OK);
    CHECK(is_changed(1, &second[CLIENT]));

    /* Another key: both sides have it before one uses it, and then the first can be deleted. */
    CHECK(rexmit_use_shared_key(client, now, id, 8) == REXMIT_NOT_FOUND);
    CHECK(rexmit_delete_shared_key(client, now, id, 8) == REXMIT_NOT_FOUND);
    CHECK(rexmit_set_shared_key(client, now, id, 8, right, 5) == REXMIT_OK);
    CHECK(rexmit_set_shared_key(server, now, id_there, 8, right, 5) == REXMIT_OK);
    for (int i = 0; i < 2; i++)
        CHECK(rexmit_use_shared_key(side[i], now, association[i], 8) == REXMIT_OK);
    CHECK(rexmit_delete_shared_key(client, now, id, 8) == REXMIT_ALREADY);
    for (int i = 0; i < 2; i++)
        CHECK(rexmit_delete_shared_key(side[i], now, association[i], 7) == REXMIT_OK);
    CHECK(rexmit_use_shared_key(client, now, id, 7) == REXMIT_NOT_FOUND);
    CHECK(rexmit_delete_address(client, now, id, &second[CLIENT]) == REXMIT_OK);
    CHECK(is_changed(2, &second[CLIENT]));

    /* The client's eighth key and no further one; a key that the server has not got. */
    for (uint16_t key = 9; key < 16; key++)
        CHECK(rexmit_set_shared_key(client, now, id, key, wrong, 5) == REXMIT_OK);
    CHECK(rexmit_set_shared_key(client, now, id, 16, wrong, 5) == REXMIT_LIMIT);
    CHECK(rexmit_use_shared_key(client, now, id, 9) == REXMIT_OK);
    CHECK(rexmit_add_address(client, now, id, &second[CLIENT]) == REXMIT_OK);
    CHECK(!is_changed(1, &second[CLIENT]));
}

static void associations_end(void) {
    pair(defaults());
    CHECK(rexmit_shutdown(side[CLIENT], now, association[CLIENT]) == REXMIT_OK);
    CHECK(send_bytes(0, 1) == REXMIT_NOT_ESTABLISHED);
    run(500);
    for (int i = 0; i < 2; i++)
        CHECK(next_event(i, REXMIT_EVENT_CLOSED)->event.data.closed.reason == REXMIT_CLOSED_SHUTDOWN);

    pair(defaults());
    CHECK(rexmit_abort(side[CLIENT], now, association[CLIENT], (const uint8_t *)"enough", 6) == REXMIT_OK);
    run(500);
    const struct seen *closed = next_event(SERVER, REXMIT_EVENT_CLOSED);
    CHECK(closed && closed->event.data.closed.reason == REXMIT_CLOSED_ABORTED_BY_PEER);
    CHECK(closed->event.data.closed.cause == 12); /* User-Initiated Abort */
}

#ifndef FROZEN
/* A pair whose round trip was measured, and whose first message has arrived: it is acknowledged at once. */
static void measured_pair(struct configs both) {
    pair(both);
    CHECK(send_bytes(0, 100) == REXMIT_OK);
    run(1000);
    CHECK(received[SERVER] == 1);
}

/* The milliseconds until the server has a message whose first transmission is lost. */
static unsigned recovered_after(struct configs both) {
    measured_pair(both);
    lose = 1;
    CHECK(send_bytes(0, 100) == REXMIT_OK);
    const uint64_t begin_at = now;
    while (received[SERVER] == 1 && now < begin_at + 5000 * MILLISECOND)
        run(1);
    CHECK(received[SERVER] == 2);
    return (unsigned)((now - begin_at) / MILLISECOND);
}

static struct configs rfc9260(void) {
    struct configs both = defaults();
    for (int i = 0; i < 2; i++)
        CHECK(rexmit_config_set_profile(both.of[i], REXMIT_RFC9260) == REXMIT_OK);
    return both;
}

static void is_refused(rexmit_config *config, const char *settings, const char *why) {
    CHECK(rexmit_config_set_recovery(config, settings) == REXMIT_INVALID_ARGUMENT);
    if (!strstr(rexmit_config_error(config), why)) {
        fprintf(stderr, "%s: %s\n", settings, rexmit_config_error(config));
        exit(1);
    }
}

static void recovery_has_settings(void) {
    /* RTO.Min is 1 s in RFC 9260. */
    struct configs both = rfc9260();
    unsigned after = recovered_after(both);
    CHECK(after >= 1000 && after < 1100);
    both = rfc9260();
    CHECK(rexmit_config_set_recovery(both.of[CLIENT], "rto.min = '200ms' # a comment") == REXMIT_OK);
    after = recovered_after(both);
    CHECK(after >= 200 && after < 300);

    /* Calls add up, those that are refused change nothing, and a profile replaces all of it. */
    both = rfc9260();
    rexmit_config *config = both.of[CLIENT];
    CHECK(rexmit_config_set_recovery(config, "[rto]\nmin = '400ms'\n") == REXMIT_OK);
    CHECK(rexmit_config_set_recovery(config, "rto = { max = '10s' }\nmissing_reports = 4") == REXMIT_OK);
    is_refused(config, "missing_reports = 4\nrto.mim = '300ms'", "line 2: rto.mim: unknown field `mim`; did you mean `min`?");
    is_refused(config, "rto.min = '300'", "line 1: rto.min: `300` needs one of the units");
    is_refused(config, "rto.min = 300", "line 1: rto.min: invalid type: integer `300`");
    is_refused(config, "rto.min = '300ms', missing_reports = 4", "line 1: ");
    is_refused(config, "rto.min = '11s'", "RTO.Min is above RTO.Max");
    is_refused(config, "loss_detection = 'duplicate_acks'", "SCTP has no duplicate ACKs");
    is_refused(config, "tcp.limited_transmit = true", "settings of TCP");
    CHECK(rexmit_config_validate(config) == REXMIT_OK);
    after = recovered_after(both);
    CHECK(after >= 400 && after < 500);
    both = rfc9260();
    CHECK(rexmit_config_set_recovery(both.of[CLIENT], "rto.min = '200ms'") == REXMIT_OK);
    CHECK(rexmit_config_set_profile(both.of[CLIENT], REXMIT_RFC9260) == REXMIT_OK);
    CHECK(recovered_after(both) >= 1000);
}

/* The milliseconds until the client knows that its message has arrived. */
static unsigned acknowledged_after(struct configs both) {
    CHECK(rexmit_config_set_report_acknowledged(both.of[CLIENT], true) == REXMIT_OK);
    measured_pair(both);
    seen_count[CLIENT] = 0;
    CHECK(send_bytes(0, 100) == REXMIT_OK);
    const uint64_t begin_at = now;
    while (!next_event(CLIENT, REXMIT_EVENT_MESSAGE_ACKNOWLEDGED) && now < begin_at + 5000 * MILLISECOND)
        run(1);
    return (unsigned)((now - begin_at) / MILLISECOND);
}

static void sacks_have_settings(void) {
    /* The round trip is 40 ms. */
    unsigned after = acknowledged_after(rfc9260());
    CHECK(after >= 240 && after <= 245);
    struct configs both = rfc9260();
    CHECK(rexmit_config_set_sack_delay(both.of[SERVER], 50) == REXMIT_OK);
    after = acknowledged_after(both);
    CHECK(after >= 90 && after <= 95);
    both = rfc9260();
    CHECK(rexmit_config_set_sack_every(both.of[SERVER], 1) == REXMIT_OK);
    CHECK(rexmit_config_set_profile(both.of[SERVER], REXMIT_RFC9260) == REXMIT_OK); /* It leaves SACKs alone. */
    after = acknowledged_after(both);
    CHECK(after >= 40 && after <= 45);

    both = rfc9260();
    CHECK(rexmit_config_set_sack_delay(both.of[SERVER], 501) == REXMIT_OK);
    CHECK(rexmit_config_validate(both.of[SERVER]) == REXMIT_CONFIG);
    CHECK(rexmit_config_set_sack_delay(both.of[SERVER], 0) == REXMIT_OK);
    CHECK(rexmit_config_set_sack_every(both.of[SERVER], 0) == REXMIT_OK);
    CHECK(rexmit_config_validate(both.of[SERVER]) == REXMIT_CONFIG);
    CHECK(rexmit_config_set_sack_every(both.of[SERVER], 255) == REXMIT_OK);
    after = acknowledged_after(both);
    CHECK(after >= 40 && after <= 45);
}

static void messages_that_are_too_large_have_a_policy(void) {
    for (uint32_t policy = REXMIT_OVERSIZED_DROP; policy <= REXMIT_OVERSIZED_ABORT; policy++) {
        struct configs both = defaults();
        CHECK(rexmit_config_set_max_message_bytes(both.of[SERVER], 1000) == REXMIT_OK);
        CHECK(rexmit_config_set_oversized_messages(both.of[SERVER], policy) == REXMIT_OK);
        CHECK(rexmit_config_set_oversized_messages(both.of[SERVER], 3) == REXMIT_INVALID_ARGUMENT);
        CHECK(strstr(rexmit_config_error(both.of[SERVER]), "no choice 3"));
        pair(both);
        CHECK(send_bytes(3, 2000) == REXMIT_OK && send_bytes(3, 100) == REXMIT_OK);
        run(1000);
        const struct seen *reset = next_event(SERVER, REXMIT_EVENT_PEER_RESET_STREAMS);
        CHECK((reset && reset->stream == 3) == (policy == REXMIT_OVERSIZED_RESET_STREAM));
        const struct seen *closed = next_event(CLIENT, REXMIT_EVENT_CLOSED);
        CHECK((closed && closed->event.data.closed.reason == REXMIT_CLOSED_ABORTED_BY_PEER) ==
              (policy == REXMIT_OVERSIZED_ABORT));
        CHECK(received[SERVER] == (policy == REXMIT_OVERSIZED_ABORT ? 0 : 1));
    }
}

static void data_stays_on_the_path_that_works(void) {
    for (int stays = 0; stays < 2; stays++) {
        struct configs both = rfc9260();
        rexmit_config *client = both.of[CLIENT];
        for (int i = 0; i < 2; i++) {
            CHECK(rexmit_config_add_address(both.of[i], &home[i]) == REXMIT_OK);
            CHECK(rexmit_config_add_address(both.of[i], &second[i]) == REXMIT_OK);
        }
        /* Data takes another path after five errors only: a switchover before that would be none. */
        CHECK(rexmit_config_set_primary_switchover_max_retrans(client, 0) == REXMIT_OK);
        CHECK(rexmit_config_validate(client) == REXMIT_CONFIG);
        CHECK(rexmit_config_set_recovery(client, "sctp.potentially_failed_max_retrans = 0") == REXMIT_OK);
        CHECK(rexmit_config_validate(client) == REXMIT_OK);
        if (!stays)
            CHECK(rexmit_config_set_primary_switchover_max_retrans(client, REXMIT_UNLIMITED) == REXMIT_OK);
        pair(both);
        run(3000); /* until the second path is confirmed */
        CHECK(path(CLIENT, 0).is_primary);
        unreachable = &home[SERVER];
        CHECK(send_bytes(0, 100) == REXMIT_OK);
        run(3000);
        CHECK(received[SERVER] == 1 && path(CLIENT, 1).is_primary == stays);
        unreachable = NULL;
        run(60000);
        CHECK(send_bytes(0, 100) == REXMIT_OK);
        transmit(CLIENT);
        CHECK(is_same_host(&last_target[CLIENT], stays ? &second[SERVER] : &home[SERVER]));
    }
}
#endif

int main(void) {
    home[CLIENT] = parsed("192.0.2.1:9899"), home[SERVER] = parsed("192.0.2.2:9899");
    second[CLIENT] = parsed("198.51.100.1:9899"), second[SERVER] = parsed("198.51.100.2:9899");
    third = parsed("203.0.113.1:9899");
    streams_packets_and_associations_have_limits();
    buffers_have_limits();
    silence_has_limits();
    messages_are_reported();
    extensions_are_offered_or_not();
    streams_are_reset();
    thin_streams_have_mechanisms();
    data_takes_the_primary_path();
    addresses_come_and_go();
    keys_authenticate();
    associations_end();
#ifndef FROZEN
    recovery_has_settings();
    sacks_have_settings();
    messages_that_are_too_large_have_a_policy();
    data_stays_on_the_path_that_works();
#endif
    for (int i = 0; i < 2; i++)
        rexmit_endpoint_free(side[i]);
    return 0;
}
