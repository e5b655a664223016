/* Echo over encrypted SCTP, in an event loop of poll(2). The server prints its fingerprint.
 *
 *   echo server 127.0.0.1:9899
 *   echo client 127.0.0.1:9899 FINGERPRINT 'some text'
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rexmit.h"

static void die(const char *what, const char *why) {
    fprintf(stderr, "echo: %s: %s\n", what, why);
    exit(1);
}

static void check(rexmit_endpoint *endpoint, rexmit_status status, const char *what) {
    if (status != REXMIT_OK)
        die(what, rexmit_endpoint_error(endpoint));
}

/* A client trusts one server; a server, without a fingerprint to trust, anyone. */
static rexmit_endpoint *open_endpoint(const rexmit_fingerprint *trusted, const rexmit_address *bind_to) {
    rexmit_config *config = rexmit_config_new();
    rexmit_endpoint *endpoint = NULL;
    if (trusted) {
        rexmit_config_trust(config, trusted);
    } else {
        rexmit_fingerprint own;
        char text[REXMIT_FINGERPRINT_TEXT];
        rexmit_config_set_accept(config, true);
        rexmit_config_trust_anyone(config);
        /* A server that is to be known after its next start has rexmit_config_set_identity_pem. */
        if (rexmit_config_generate_identity(config) != REXMIT_OK)
            die("identity", rexmit_config_error(config));
        rexmit_config_fingerprint(config, &own);
        rexmit_fingerprint_format(&own, text, sizeof text);
        printf("fingerprint %s\n", text);
    }
    if (rexmit_endpoint_new(config, NULL, &endpoint) != REXMIT_OK)
        die("endpoint", rexmit_config_error(config));
    rexmit_config_free(config);
    check(endpoint, rexmit_endpoint_bind(endpoint, bind_to), "bind");
    return endpoint;
}

/* Waits until there is an event, and reads it. */
static void wait_event(rexmit_endpoint *endpoint, rexmit_event *event) {
    while (rexmit_endpoint_poll_event(endpoint, event) == REXMIT_NOTHING) {
        struct pollfd ready = {.fd = rexmit_endpoint_fd(endpoint), .events = POLLIN};
        if (poll(&ready, 1, -1) < 0)
            die("poll", "failed");
        check(endpoint, rexmit_endpoint_process(endpoint, rexmit_now()), "process");
    }
}

static void send_bytes(rexmit_endpoint *endpoint, uint64_t association, uint16_t stream,
                       const void *data, size_t length) {
    rexmit_delivery delivery = REXMIT_DELIVERY(stream);
    rexmit_buffer buffer = {data, length};
    check(endpoint,
          rexmit_send(endpoint, rexmit_now(), association, &delivery, &buffer, 1, NULL), "send");
}

static void serve(const rexmit_address *address) {
    rexmit_endpoint *endpoint = open_endpoint(NULL, address);
    rexmit_address bound;
    char text[REXMIT_ADDRESS_TEXT];
    check(endpoint, rexmit_endpoint_local_address(endpoint, &bound), "address");
    rexmit_address_format(&bound, text, sizeof text);
    printf("listening on %s\n", text);
    fflush(stdout);
    for (;;) {
        rexmit_event event;
        rexmit_message message;
        wait_event(endpoint, &event);
        if (event.kind != REXMIT_EVENT_READABLE)
            continue;
        while (rexmit_receive(endpoint, rexmit_now(), event.association, &message) == REXMIT_OK) {
            send_bytes(endpoint, event.association, message.stream, message.data, message.length);
            rexmit_message_free(&message);
        }
    }
}

static void ask(const rexmit_address *server, const rexmit_fingerprint *trusted, const char *words) {
    rexmit_address any;
    uint64_t association;
    rexmit_address_parse(server->family == 4 ? "0.0.0.0:0" : "[::]:0", &any);
    rexmit_endpoint *endpoint = open_endpoint(trusted, &any);
    check(endpoint, rexmit_connect(endpoint, rexmit_now(), server, 1, 5000, &association),
          "connect");
    /* Accepted at once: it leaves with the last packet of the setup. */
    send_bytes(endpoint, association, 0, words, strlen(words));
    for (;;) {
        rexmit_event event;
        rexmit_message message;
        wait_event(endpoint, &event);
        if (event.kind == REXMIT_EVENT_READABLE &&
            rexmit_receive(endpoint, rexmit_now(), association, &message) == REXMIT_OK) {
            printf("%.*s\n", (int)message.length, (const char *)message.data);
            rexmit_message_free(&message);
            check(endpoint, rexmit_shutdown(endpoint, rexmit_now(), association), "shutdown");
        } else if (event.kind == REXMIT_EVENT_CLOSED) {
            if (event.data.closed.reason != REXMIT_CLOSED_SHUTDOWN)
                die("closed", event.data.closed.text);
            rexmit_endpoint_free(endpoint);
            return;
        }
    }
}

int main(int count, char **words) {
    rexmit_address address;
    rexmit_fingerprint trusted;
    if (count >= 3 && rexmit_address_parse(words[2], &address) != REXMIT_OK)
        die(words[2], "expected an address as 127.0.0.1:9899");
    if (count == 5 && rexmit_fingerprint_parse(words[3], &trusted) != REXMIT_OK)
        die(words[3], "expected a fingerprint, as the server prints it");
    if (count == 3 && strcmp(words[1], "server") == 0)
        serve(&address);
    else if (count == 5 && strcmp(words[1], "client") == 0)
        ask(&address, &trusted, words[4]);
    else
        die("usage", "echo server ADDRESS | echo client ADDRESS FINGERPRINT TEXT");
    return 0;
}
