/* The calls of usrsctp that ../usrsctp/peer.c makes, over the SCTP sockets of Linux: one program is a peer
 * with either stack. Socket options and structures have the same names in both (RFC 6458). */
#ifndef LINUX_USRSCTP_H
#define LINUX_USRSCTP_H

#include <stdint.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <linux/sctp.h>

#define IMPLEMENTATION "linux"
#define SCTP_SENDV_SPA 0
#define SCTP_SEND_SNDINFO_VALID 1
#define SCTP_SEND_PRINFO_VALID 2

/* Of the call below, both parts valid (RFC 6458 section 9.12). */
struct sctp_sendv_spa {
	uint32_t sendv_flags;
	struct sctp_sndinfo sendv_sndinfo;
	struct sctp_prinfo sendv_prinfo;
};

/* A file descriptor, as `struct socket *`. */
struct socket;

void usrsctp_init(uint16_t udp_port, void *, void *);
static inline void usrsctp_sysctl_set_sctp_no_csum_on_loopback(uint32_t value)
{
	(void)value;
}
struct socket *usrsctp_socket(int domain, int type, int protocol, void *, void *, uint32_t, void *);
int usrsctp_setsockopt(struct socket *, int level, int name, const void *value, socklen_t);
int usrsctp_bindx(struct socket *, struct sockaddr *, int count, int how);
int usrsctp_connect(struct socket *, struct sockaddr *, socklen_t);
int usrsctp_listen(struct socket *, int backlog);
struct socket *usrsctp_accept(struct socket *, struct sockaddr *, socklen_t *);
ssize_t usrsctp_sendv(struct socket *, const void *payload, size_t, struct sockaddr *, int count,
                      void *info, socklen_t, unsigned type, int flags);
ssize_t usrsctp_recvv(struct socket *, void *buffer, size_t, struct sockaddr *, socklen_t *, void *info,
                      socklen_t *, unsigned *type, int *flags);
int usrsctp_getpaddrs(struct socket *, uint32_t association, struct sockaddr **);
void usrsctp_freepaddrs(struct sockaddr *);
int usrsctp_shutdown(struct socket *, int how);

#endif
