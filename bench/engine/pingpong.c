/* What the engine of `rexmit run` costs: the time of a request of 300 bytes and its answer over loopback, one at a time, and
 * of messages per second with many on the way. The same between two processes that have SCTP in themselves (the C API), and
 * between two programs with sockets. Prints one line of JSON.
 *
 *   pingpong sockets|inside PORT REQUESTS
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rexmit.h"

#define BYTES 300
#define BATCH 100

/* A side of an association: with a socket, or with an endpoint of this process. */
struct side {
    int fd;
    rexmit_endpoint *endpoint;
    uint64_t association;
};

static void die(const char *what) {
    fprintf(stderr, "pingpong: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void check(rexmit_endpoint *endpoint, rexmit_status status) {
    if (status != REXMIT_OK) {
        fprintf(stderr, "pingpong: %s\n", rexmit_endpoint_error(endpoint));
        exit(1);
    }
}

static uint64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

/* Waits until the endpoint has something to do, and for an event of this kind if `kind` is not 0. */
static void wait_for(struct side *side, uint32_t kind) {
    rexmit_event event;
    do {
        while (rexmit_endpoint_poll_event(side->endpoint, &event) == REXMIT_OK) {
            side->association = event.association;
            if ((uint32_t)event.kind == kind)
                return;
        }
        struct pollfd ready = {.fd = rexmit_endpoint_fd(side->endpoint), .events = POLLIN};
        if (poll(&ready, 1, -1) < 0)
            die("poll");
        check(side->endpoint, rexmit_endpoint_process(side->endpoint, rexmit_now()));
    } while (kind != 0);
}

static void put(struct side *side) {
    static char bytes[BYTES];
    if (!side->endpoint) {
        if (send(side->fd, bytes, BYTES, 0) != BYTES)
            die("send");
        return;
    }
    rexmit_delivery delivery = REXMIT_DELIVERY(0);
    rexmit_buffer buffer = {(const uint8_t *)bytes, BYTES};
    check(side->endpoint,
          rexmit_send(side->endpoint, rexmit_now(), side->association, &delivery, &buffer, 1, NULL));
}

/* Receives a message; returns 0 at the end of the association. */
static int take(struct side *side) {
    if (!side->endpoint) {
        char bytes[BYTES];
        return recv(side->fd, bytes, BYTES, 0) == BYTES;
    }
    rexmit_message message;
    while (rexmit_receive(side->endpoint, rexmit_now(), side->association, &message) != REXMIT_OK)
        wait_for(side, 0);
    rexmit_message_free(&message);
    return 1;
}

static int by_time(const void *one, const void *other) {
    const uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static void request(struct side *side, size_t count, const char *name) {
    uint64_t *times = calloc(count, sizeof *times);
    if (!times)
        die("memory");
    for (size_t i = 0; i < count + 100; i++) {
        uint64_t begun = now();
        put(side);
        take(side);
        times[i < 100 ? 0 : i - 100] = now() - begun; /* The first hundred warm up. */
    }
    qsort(times, count, sizeof *times, by_time);
    uint64_t begun = now();
    for (size_t i = 0; i < count; i += BATCH) {
        for (int j = 0; j < BATCH; j++)
            put(side);
        for (int j = 0; j < BATCH; j++)
            take(side);
    }
    printf("{\"sctp\": \"%s\", \"p50_us\": %.1f, \"p99_us\": %.1f, \"requests_per_second\": %.0f}\n", name,
           (double)times[count / 2] / 1e3, (double)times[count / 100 * 99] / 1e3,
           (double)count * 1e9 / (double)(now() - begun));
    free(times);
}

static rexmit_endpoint *endpoint(bool accepts, const char *at) {
    rexmit_config *config = rexmit_config_new();
    rexmit_endpoint *made = NULL;
    rexmit_address address;
    rexmit_config_set_accept(config, accepts);
    if (rexmit_endpoint_new(config, NULL, &made) != REXMIT_OK || rexmit_address_parse(at, &address) != REXMIT_OK)
        die("endpoint");
    rexmit_config_free(config);
    check(made, rexmit_endpoint_bind(made, &address));
    return made;
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    int is_inside = strcmp(words[1], "inside") == 0, ready[2], port = atoi(words[2]);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    char text[40];
    snprintf(text, sizeof text, "127.0.0.1:%d", port);
    if (pipe(ready) != 0)
        die("pipe");
    pid_t child = fork();
    if (child == 0) {
        struct side server = {0};
        if (is_inside) {
            server.endpoint = endpoint(true, text);
            if (write(ready[1], "r", 1) != 1)
                die("write");
            wait_for(&server, REXMIT_EVENT_CONNECTED);
        } else {
            int listening = socket(AF_INET, SOCK_STREAM, 132);
            if (bind(listening, (struct sockaddr *)&address, sizeof address) != 0 || listen(listening, 1) != 0)
                die("listen");
            if (write(ready[1], "r", 1) != 1)
                die("write");
            server.fd = accept(listening, NULL, NULL);
        }
        while (take(&server))
            put(&server);
        exit(0);
    }
    struct side client = {0};
    if (read(ready[0], text + 30, 1) != 1)
        die("read");
    if (is_inside) {
        rexmit_address remote;
        client.endpoint = endpoint(false, "127.0.0.1:0");
        rexmit_address_parse(text, &remote);
        check(client.endpoint,
              rexmit_connect(client.endpoint, rexmit_now(), &remote, 1, 5000, &client.association));
        wait_for(&client, REXMIT_EVENT_CONNECTED);
    } else {
        client.fd = socket(AF_INET, SOCK_STREAM, 132);
        if (connect(client.fd, (struct sockaddr *)&address, sizeof address) != 0)
            die("connect");
    }
    request(&client, (size_t)atol(words[3]), is_inside ? "inside" : "engine");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
