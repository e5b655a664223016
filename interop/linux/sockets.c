#include "usrsctp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_PEER_ADDRESSES 8

static struct socket *wrapped(int fd)
{
	return fd < 0 ? NULL : (struct socket *)(intptr_t)(fd + 1);
}

static int fd_of(struct socket *sock)
{
	return (int)(intptr_t)sock - 1;
}

/* UDP encapsulation is a setting of the network namespace; port 0 is off. */
void usrsctp_init(uint16_t udp_port, void *unused_a, void *unused_b)
{
	FILE *setting = fopen("/proc/sys/net/sctp/udp_port", "w");
	(void)unused_a, (void)unused_b;
	if (setting == NULL || fprintf(setting, "%u\n", udp_port) < 0 || fclose(setting) != 0) {
		perror("net.sctp.udp_port");
		exit(2);
	}
}

struct socket *usrsctp_socket(int domain, int type, int protocol, void *unused_a, void *unused_b,
                              uint32_t unused_c, void *unused_d)
{
	(void)unused_a, (void)unused_b, (void)unused_c, (void)unused_d;
	return wrapped(socket(domain, type, protocol));
}

int usrsctp_setsockopt(struct socket *sock, int level, int name, const void *value, socklen_t length)
{
	return setsockopt(fd_of(sock), level, name, value, length);
}

int usrsctp_bindx(struct socket *sock, struct sockaddr *addresses, int count, int how)
{
	(void)how;
	return setsockopt(fd_of(sock), IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, addresses,
	                  (socklen_t)count * sizeof(struct sockaddr_in));
}

int usrsctp_connect(struct socket *sock, struct sockaddr *remote, socklen_t length)
{
	return connect(fd_of(sock), remote, length);
}

/* Says so: an INIT that arrives earlier would be answered by ABORT. */
int usrsctp_listen(struct socket *sock, int backlog)
{
	int result = listen(fd_of(sock), backlog);
	if (result == 0)
		fprintf(stderr, "listening\n");
	return result;
}

struct socket *usrsctp_accept(struct socket *sock, struct sockaddr *remote, socklen_t *length)
{
	return wrapped(accept(fd_of(sock), remote, length));
}

static void write_part(struct cmsghdr *header, int type, const void *part, size_t length)
{
	header->cmsg_level = IPPROTO_SCTP;
	header->cmsg_type = type;
	header->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(header), part, length);
}

ssize_t usrsctp_sendv(struct socket *sock, const void *payload, size_t length, struct sockaddr *to,
                      int count, void *info, socklen_t info_length, unsigned type, int flags)
{
	const struct sctp_sendv_spa *parts = info;
	char control[CMSG_SPACE(sizeof parts->sendv_sndinfo) +
	             CMSG_SPACE(sizeof parts->sendv_prinfo)] = { 0 };
	struct iovec data = { .iov_base = (void *)payload, .iov_len = length };
	struct msghdr message = { .msg_iov = &data,
		                  .msg_iovlen = 1,
		                  .msg_control = control,
		                  .msg_controllen = sizeof control };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	(void)to, (void)count, (void)info_length, (void)type;
	write_part(header, SCTP_SNDINFO, &parts->sendv_sndinfo, sizeof parts->sendv_sndinfo);
	header = CMSG_NXTHDR(&message, header);
	write_part(header, SCTP_PRINFO, &parts->sendv_prinfo, sizeof parts->sendv_prinfo);
	return sendmsg(fd_of(sock), &message, flags | MSG_NOSIGNAL);
}

ssize_t usrsctp_recvv(struct socket *sock, void *buffer, size_t length, struct sockaddr *from,
                      socklen_t *from_length, void *info, socklen_t *info_length, unsigned *type,
                      int *flags)
{
	char control[256];
	struct iovec data = { .iov_base = buffer, .iov_len = length };
	struct msghdr message = { .msg_iov = &data,
		                  .msg_iovlen = 1,
		                  .msg_control = control,
		                  .msg_controllen = sizeof control };
	const struct timespec pause = { .tv_nsec = 1000000 };
	ssize_t received;
	(void)from, (void)from_length, (void)type;
	/* Since the peer's SHUTDOWN there is nothing to read, until the notification of the end. */
	while ((received = recvmsg(fd_of(sock), &message, 0)) == 0)
		nanosleep(&pause, NULL);
	if (received < 0)
		return received;
	*flags = message.msg_flags;
	for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL;
	     header = CMSG_NXTHDR(&message, header))
		if (header->cmsg_level == IPPROTO_SCTP && header->cmsg_type == SCTP_RCVINFO)
			memcpy(info, CMSG_DATA(header), *info_length);
	return received;
}

int usrsctp_getpaddrs(struct socket *sock, uint32_t association, struct sockaddr **addresses)
{
	socklen_t length =
	    sizeof(struct sctp_getaddrs) + MOST_PEER_ADDRESSES * sizeof(struct sockaddr_in6);
	struct sctp_getaddrs *answer = calloc(1, length);
	int count;
	if (answer == NULL)
		return -1;
	answer->assoc_id = (sctp_assoc_t)association;
	count = getsockopt(fd_of(sock), IPPROTO_SCTP, SCTP_GET_PEER_ADDRS, answer, &length) == 0
	            ? (int)answer->addr_num
	            : -1;
	*addresses = NULL; /* The peer counts them only. */
	free(answer);
	return count;
}

void usrsctp_freepaddrs(struct sockaddr *addresses)
{
	free(addresses);
}

int usrsctp_shutdown(struct socket *sock, int how)
{
	return shutdown(fd_of(sock), how);
}
