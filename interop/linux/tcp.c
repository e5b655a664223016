/* The TCP of Linux as a peer, inside the kernel that peer.py boots: one connection, the workload of
 * interop/README.md, each message with its length and stream before it. One thread sends, one receives.
 *
 * A server that has sent everything ends its direction. A client receives until that end and then ends its own. */
#include "../usrsctp/workload.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STREAMS 8
#define HEADER_BYTES 6

static bool is_client;
static struct sockaddr_in local, remote;
static uint32_t messages = 500, sent;
static uint64_t seed = 1;
static uint16_t port = 5000;
static unsigned limit_s = 60;
static struct plan outgoing;
static struct verifier verifier;
static int connection = -1;
static double started;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Ends the process: threads are not waited for. */
static void report(const char *failure)
{
	const struct counts *c = &verifier.counts;
	bool is_clean = c->lost + c->duplicated + c->out_of_order + c->corrupted == 0;
	printf("{\"implementation\":\"linux\",\"role\":\"%s\",\"sent\":%u,\"received\":%u,\"lost\":%u,"
	       "\"duplicated\":%u,\"out_of_order\":%u,\"corrupted\":%u,\"graceful_shutdown\":%s,\"seconds\":%.3f",
	       is_client ? "client" : "server", sent, c->received, c->lost, c->duplicated, c->out_of_order,
	       c->corrupted, failure == NULL ? "true" : "false", now() - started);
	if (failure != NULL)
		printf(",\"error\":\"%s\"", failure);
	printf("}\n");
	fflush(stdout);
	_exit(is_clean && failure == NULL ? 0 : 1);
}

static void *watch_time(void *unused)
{
	(void)unused;
	sleep(limit_s);
	report("timeout");
	return NULL;
}

static void write_all(const uint8_t *bytes, size_t count)
{
	while (count > 0) {
		ssize_t written = send(connection, bytes, count, MSG_NOSIGNAL);
		if (written <= 0)
			report("send");
		bytes += written;
		count -= (size_t)written;
	}
}

static void *send_all(void *unused)
{
	static uint8_t message[HEADER_BYTES + LARGEST_MESSAGE];
	for (uint32_t number = 0; number < outgoing.count; number++) {
		uint32_t size = outgoing.messages[number].size, size_be = htonl(size);
		uint16_t stream_be = htons(outgoing.messages[number].stream);
		memcpy(message, &size_be, 4);
		memcpy(message + 4, &stream_be, 2);
		plan_write_payload(&outgoing, number, message + HEADER_BYTES);
		write_all(message, HEADER_BYTES + size);
		sent++;
	}
	if (!is_client && shutdown(connection, SHUT_WR) != 0)
		report("shutdown");
	return unused;
}

/* False at the end of the peer's direction, which may only come between messages. */
static bool read_all(uint8_t *bytes, size_t count, bool may_end)
{
	size_t have = 0;
	while (have < count) {
		ssize_t got = recv(connection, bytes + have, count - have, 0);
		if (got < 0)
			report("recv");
		if (got == 0 && may_end && have == 0)
			return false;
		if (got == 0)
			report("the end within a message");
		have += (size_t)got;
	}
	return true;
}

static void receive_all(void)
{
	static uint8_t payload[LARGEST_MESSAGE];
	uint8_t header[HEADER_BYTES];
	while (read_all(header, sizeof header, true)) {
		uint32_t size;
		uint16_t stream;
		memcpy(&size, header, 4);
		memcpy(&stream, header + 4, 2);
		size = ntohl(size);
		if (size > sizeof payload || ntohs(stream) >= STREAMS)
			report("a message that cannot be");
		read_all(payload, size, false);
		verifier_on_delivery(&verifier, ntohs(stream), payload, size);
	}
}

static struct sockaddr_in address_in(const char *text)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	char host[INET_ADDRSTRLEN] = "";
	const char *colon = strrchr(text, ':');
	size_t length = colon == NULL ? strlen(text) : (size_t)(colon - text);
	if (length < sizeof host)
		memcpy(host, text, length);
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
		fprintf(stderr, "an address is IPV4:PORT\n");
		exit(2);
	}
	return address;
}

/* Of the addresses the IP address counts: the port of both ends is --sctp-port. Others are not for TCP. */
static void parse(int count, char **arguments)
{
	for (int i = 1; i + 1 < count; i += 2) {
		const char *name = arguments[i], *value = arguments[i + 1];
		if (strcmp(name, "--role") == 0)
			is_client = strcmp(value, "client") == 0;
		else if (strcmp(name, "--sctp-port") == 0)
			port = (uint16_t)atoi(value);
		else if (strcmp(name, "--messages") == 0)
			messages = (uint32_t)strtoul(value, NULL, 10);
		else if (strcmp(name, "--seed") == 0)
			seed = strtoull(value, NULL, 10);
		else if (strcmp(name, "--timeout") == 0)
			limit_s = (unsigned)strtoul(value, NULL, 10);
		else if (strcmp(name, "--local") == 0)
			local = address_in(value);
		else if (strcmp(name, "--remote") == 0)
			remote = address_in(value);
	}
}

static void open_connection(void)
{
	int yes = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (is_client) {
		remote.sin_port = htons(port);
		connection = listener;
		if (connect(connection, (struct sockaddr *)&remote, sizeof remote) != 0)
			report("connect");
		return;
	}
	local.sin_port = htons(port);
	if (bind(listener, (struct sockaddr *)&local, sizeof local) != 0 || listen(listener, 1) != 0)
		report("listen");
	printf("listening\n");
	fflush(stdout);
	connection = accept(listener, NULL, NULL);
	if (connection < 0)
		report("accept");
}

int main(int count, char **arguments)
{
	struct plan incoming;
	pthread_t watching, sending;

	parse(count, arguments);
	plan_init(&outgoing, seed, is_client ? CLIENT_TO_SERVER : SERVER_TO_CLIENT, messages, STREAMS);
	plan_init(&incoming, seed, is_client ? SERVER_TO_CLIENT : CLIENT_TO_SERVER, messages, STREAMS);
	verifier_init(&verifier, incoming, STREAMS);
	started = now();
	pthread_create(&watching, NULL, watch_time, NULL);
	open_connection();
	pthread_create(&sending, NULL, send_all, NULL);
	receive_all();
	pthread_join(sending, NULL);
	if (is_client && shutdown(connection, SHUT_WR) != 0)
		report("shutdown");
	report(NULL);
}
