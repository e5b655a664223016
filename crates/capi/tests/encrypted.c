/* Encrypted endpoints without sockets: who trusts whom, what can be read on the way, priorities, dropped messages. */
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

static const char SECRET[] = "a secret that is easy to find";
static rexmit_address client_address, server_address;
static bool was_seen;

static bool contains(const uint8_t *bytes, size_t length, const char *text) {
    const size_t size = strlen(text);
    for (size_t at = 0; at + size <= length; at++)
        if (memcmp(bytes + at, text, size) == 0)
            return true;
    return false;
}

/* Moves what one endpoint has to send; whether there was anything. */
static bool move(rexmit_endpoint *from, rexmit_endpoint *to, const rexmit_address *source,
                 const rexmit_address *target) {
    rexmit_address local, remote;
    uint8_t datagram[1500];
    size_t length;
    bool moved = false;
    while (rexmit_endpoint_poll_transmit(from, 1, &local, &remote, datagram, sizeof datagram,
                                         &length) == REXMIT_OK) {
        CHECK(length <= 1232);
        was_seen |= contains(datagram, length, SECRET);
        CHECK(rexmit_endpoint_handle_input(to, 1, target, source, datagram, length) == REXMIT_OK);
        moved = true;
    }
    return moved;
}

static void exchange(rexmit_endpoint *client, rexmit_endpoint *server) {
    bool moved = true;
    while (moved) {
        moved = move(client, server, &client_address, &server_address);
        moved |= move(server, client, &server_address, &client_address);
    }
}

/* Reads events until one of this kind. */
static bool next(rexmit_endpoint *endpoint, rexmit_event_kind kind, rexmit_event *event) {
    while (rexmit_endpoint_poll_event(endpoint, event) == REXMIT_OK)
        if (event->kind == kind)
            return true;
    return false;
}

static uint64_t connect_to(rexmit_endpoint *client, rexmit_endpoint *server) {
    uint64_t association;
    CHECK(rexmit_connect(client, 1, &server_address, 1, 5000, &association) == REXMIT_OK);
    exchange(client, server);
    return association;
}

static void send_bytes(rexmit_endpoint *endpoint, uint64_t association, uint16_t stream,
                       const void *data, size_t length) {
    rexmit_delivery delivery = REXMIT_DELIVERY(stream);
    rexmit_buffer buffer = {data, length};
    CHECK(rexmit_send(endpoint, 1, association, &delivery, &buffer, 1, NULL) == REXMIT_OK);
}

int main(void) {
    rexmit_config *config = rexmit_config_new(), *other = rexmit_config_new();
    rexmit_endpoint *server, *client;
    rexmit_fingerprint own, same, peer;
    rexmit_buffer certificate, key;
    rexmit_event event;
    rexmit_message message;
    char text[REXMIT_FINGERPRINT_TEXT];
    static uint8_t large[100000];
    rexmit_address_parse("192.0.2.1:4000", &client_address);
    rexmit_address_parse("192.0.2.2:9899", &server_address);

    /* An identity is kept as DER, and an endpoint needs to know whom to trust. */
    CHECK(rexmit_config_fingerprint(config, &own) == REXMIT_NOT_FOUND);
    CHECK(rexmit_config_set_identity_pem(config, "no", "PEM") == REXMIT_CONFIG);
    CHECK(strstr(rexmit_config_error(config), "the certificate cannot be read"));
    CHECK(rexmit_config_generate_identity(config) == REXMIT_OK);
    CHECK(rexmit_config_fingerprint(config, &own) == REXMIT_OK);
    CHECK(rexmit_config_certificate(config, &certificate) == REXMIT_OK);
    CHECK(rexmit_config_private_key(config, &key) == REXMIT_OK);
    CHECK(rexmit_config_set_identity_der(other, &certificate, &key) == REXMIT_OK);
    CHECK(rexmit_config_fingerprint(other, &same) == REXMIT_OK);
    CHECK(memcmp(&own, &same, sizeof own) == 0);
    CHECK(rexmit_config_set_identity_der(other, &key, &key) == REXMIT_CONFIG);
    CHECK(rexmit_endpoint_new(config, NULL, &server) == REXMIT_CONFIG);
    CHECK(strstr(rexmit_config_error(config), "rexmit_config_trust"));
    CHECK(rexmit_fingerprint_format(&own, text, sizeof text - 1) == REXMIT_TOO_LARGE);
    CHECK(rexmit_fingerprint_format(&own, text, sizeof text) == REXMIT_OK);
    CHECK(rexmit_fingerprint_parse(text, &same) == REXMIT_OK);
    CHECK(memcmp(&own, &same, sizeof own) == 0);
    CHECK(rexmit_fingerprint_parse("12:34", &same) == REXMIT_INVALID_ARGUMENT);
    rexmit_config_free(other);

    CHECK(rexmit_config_set_accept(config, true) == REXMIT_OK);
    CHECK(rexmit_config_trust_anyone(config) == REXMIT_OK);
    CHECK(rexmit_config_set_max_message_bytes(config, 150000) == REXMIT_OK);
    CHECK(rexmit_endpoint_new(config, NULL, &server) == REXMIT_OK);
    rexmit_config_free(config);

    /* The client expects another server. */
    config = rexmit_config_new();
    memset(&peer, 7, sizeof peer);
    CHECK(rexmit_config_trust(config, &peer) == REXMIT_OK);
    CHECK(rexmit_endpoint_new(config, NULL, &client) == REXMIT_OK);
    connect_to(client, server);
    CHECK(next(client, REXMIT_EVENT_CLOSED, &event));
    CHECK(strstr(event.data.closed.text, "refused here: the peer's certificate"));
    CHECK(strstr(event.data.closed.text, text));
    rexmit_endpoint_free(client);

    /* It trusts this one, too. */
    CHECK(rexmit_config_trust(config, &own) == REXMIT_OK);
    CHECK(rexmit_config_set_scheduling(config, REXMIT_PRIORITY) == REXMIT_OK);
    CHECK(rexmit_config_set_scheduling(config, 77) == REXMIT_INVALID_ARGUMENT);
    CHECK(rexmit_config_set_profile(config, REXMIT_LINUX) == REXMIT_OK);
    CHECK(rexmit_config_set_profile(config, REXMIT_INTERACTIVE) == REXMIT_OK);
    CHECK(rexmit_config_set_interleaving(config, true) == REXMIT_OK);
    CHECK(rexmit_endpoint_new(config, NULL, &client) == REXMIT_OK);
    const uint64_t association = connect_to(client, server);
    CHECK(next(client, REXMIT_EVENT_CONNECTED, &event));
    CHECK(rexmit_peer_fingerprint(client, association, &peer) == REXMIT_OK);
    CHECK(memcmp(&own, &peer, sizeof own) == 0);
    CHECK(next(server, REXMIT_EVENT_CONNECTED, &event));
    CHECK(rexmit_peer_fingerprint(server, event.association, &peer) == REXMIT_OK);
    CHECK(memcmp(&own, &peer, sizeof own) != 0);

    /* The small message of the stream with the higher priority overtakes the large one. */
    CHECK(rexmit_set_priority(client, 1, association, 1, 1000) == REXMIT_OK);
    CHECK(rexmit_set_priority(client, 1, association, 16, 1) == REXMIT_NOT_FOUND);
    CHECK(rexmit_set_priority(client, 1, association + 1, 1, 1) == REXMIT_NO_ASSOCIATION);
    for (int n = 0; n < 3; n++)
        send_bytes(client, association, 0, large, sizeof large);
    send_bytes(client, association, 1, SECRET, strlen(SECRET));
    exchange(client, server);
    CHECK(next(server, REXMIT_EVENT_READABLE, &event));
    CHECK(rexmit_receive(server, 1, event.association, &message) == REXMIT_OK);
    CHECK(message.stream == 1 && contains(message.data, message.length, SECRET));
    rexmit_message_free(&message);
    CHECK(!was_seen);
    CHECK(rexmit_set_scheduling(client, 1, association, REXMIT_FAIR_BANDWIDTH) == REXMIT_OK);
    CHECK(rexmit_set_scheduling(client, 1, association, 77) == REXMIT_INVALID_ARGUMENT);

    /* A message beyond the server's limit. */
    for (int n = 0; n < 3; n++) {
        CHECK(rexmit_receive(server, 1, event.association, &message) == REXMIT_OK);
        rexmit_message_free(&message);
    }
    exchange(client, server);
    static uint8_t larger[150001];
    send_bytes(client, association, 2, larger, sizeof larger);
    exchange(client, server);
    CHECK(next(server, REXMIT_EVENT_MESSAGE_DROPPED, &event));
    CHECK(event.data.dropped.stream == 2 && !event.data.dropped.unordered);
    rexmit_endpoint_free(client);
    rexmit_endpoint_free(server);

    /* Without encryption there is no certificate, and the bytes can be read. */
    rexmit_config_free(config);
    config = rexmit_config_new();
    CHECK(rexmit_endpoint_new(config, NULL, &client) == REXMIT_OK);
    CHECK(rexmit_config_set_accept(config, true) == REXMIT_OK);
    CHECK(rexmit_endpoint_new(config, NULL, &server) == REXMIT_OK);
    const uint64_t plain = connect_to(client, server);
    CHECK(rexmit_peer_fingerprint(client, plain, &peer) == REXMIT_NOT_FOUND);
    send_bytes(client, plain, 0, SECRET, strlen(SECRET));
    exchange(client, server);
    CHECK(was_seen);
    rexmit_config_free(config);
    rexmit_endpoint_free(client);
    rexmit_endpoint_free(server);
    return 0;
}
