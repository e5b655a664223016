/* usrsctp as one end of a bulk transfer over its own UDP encapsulation (RFC 6951) on loopback.
 *
 * usage: usrsctp-bulk receive OWN-PORT PEER-PORT MESSAGES SIZE PACKET-BYTES
 *        usrsctp-bulk send    OWN-PORT PEER-PORT MESSAGES SIZE PACKET-BYTES
 *
 * The receiver says "ready" once it listens. Each end prints one line of JSON at its end; the
 * receiver's seconds are those from the first message to the last. */
#include <arpa/inet.h>
#include <fcntl.h>
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

static void receive(void)
{
	static uint8_t buffer[LARGEST_MESSAGE];
	struct socket *listener = open_socket();
	struct socket *sock;
	double first = 0, last = 0;
	size_t filled = 0;
	long arrived = 0;

	require(usrsctp_listen(listener, 1) == 0, "usrsctp_listen");
	puts("ready");
	fflush(stdout);
	sock = usrsctp_accept(listener, NULL, NULL);
	require(sock != NULL, "usrsctp_accept");
	while (arrived < messages) {
		struct sctp_rcvinfo info;
		socklen_t no_address = 0, info_length = sizeof info;
		unsigned info_type = 0;
		int flags = 0;
		ssize_t length = usrsctp_recvv(sock, buffer + filled, sizeof buffer - filled, NULL,
		                               &no_address, &info, &info_length, &info_type, &flags);
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
	printf("{\"messages\":%ld,\"seconds\":%.6f,\"cpu_seconds\":%.6f}\n", arrived, last - first,
	       seconds(CLOCK_PROCESS_CPUTIME_ID));
	fflush(stdout);
	/* Until the peer has shut down. */
	while (usrsctp_recvv(sock, buffer, sizeof buffer, NULL, &(socklen_t){ 0 },
	                     &(struct sctp_rcvinfo){ 0 },
	                     &(socklen_t){ sizeof(struct sctp_rcvinfo) }, &(unsigned){ 0 },
	                     &(int){ 0 }) > 0)
		;
}

static void send_all(void)
{
	static uint8_t message[LARGEST_MESSAGE];
	struct socket *sock = open_socket();
	struct sockaddr_in remote = loopback(SCTP_PORT);
	uint8_t byte;

	require(usrsctp_connect(sock, (struct sockaddr *)&remote, sizeof remote) == 0,
	        "usrsctp_connect");
	for (long n = 0; n < messages; n++) {
		struct sctp_sndinfo info = { 0 };
		require(usrsctp_sendv(sock, message, (size_t)size, NULL, 0, &info, sizeof info,
		                      SCTP_SENDV_SNDINFO, 0) == size,
		        "usrsctp_sendv");
	}
	require(usrsctp_shutdown(sock, SHUT_WR) == 0, "usrsctp_shutdown");
	/* Returns when everything is acknowledged and the association has ended. */
	while (usrsctp_recvv(sock, &byte, 1, NULL, &(socklen_t){ 0 }, &(struct sctp_rcvinfo){ 0 },
	                     &(socklen_t){ sizeof(struct sctp_rcvinfo) }, &(unsigned){ 0 },
	                     &(int){ 0 }) > 0)
		;
	printf("{\"messages\":%ld,\"seconds\":0,\"cpu_seconds\":%.6f}\n", messages,
	       seconds(CLOCK_PROCESS_CPUTIME_ID));
	fflush(stdout);
}

int main(int count, char **arguments)
{
	bool is_receiver;
	if (count != 7) {
		fprintf(stderr, "six arguments: see the source\n");
		return 2;
	}
	is_receiver = strcmp(arguments[1], "receive") == 0;
	own_port = atoi(arguments[2]);
	peer_port = atoi(arguments[3]);
	messages = atol(arguments[4]);
	size = atol(arguments[5]);
	packet_bytes = atol(arguments[6]);
	require(size > 0 && size <= LARGEST_MESSAGE, "the size");

	usrsctp_init((uint16_t)own_port, NULL, NULL);
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0); /* CRC32c here as everywhere */
	widen_udp_buffers();
	if (is_receiver)
		receive();
	else
		send_all();
	_exit(0); /* usrsctp's threads are not waited for. */
}
