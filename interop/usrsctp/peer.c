/* usrsctp as a peer: its own sockets for UDP encapsulation (RFC 6951) or raw IP, one association, the
 * workload of interop/README.md. One thread sends, one receives, one watches the time. With
 * ../linux/usrsctp.h instead of usrsctp's own, the same over the sockets of Linux. */
#include "workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

#ifndef IMPLEMENTATION
#define IMPLEMENTATION "usrsctp"
#endif

/* Debian's header leaves it out. */
#ifndef SCTP_INTERLEAVING_SUPPORTED
#define SCTP_INTERLEAVING_SUPPORTED 0x00001206
#endif

/* Takes one message of the largest size and little more, so that sends wait for the network. */
#define SEND_BUFFER (128 * 1024)
#define RECEIVE_BUFFER (1024 * 1024)
#define SECOND 1000000000ll
#define MILLISECOND 1000000ll
#define MOST_ADDRESSES 8

struct options {
	bool is_client;
	struct sockaddr_in locals[MOST_ADDRESSES], remote;
	int local_count;
	bool has_role, has_remote, over_ip;
	uint32_t messages;
	uint64_t seed;
	bool sends, receives;
	uint16_t sctp_port, streams;
	unsigned timeout, linger, every_ms, rto_min_ms, path_max_retrans;
	bool is_partly_reliable; /* and no chunk is retransmitted more often than that (RFC 7496): */
	uint32_t max_retransmissions;
	uint32_t reset_after; /* messages, before all outgoing streams are reset (RFC 6525); 0: never */
	struct sockaddr_in added; /* once the association is set up (RFC 5061), if has_added */
	bool has_added;
	bool is_interleaved; /* messages of different streams (RFC 8260) */
};

static struct options options = {
	.messages = 500, .seed = 1, .sends = true, .receives = true,
	.sctp_port = 5000, .streams = 8, .timeout = 60, .linger = 5,
};
static struct plan outgoing;
static struct verifier verifier;
static struct socket *association;
static int64_t started;

/* Guards what follows: it is shared by the threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t sent;
static bool all_sent, is_graceful, is_over, is_reset;
static unsigned incoming_resets;
static int peer_addresses;
static int64_t last_delivery, longest_gap;
static const char *failure;

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static int report(void)
{
	const struct counts *c = &verifier.counts;
	bool is_clean = c->lost + c->duplicated + c->out_of_order + c->corrupted == 0;
	printf("{\"implementation\":\"" IMPLEMENTATION "\",\"role\":\"%s\",\"sent\":%u,\"received\":%u,"
	       "\"lost\":%u,\"duplicated\":%u,\"out_of_order\":%u,\"corrupted\":%u,"
	       "\"paths\":%d,\"longest_gap_ms\":%lld,\"incoming_resets\":%u,"
	       "\"graceful_shutdown\":%s,\"seconds\":%.3f",
	       options.is_client ? "client" : "server", sent, c->received, c->lost, c->duplicated,
	       c->out_of_order, c->corrupted, peer_addresses,
	       (long long)(longest_gap / MILLISECOND), incoming_resets,
	       is_graceful ? "true" : "false",
	       (double)(now() - started) / SECOND);
	if (failure != NULL)
		printf(",\"error\":\"%s\"", failure);
	printf("}\n");
	fflush(stdout);
	return is_clean && is_graceful && failure == NULL ? 0 : 1;
}

/* Ends the process: usrsctp's threads are not waited for. */
static void fail(const char *why)
{
	pthread_mutex_lock(&lock);
	failure = why;
	_exit(report());
}

static void *watch_time(void *unused)
{
	(void)unused;
	sleep(options.timeout);
	pthread_mutex_lock(&lock);
	if (!is_over) {
		failure = "timeout";
		_exit(report());
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void wait_a_millisecond(void)
{
	const struct timespec pause = { .tv_nsec = MILLISECOND };
	nanosleep(&pause, NULL);
}

/* All outgoing ones; a stack may refuse while it has something to send. */
static void reset_streams(void)
{
	struct sctp_reset_streams request = { .srs_flags = SCTP_STREAM_RESET_OUTGOING };
	while (usrsctp_setsockopt(association, IPPROTO_SCTP, SCTP_RESET_STREAMS, &request,
	                          sizeof request) != 0) {
		if (errno != EAGAIN)
			fail("SCTP_RESET_STREAMS");
		wait_a_millisecond();
	}
	pthread_mutex_lock(&lock);
	while (!is_reset)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void *send_all(void *unused)
{
	static uint8_t payload[LARGEST_MESSAGE];
	const struct timespec every = { .tv_sec = options.every_ms / 1000,
		                        .tv_nsec = options.every_ms % 1000 * MILLISECOND };
	(void)unused;
	for (uint32_t number = 0; number < outgoing.count; number++) {
		const struct message *message = &outgoing.messages[number];
		struct sctp_sendv_spa info = {
			.sendv_flags = SCTP_SEND_SNDINFO_VALID | SCTP_SEND_PRINFO_VALID,
			.sendv_sndinfo.snd_sid = message->stream,
			.sendv_sndinfo.snd_flags =
			    message->sequence == UNORDERED ? SCTP_UNORDERED : 0,
			.sendv_sndinfo.snd_ppid = htonl(PPID),
			.sendv_prinfo.pr_policy =
			    options.is_partly_reliable ? SCTP_PR_SCTP_RTX : SCTP_PR_SCTP_NONE,
			.sendv_prinfo.pr_value = options.max_retransmissions,
		};
		if (options.reset_after != 0 && number == options.reset_after)
			reset_streams();
		plan_write_payload(&outgoing, number, payload);
		nanosleep(&every, NULL);
		if (usrsctp_sendv(association, payload, message->size, NULL, 0, &info,
		                  sizeof info, SCTP_SENDV_SPA, 0) != (ssize_t)message->size)
			fail("usrsctp_sendv refused a message");
		pthread_mutex_lock(&lock);
		sent++;
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	all_sent = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* The client's last duty. The stack itself waits until all that was sent is acknowledged. */
static void *shut_down_when_done(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	while (!all_sent || verifier.counts.lost > 0)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	if (usrsctp_shutdown(association, SHUT_WR) < 0)
		fail("usrsctp_shutdown");
	return NULL;
}

static void on_reset(unsigned flags)
{
	pthread_mutex_lock(&lock);
	if (flags & (SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED)) {
		failure = "the peer refused to reset streams";
		is_over = true;
	} else if (flags & SCTP_STREAM_RESET_OUTGOING_SSN) {
		is_reset = true;
	} else {
		incoming_resets++;
	}
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void on_notification(const union sctp_notification *notification)
{
	if (notification->sn_header.sn_type == SCTP_STREAM_RESET_EVENT)
		on_reset(notification->sn_strreset_event.strreset_flags);
	if (notification->sn_header.sn_type != SCTP_ASSOC_CHANGE)
		return;
	pthread_mutex_lock(&lock);
	switch (notification->sn_assoc_change.sac_state) {
	case SCTP_SHUTDOWN_COMP:
		is_graceful = is_over = true;
		break;
	case SCTP_COMM_LOST:
		failure = "communication lost";
		is_over = true;
		break;
	case SCTP_CANT_STR_ASSOC:
		failure = "no association";
		is_over = true;
		break;
	default:
		break;
	}
	pthread_mutex_unlock(&lock);
}

/* How many addresses the peer has told. */
static void count_peer_addresses(void)
{
	struct sockaddr *addresses = NULL;
	int count = usrsctp_getpaddrs(association, 0, &addresses);
	if (count > 0)
		usrsctp_freepaddrs(addresses);
	if (count > peer_addresses)
		peer_addresses = count;
}

/* Under the lock. */
static void note_delivery(void)
{
	count_peer_addresses();
	int64_t at = now();
	if (last_delivery != 0 && at - last_delivery > longest_gap)
		longest_gap = at - last_delivery;
	last_delivery = at;
}

static void require(bool is_done, const char *what);

static void receive_until_end(void)
{
	/* Parts of interleaved messages come by turns, of one message of each stream. */
	struct incoming {
		size_t filled;
		uint8_t bytes[2 * LARGEST_MESSAGE];
	} *streams = calloc(options.streams, sizeof *streams);
	static uint8_t part[2 * LARGEST_MESSAGE];
	require(streams != NULL, "memory");
	bool at_end = false;
	while (!at_end) {
		struct sctp_rcvinfo info = { 0 };
		socklen_t info_length = sizeof info, no_address = 0;
		unsigned info_type = 0;
		int flags = 0;
		ssize_t length = usrsctp_recvv(association, part, sizeof part, NULL, &no_address,
		                               &info, &info_length, &info_type, &flags);
		if (length <= 0)
			break;
		struct incoming *stream = &streams[info.rcv_sid % options.streams];
		if (flags & MSG_NOTIFICATION) {
			on_notification((const union sctp_notification *)part);
			pthread_mutex_lock(&lock);
			at_end = is_over;
			pthread_mutex_unlock(&lock);
			continue;
		}
		if (stream->filled + (size_t)length > sizeof stream->bytes)
			fail("a message is longer than any that was sent");
		memcpy(stream->bytes + stream->filled, part, (size_t)length);
		stream->filled += (size_t)length;
		if (!(flags & MSG_EOR))
			continue;
		pthread_mutex_lock(&lock);
		verifier_on_delivery(&verifier, info.rcv_sid, stream->bytes, stream->filled);
		note_delivery();
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		stream->filled = 0;
		pthread_mutex_lock(&lock);
		at_end = is_over;
		pthread_mutex_unlock(&lock);
	}
	free(streams);
}

static void require(bool is_done, const char *what)
{
	if (!is_done) {
		perror(what);
		exit(2);
	}
}

/* Those of its defaults that were asked to be others. */
static void set_timers(struct socket *sock)
{
	struct sctp_rtoinfo rto = { .srto_assoc_id = SCTP_FUTURE_ASSOC,
		                    .srto_initial = options.rto_min_ms,
		                    .srto_min = options.rto_min_ms,
		                    .srto_max = 4 * options.rto_min_ms };
	struct sctp_paddrparams path = { .spp_assoc_id = SCTP_FUTURE_ASSOC,
		                         .spp_pathmaxrxt = (uint16_t)options.path_max_retrans };
	path.spp_address.ss_family = AF_INET;
	if (options.rto_min_ms != 0)
		require(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto) == 0,
		        "SCTP_RTOINFO");
	if (options.path_max_retrans != 0)
		require(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path,
		                           sizeof path) == 0,
		        "SCTP_PEER_ADDR_PARAMS");
}

static void enable_stream_reset(struct socket *sock)
{
	struct sctp_assoc_value resets = { .assoc_id = SCTP_FUTURE_ASSOC,
		                           .assoc_value = SCTP_ENABLE_RESET_STREAM_REQ };
	struct sctp_event event = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_on = 1,
		                    .se_type = SCTP_STREAM_RESET_EVENT };
	require(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_ENABLE_STREAM_RESET, &resets,
	                           sizeof resets) == 0,
	        "SCTP_ENABLE_STREAM_RESET");
	require(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0,
	        "SCTP_EVENT");
}

/* Parts of messages are delivered as they come (RFC 6458 8.1.20), or it is not offered (RFC 8260 4.3.1). */
static void enable_interleaving(struct socket *sock)
{
	struct sctp_assoc_value interleaving = { .assoc_id = SCTP_FUTURE_ASSOC, .assoc_value = 1 };
	int level = 2;
	if (!options.is_interleaved)
		return;
	require(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, &level,
	                           sizeof level) == 0,
	        "SCTP_FRAGMENT_INTERLEAVE");
	require(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &interleaving,
	                           sizeof interleaving) == 0,
	        "SCTP_INTERLEAVING_SUPPORTED");
}

static struct socket *open_socket(void)
{
	struct socket *sock =
	    usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	struct sctp_initmsg init = { .sinit_num_ostreams = options.streams,
		                     .sinit_max_instreams = options.streams };
	struct sctp_event event = { .se_assoc_id = SCTP_FUTURE_ASSOC, .se_on = 1,
		                    .se_type = SCTP_ASSOC_CHANGE };
	struct sockaddr_in locals[MOST_ADDRESSES];
	int send_buffer = SEND_BUFFER, receive_buffer = RECEIVE_BUFFER, on = 1;

	require(sock != NULL, "usrsctp_socket");
	require(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init) == 0,
	        "SCTP_INITMSG");
	require(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_EVENT, &event, sizeof event) == 0,
	        "SCTP_EVENT");
	require(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) == 0,
	        "SCTP_RECVRCVINFO");
	require(usrsctp_setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(int)) == 0,
	        "SO_SNDBUF");
	require(usrsctp_setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(int)) == 0,
	        "SO_RCVBUF");
	set_timers(sock);
	enable_stream_reset(sock);
	enable_interleaving(sock);
	/* No other addresses, so that nothing goes around the paths under test. */
	for (int i = 0; i < options.local_count; i++) {
		locals[i] = options.locals[i];
		locals[i].sin_port = htons(options.sctp_port);
	}
	require(usrsctp_bindx(sock, (struct sockaddr *)locals, options.local_count,
	                      SCTP_BINDX_ADD_ADDR) == 0,
	        "usrsctp_bindx");
	return sock;
}

static struct socket *connect_to_server(void)
{
	struct socket *sock = open_socket();
	struct sctp_udpencaps encapsulation = { .sue_assoc_id = SCTP_FUTURE_ASSOC,
		                                .sue_port = options.remote.sin_port };
	struct sockaddr_in remote = { .sin_family = AF_INET, .sin_port = htons(options.sctp_port),
		                      .sin_addr = options.remote.sin_addr };
	encapsulation.sue_address.ss_family = AF_INET;
	require(options.over_ip || usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT,
	                                              &encapsulation, sizeof encapsulation) == 0,
	        "SCTP_REMOTE_UDP_ENCAPS_PORT");
	if (usrsctp_connect(sock, (struct sockaddr *)&remote, sizeof remote) != 0)
		fail("usrsctp_connect");
	return sock;
}

static struct socket *accept_client(void)
{
	struct socket *listener = open_socket();
	struct socket *accepted;
	require(usrsctp_listen(listener, 1) == 0, "usrsctp_listen");
	accepted = usrsctp_accept(listener, NULL, NULL);
	require(accepted != NULL, "usrsctp_accept");
	return accepted;
}

static void add_address(void)
{
	struct sockaddr_in address = options.added;
	address.sin_port = htons(options.sctp_port);
	require(usrsctp_bindx(association, (struct sockaddr *)&address, 1, SCTP_BINDX_ADD_ADDR) == 0,
	        "usrsctp_bindx");
}

/* The stack answers what arrives late for as long as the process lives (RFC 9260 section 8.4). */
static void *sleep_out(void *code)
{
	sleep(options.linger);
	_exit(*(int *)code);
}

static void linger(int code)
{
	pthread_t thread;
	char byte[64];
	pthread_create(&thread, NULL, sleep_out, &code);
	while (read(STDIN_FILENO, byte, sizeof byte) > 0)
		;
	_exit(code);
}

static void usage(const char *wrong)
{
	fprintf(stderr,
	        "%s\nusage: peer-usrsctp --role client|server --local ADDRESS:PORT "
	        "[--local ADDRESS:PORT ...]\n  [--remote ADDRESS:PORT] [--messages N] [--seed S] "
	        "[--mode both|send|recv] [--streams K]\n  [--sctp-port P] [--timeout SEC] "
	        "[--linger SEC] [--every MS] [--over udp|ip]\n  [--rto-min MS] "
	        "[--path-max-retrans N] [--max-retransmissions N] [--reset-after N]\n"
	        "  [--add-address ADDRESS:PORT] [--interleaving 0|1]\n"
	        "--local's port is bound on all addresses: usrsctp has it so.\n",
	        wrong);
	exit(2);
}

static uint64_t number_in(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);
	if (*text == '\0' || *text == '-' || *end != '\0' || value < least || value > most)
		usage("a number is out of range");
	return value;
}

static struct sockaddr_in address_in(const char *text)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	const char *colon = strrchr(text, ':');
	char host[INET_ADDRSTRLEN] = "";
	if (colon == NULL || (size_t)(colon - text) >= sizeof host)
		usage("an address is IPV4:PORT");
	memcpy(host, text, (size_t)(colon - text));
	address.sin_port = htons((uint16_t)number_in(colon + 1, 1, UINT16_MAX));
	if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
		usage("an address is IPV4:PORT");
	return address;
}

static void set_option(const char *name, const char *value)
{
	if (strcmp(name, "--role") == 0) {
		options.is_client = strcmp(value, "client") == 0;
		options.has_role = options.is_client || strcmp(value, "server") == 0;
	} else if (strcmp(name, "--local") == 0) {
		if (options.local_count == MOST_ADDRESSES)
			usage("too many addresses");
		options.locals[options.local_count++] = address_in(value);
	} else if (strcmp(name, "--remote") == 0) {
		options.remote = address_in(value);
		options.has_remote = true;
	} else if (strcmp(name, "--messages") == 0) {
		options.messages = (uint32_t)number_in(value, 0, INT32_MAX);
	} else if (strcmp(name, "--seed") == 0) {
		options.seed = number_in(value, 0, UINT64_MAX);
	} else if (strcmp(name, "--mode") == 0) {
		options.sends = strcmp(value, "recv") != 0;
		options.receives = strcmp(value, "send") != 0;
		if (options.sends && options.receives && strcmp(value, "both") != 0)
			usage("--mode is both, send or recv");
	} else if (strcmp(name, "--sctp-port") == 0) {
		options.sctp_port = (uint16_t)number_in(value, 1, UINT16_MAX);
	} else if (strcmp(name, "--streams") == 0) {
		options.streams = (uint16_t)number_in(value, 1, UINT16_MAX);
	} else if (strcmp(name, "--timeout") == 0) {
		options.timeout = (unsigned)number_in(value, 1, 1000000);
	} else if (strcmp(name, "--linger") == 0) {
		options.linger = (unsigned)number_in(value, 0, 1000000);
	} else if (strcmp(name, "--every") == 0) {
		options.every_ms = (unsigned)number_in(value, 0, 1000000);
	} else if (strcmp(name, "--rto-min") == 0) {
		options.rto_min_ms = (unsigned)number_in(value, 1, 15000);
	} else if (strcmp(name, "--path-max-retrans") == 0) {
		options.path_max_retrans = (unsigned)number_in(value, 1, 10);
	} else if (strcmp(name, "--max-retransmissions") == 0) {
		options.is_partly_reliable = true;
		options.max_retransmissions = (uint32_t)number_in(value, 0, UINT16_MAX);
	} else if (strcmp(name, "--interleaving") == 0) {
		options.is_interleaved = number_in(value, 0, 1) != 0;
	} else if (strcmp(name, "--reset-after") == 0) {
		options.reset_after = (uint32_t)number_in(value, 1, INT32_MAX);
	} else if (strcmp(name, "--add-address") == 0) {
		options.added = address_in(value);
		options.has_added = true;
	} else if (strcmp(name, "--over") == 0) {
		options.over_ip = strcmp(value, "ip") == 0;
		if (!options.over_ip && strcmp(value, "udp") != 0)
			usage("--over is udp or ip");
	} else {
		usage("an option is not known");
	}
}

static void parse(int count, char **arguments)
{
	if (count % 2 != 1)
		usage("every option has a value");
	for (int i = 1; i < count; i += 2)
		set_option(arguments[i], arguments[i + 1]);
	if (!options.has_role || options.local_count == 0)
		usage("--role and --local are needed");
	if (options.is_client && !options.has_remote)
		usage("a client needs --remote");
}

static void prepare(void)
{
	enum direction own = options.is_client ? CLIENT_TO_SERVER : SERVER_TO_CLIENT;
	struct plan incoming;
	plan_init(&outgoing, options.seed, own, options.sends ? options.messages : 0,
	          options.streams);
	plan_init(&incoming, options.seed, !own, options.receives ? options.messages : 0,
	          options.streams);
	verifier_init(&verifier, incoming, options.streams);

	usrsctp_init(options.over_ip ? 0 : ntohs(options.locals[0].sin_port), NULL, NULL);
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0); /* CRC32c here as everywhere */
}

int main(int count, char **arguments)
{
	pthread_t thread;
	int code;

	parse(count, arguments);
	prepare();
	started = now();
	pthread_create(&thread, NULL, watch_time, NULL);
	association = options.is_client ? connect_to_server() : accept_client();
	count_peer_addresses();
	if (options.has_added)
		add_address();
	pthread_create(&thread, NULL, send_all, NULL);
	if (options.is_client)
		pthread_create(&thread, NULL, shut_down_when_done, NULL);
	receive_until_end();

	pthread_mutex_lock(&lock); /* kept: the process ends here */
	is_over = true;
	code = report();
	if (options.is_client && is_graceful)
		linger(code);
	_exit(code);
}
