/* usrsctp as one end of a bulk transfer over its own UDP encapsulation (RFC 6951) on loopback.
 *
 * usage: usrsctp-bulk ROLE OWN-PORT PEER-PORT MESSAGES SIZE PACKET-BYTES
 *
 * ROLE: receive accepts an association from send, which sends to it; accept accepts one from
 * connect, and both send. The accepting end says "ready" once it listens. Each end prints one
 * line of JSON at its end: the messages received, the seconds from the first to the last, and its
 * processor time. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

#define SCTP_PORT 5000
#define BUFFER_BYTES (1024 * 1024)
#define UDP_BUFFER_BYTES (4 * 1024 * 1024)
#define COMMON_HEADER_BYTES 12
#define LARGEST_MESSAGE (256 * 1024)

static int own_port, peer_port;
static long messages, size, packet_bytes;

static void require(bool is_done, const char *what)
{
	if (!is_done) {
		perror(what);
		_exit(1);
	}
}

static double seconds(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The sockets that the library has opened get the buffers that ours has. */
static void widen_udp_buffers(void)
{
	for (int fd = 3; fd < 64; fd++) {
		int type = 0, bytes = UDP_BUFFER_BYTES;
		socklen_t length = sizeof type;
		if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_DGRAM)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
	}
}

static struct sockaddr_in loopback(int port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static struct socket *open_socket(void)
{
	struct socket *sock =
	    usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
	struct sockaddr_in local = loopback(SCTP_PORT);
	struct sctp_udpencaps encapsulation = { .sue_assoc_id = SCTP_FUTURE_ASSOC,
		                                .sue_port = htons((uint16_t)peer_port) };
	struct sctp_paddrparams path = { .spp_assoc_id = SCTP_FUTURE_ASSOC };
	int bytes = BUFFER_BYTES, on = 1;

	require(sock != NULL, "usrsctp_socket");
	encapsulation.sue_address.ss_family = AF_INET;
	require(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation,
	                           sizeof encapsulation) == 0,
	        "SCTP_REMOTE_UDP_ENCAPS_PORT");
	path.spp_address.ss_family = AF_INET;
	path.spp_flags = SPP_PMTUD_DISABLE;
	path.spp_pathmtu = (uint32_t)(packet_bytes - COMMON_HEADER_BYTES); /* so it counts */
	require(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path,
	                           sizeof path) == 0,
	        "SCTP_PEER_ADDR_PARAMS");
	require(usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on) == 0,
	        "SCTP_NODELAY");
	require(usrsctp_setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) == 0,
	        "SO_SNDBUF");
	require(usrsctp_setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0,
	        "SO_RCVBUF");
	require(usrsctp_bind(sock, (struct sockaddr *)&local, sizeof local) == 0, "usrsctp_bind");
	return sock;
}

static struct socket *accept_one(void)
{
	struct socket *listener = open_socket();
	struct socket *sock;

	require(usrsctp_listen(listener, 1) == 0, "usrsctp_listen");
	puts("ready");
	fflush(stdout);
	sock = usrsctp_accept(listener, NULL, NULL);
	require(sock != NULL, "usrsctp_accept");
	return sock;
}

static struct socket *connect_to_peer(void)
{
	struct socket *sock = open_socket();
	struct sockaddr_in remote = loopback(SCTP_PORT);

	require(usrsctp_connect(sock, (struct sockaddr *)&remote, sizeof remote) == 0,
	        "usrsctp_connect");
	return sock;
}

static ssize_t receive_part(struct socket *sock, void *buffer, size_t room, int *flags)
{
	struct sctp_rcvinfo info;
	socklen_t no_address = 0, info_length = sizeof info;
	unsigned info_type = 0;

	*flags = 0;
	return usrsctp_recvv(sock, buffer, room, NULL, &no_address, &info, &info_length, &info_type,
	                     flags);
}

/* The seconds from the first message to the last. */
static double receive_all(struct socket *sock)
{
	static uint8_t buffer[LARGEST_MESSAGE];
	double first = 0, last = 0;
	size_t filled = 0;
	long arrived = 0;

	while (arrived < messages) {
		int flags;
		ssize_t length = receive_part(sock, buffer + filled, sizeof buffer - filled, &flags);
		require(length > 0, "usrsctp_recvv");
		filled += (size_t)length;
		if (!(flags & MSG_EOR))
			continue;
		require(filled == (size_t)size, "a message of another size");
		filled = 0;
		last = seconds(CLOCK_MONOTONIC);
		if (arrived++ == 0)
			first = last;
	}
	return last - first;
}

static void *send_all(void *sock)
{
	static uint8_t message[LARGEST_MESSAGE];

	for (long n = 0; n < messages; n++) {
		struct sctp_sndinfo info = { 0 };
		require(usrsctp_sendv(sock, message, (size_t)size, NULL, 0, &info, sizeof info,
		                      SCTP_SENDV_SNDINFO, 0) == size,
		        "usrsctp_sendv");
	}
	return NULL;
}

/* Returns when the peer has shut down, or has acknowledged everything and our shutdown. */
static void wait_for_end(struct socket *sock)
{
	uint8_t byte;
	int flags;

	while (receive_part(sock, &byte, 1, &flags) > 0)
		;
}

static void report(long received, double duration)
{
	printf("{\"messages\":%ld,\"seconds\":%.6f,\"cpu_seconds\":%.6f}\n", received, duration,
	       seconds(CLOCK_PROCESS_CPUTIME_ID));
	fflush(stdout);
}

int main(int count, char **arguments)
{
	bool accepts, sends, receives;
	struct socket *sock;
	pthread_t sender;
	double duration = 0;

	if (count != 7) {
		fprintf(stderr, "six arguments: see the source\n");
		return 2;
	}
	sends = strcmp(arguments[1], "receive") != 0;
	receives = strcmp(arguments[1], "send") != 0;
	accepts = !sends || strcmp(arguments[1], "accept") == 0;
	own_port = atoi(arguments[2]);
	peer_port = atoi(arguments[3]);
	messages = atol(arguments[4]);
	size = atol(arguments[5]);
	packet_bytes = atol(arguments[6]);
	require(size > 0 && size <= LARGEST_MESSAGE, "the size");

	usrsctp_init((uint16_t)own_port, NULL, NULL);
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0); /* CRC32c here as everywhere */
	widen_udp_buffers();
	sock = accepts ? accept_one() : connect_to_peer();
	if (sends)
		require(pthread_create(&sender, NULL, send_all, sock) == 0, "pthread_create");
	if (receives)
		duration = receive_all(sock);
	if (sends)
		require(pthread_join(sender, NULL) == 0, "pthread_join");
	if (accepts) {
		report(messages, duration);
		wait_for_end(sock);
	} else {
		/* SHUTDOWN is sent once the peer has acknowledged everything. */
		require(usrsctp_shutdown(sock, SHUT_WR) == 0, "usrsctp_shutdown");
		wait_for_end(sock);
		report(receives ? messages : 0, duration);
	}
	_exit(0); /* usrsctp's threads are not waited for. */
}
