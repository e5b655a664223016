/* What signalling.py does, over usrsctp: requests and responses of 300 bytes, on 200 streams of each association.
 *     usrsctp serve ADDRESS PORT
 *     usrsctp request ADDRESS PORT ASSOCIATIONS SECONDS
 * cc -O2 -o usrsctp usrsctp.c -lusrsctp -lpthread */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

enum { STREAMS = 200, BYTES = 300, PER_SECOND = 10, UDP_PORT = 9899, GRACE_S = 10 };

/* As in signalling.py: the request was sent and received, the response was sent. */
struct times { double sent, received, answered; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static double *there, *back, *both;
static size_t answers, most;
static int is_server;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void send_on(struct socket *to, unsigned stream, struct times times)
{
    char message[BYTES];
    struct sctp_sndinfo info = { .snd_sid = stream };
    memset(message, 'x', sizeof message);
    memcpy(message, &times, sizeof times);
    if (usrsctp_sendv(to, message, sizeof message, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) < 0)
        perror("usrsctp_sendv");
}

static int received(struct socket *from, union sctp_sockstore address, void *data, size_t length,
                    struct sctp_rcvinfo info, int flags, void *unused)
{
    struct times times;
    (void)address, (void)unused;
    if (data == NULL)
        return 1;
    if (!(flags & MSG_NOTIFICATION) && length >= sizeof times) {
        memcpy(&times, data, sizeof times);
        double time = now();
        if (is_server) {
            times.received = times.answered = time;
            send_on(from, info.rcv_sid, times);
        } else {
            pthread_mutex_lock(&lock);
            if (answers < most) {
                there[answers] = times.received - times.sent;
                back[answers] = time - times.answered;
                both[answers++] = time - times.sent;
            }
            pthread_mutex_unlock(&lock);
        }
    }
    free(data);
    return 1;
}

static struct socket *open_socket(void)
{
    struct sctp_initmsg init = { .sinit_num_ostreams = STREAMS, .sinit_max_instreams = STREAMS };
    struct sctp_udpencaps encapsulation = { .sue_port = htons(UDP_PORT) };
    int on = 1;
    struct socket *made = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, received, NULL, 0, NULL);
    encapsulation.sue_address.ss_family = AF_INET;
    if (made == NULL || usrsctp_setsockopt(made, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init) ||
        usrsctp_setsockopt(made, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, sizeof encapsulation) ||
        usrsctp_setsockopt(made, IPPROTO_SCTP, SCTP_RECVRCVINFO, &on, sizeof on) ||
        usrsctp_setsockopt(made, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on)) {
        perror("a socket of usrsctp");
        exit(1);
    }
    return made;
}

static int compare(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static void print(const char *name, double *values, const char *end)
{
    static const double parts[] = { 0.5, 0.99, 0.999, 1 };
    static const char *const names[] = { "p50", "p99", "p99.9", "max" };
    qsort(values, answers, sizeof *values, compare);
    printf("\"%s\": {", name);
    for (int i = 0; i < 4; i++) {
        size_t at = answers * parts[i];
        printf("\"%s\": %.1f%s", names[i], values[at < answers ? at : answers - 1] * 1000, i < 3 ? ", " : "}");
    }
    printf("%s", end);
}

int main(int count, char **words)
{
    if (count < 4)
        return 2;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(words[3])) };
    inet_pton(AF_INET, words[2], &address.sin_addr);
    is_server = strcmp(words[1], "serve") == 0;
    usrsctp_init(UDP_PORT, NULL, NULL);
    if (is_server) {
        struct socket *listener = open_socket();
        if (usrsctp_bind(listener, (struct sockaddr *)&address, sizeof address) || usrsctp_listen(listener, 100)) {
            perror("usrsctp_listen");
            return 1;
        }
        /* Accepted sockets have the callback of the listener. */
        while (usrsctp_accept(listener, NULL, NULL) != NULL)
            ;
        return 1;
    }
    int associations = count > 4 ? atoi(words[4]) : 1;
    size_t each = (count > 5 ? atof(words[5]) : 10) * PER_SECOND;
    most = each * associations;
    struct socket **sockets = calloc(associations, sizeof *sockets);
    there = calloc(most, sizeof *there), back = calloc(most, sizeof *back), both = calloc(most, sizeof *both);
    for (int i = 0; i < associations; i++) {
        sockets[i] = open_socket();
        if (usrsctp_connect(sockets[i], (struct sockaddr *)&address, sizeof address)) {
            perror("usrsctp_connect");
            return 1;
        }
    }
    double began = now();
    for (size_t i = 0; i < most; i++) {
        double wait = began + (double)i / (PER_SECOND * associations) - now();
        if (wait > 0)
            usleep(wait * 1e6);
        send_on(sockets[i % associations], i / associations % STREAMS, (struct times){ .sent = now() });
    }
    for (int i = 0; i < GRACE_S * 10 && answers < most; i++)
        usleep(100000);
    pthread_mutex_lock(&lock);
    printf("{\"associations\": %d, \"sent\": %zu, \"answered\": %zu, ", associations, most, answers);
    print("requests", there, ", "), print("responses", back, ", "), print("round trip", both, "}\n");
    fflush(stdout);
    _exit(0);
}
