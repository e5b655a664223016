/* rexmit: SCTP over UDP that recovers thin streams from loss in time (RFC 9260, RFC 6951).
 *
 * Generated; see docs/c.md. Times are nanoseconds of a clock that does not go back. A call that returns a status
 * did nothing unless it is REXMIT_OK. An endpoint may move between threads, but only one may use it at a time;
 * different endpoints are independent. There are no globals and no hidden threads.
 */

#ifndef REXMIT_H
#define REXMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Longest text of `rexmit_address_format`, with the zero byte that ends it.
 */
#define REXMIT_ADDRESS_TEXT 64

/**
 * Bytes of a fingerprint as a text, the zero byte at its end included.
 */
#define REXMIT_FINGERPRINT_TEXT 96

/**
 * The message may be delivered as soon as it is complete, out of the order of its stream.
 */
#define REXMIT_UNORDERED 1

/**
 * The peer is asked to acknowledge its last chunk without delay (I bit, RFC 7053).
 */
#define REXMIT_IMMEDIATE 2

/**
 * No limit; a value of `lifetime` and of `retransmissions`.
 */
#define REXMIT_UNLIMITED UINT32_MAX

/**
 * The most bytes of a text for `rexmit_config_set_recovery`, without the zero byte at its end.
 */
#define REXMIT_MAX_SETTINGS_BYTES 16384

/**
 * The version of this header.
 */
#define REXMIT_VERSION_MAJOR 0

/**
 * See REXMIT_VERSION_MAJOR. Before version 1, programs built with another minor version have to be built again.
 */
#define REXMIT_VERSION_MINOR 2

/**
 * See REXMIT_VERSION_MAJOR.
 */
#define REXMIT_VERSION_PATCH 0

/**
 * The result of a call: 0, or the reason why nothing was done.
 */
enum rexmit_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Success.
     */
    REXMIT_OK = 0,
    /**
     * A pointer is NULL, or a value is out of its range.
     */
    REXMIT_INVALID_ARGUMENT = -1,
    /**
     * The number names no association (any more).
     */
    REXMIT_NO_ASSOCIATION = -2,
    /**
     * The association is closing, or not established (yet, or any more).
     */
    REXMIT_NOT_ESTABLISHED = -3,
    /**
     * There is no such stream, path, key or address.
     */
    REXMIT_NOT_FOUND = -4,
    /**
     * The message is empty: SCTP carries no empty messages.
     */
    REXMIT_EMPTY = -5,
    /**
     * The message is larger than the limit of the configuration.
     */
    REXMIT_TOO_LARGE = -6,
    /**
     * The send buffer is full: wait for REXMIT_EVENT_WRITABLE.
     */
    REXMIT_BUFFER_FULL = -7,
    /**
     * The configuration is refused.
     */
    REXMIT_CONFIG = -8,
    /**
     * The peer, the configuration or the system does not support it.
     */
    REXMIT_NOT_SUPPORTED = -9,
    /**
     * A limit is reached.
     */
    REXMIT_LIMIT = -10,
    /**
     * The same operation is in progress, or was done already.
     */
    REXMIT_ALREADY = -11,
    /**
     * The system refused a call.
     */
    REXMIT_SYSTEM = -12,
    /**
     * Nothing is available (yet): no event, message or packet.
     */
    REXMIT_NOTHING = -13,
    /**
     * A defect of this library: the endpoint can only be freed.
     */
    REXMIT_INTERNAL = -100,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rexmit_status rexmit_status;
#else
typedef int32_t rexmit_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The kind of an event. Later versions may add kinds: ignore those that you do not know.
 */
enum rexmit_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * An event that this version of the API does not describe.
     */
    REXMIT_EVENT_OTHER = 0,
    /**
     * The association is established: `connected`.
     */
    REXMIT_EVENT_CONNECTED = 1,
    /**
     * `rexmit_receive` has a message. Reported once until everything was received.
     */
    REXMIT_EVENT_READABLE = 2,
    /**
     * The send buffer has room again after REXMIT_BUFFER_FULL.
     */
    REXMIT_EVENT_WRITABLE = 3,
    /**
     * The last chunk of a message was sent: `message`.
     */
    REXMIT_EVENT_MESSAGE_SENT = 4,
    /**
     * Every chunk of a message is acknowledged: `message`.
     */
    REXMIT_EVENT_MESSAGE_ACKNOWLEDGED = 5,
    /**
     * A message failed: it will not be delivered, or may not have been delivered. Data: `message`.
     */
    REXMIT_EVENT_MESSAGE_FAILED = 6,
    /**
     * The peer has begun to shut down: it accepts no more messages.
     */
    REXMIT_EVENT_PEER_SHUTDOWN = 7,
    /**
     * The peer has restarted: unacknowledged messages have failed.
     */
    REXMIT_EVENT_PEER_RESTARTED = 8,
    /**
     * Outgoing streams were reset, or the peer refused: `streams`.
     */
    REXMIT_EVENT_STREAMS_RESET = 9,
    /**
     * The peer has reset its outgoing streams. Data: `streams`.
     */
    REXMIT_EVENT_PEER_RESET_STREAMS = 10,
    /**
     * The state of a path has changed. Data: `path`.
     */
    REXMIT_EVENT_PATH_STATUS = 11,
    /**
     * New data is sent over another path. Data: `path`.
     */
    REXMIT_EVENT_DATA_PATH_CHANGED = 12,
    /**
     * The peer has added an address. Data: `path`.
     */
    REXMIT_EVENT_PEER_ADDRESS_ADDED = 13,
    /**
     * The peer has deleted an address. Data: `path`.
     */
    REXMIT_EVENT_PEER_ADDRESS_DELETED = 14,
    /**
     * The peer has answered a change of our addresses. Data: `address_change`.
     */
    REXMIT_EVENT_ADDRESS_CHANGED = 15,
    /**
     * The peer reported an error: `code` (RFC 9260 §3.3.10).
     */
    REXMIT_EVENT_PEER_ERROR = 16,
    /**
     * The association has ended; this is its last event. Received messages can still be read; then the number becomes
     * invalid. Data: `closed`.
     */
    REXMIT_EVENT_CLOSED = 17,
    /**
     * A message of the peer was dropped, although it was acknowledged: it is larger than `max_message_bytes`, or
     * filled the receive buffer together with other incomplete messages. Data: `dropped`.
     */
    REXMIT_EVENT_MESSAGE_DROPPED = 18,
    /**
     * Messages sent from now on do not meet their deadline with the requested probability: it is shorter than the path's
     * delay, or would need more copies than the budget has. Reported again only after it could be met for a while.
     * Data: `infeasible`.
     */
    REXMIT_EVENT_INFEASIBLE = 19,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rexmit_event_kind rexmit_event_kind;
#else
typedef uint32_t rexmit_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Why a message failed.
 */
enum rexmit_fail_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The message did not fail.
     */
    REXMIT_FAILED_NOT = 0,
    /**
     * The lifetime of the message was over.
     */
    REXMIT_FAILED_EXPIRED = 1,
    /**
     * The message reached its limit of retransmissions.
     */
    REXMIT_FAILED_RETRANSMISSION_LIMIT = 2,
    /**
     * The peer allows fewer streams than were requested.
     */
    REXMIT_FAILED_NO_SUCH_STREAM = 3,
    /**
     * The association ended, or the peer restarted, before it was acknowledged.
     */
    REXMIT_FAILED_ASSOCIATION_ENDED = 4,
    /**
     * The message failed for another reason.
     */
    REXMIT_FAILED_OTHER = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rexmit_fail_reason rexmit_fail_reason;
#else
typedef uint32_t rexmit_fail_reason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The state of a path.
 */
enum rexmit_path_state
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * The path is not confirmed, and carries no data (RFC 9260 §5.4).
     */
    REXMIT_PATH_UNCONFIRMED = 0,
    /**
     * The path works.
     */
    REXMIT_PATH_ACTIVE = 1,
    /**
     * The path may have failed (RFC 7829).
     */
    REXMIT_PATH_POTENTIALLY_FAILED = 2,
    /**
     * The path does not work.
     */
    REXMIT_PATH_INACTIVE = 3,
    /**
     * The path was removed.
     */
    REXMIT_PATH_REMOVED = 4,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rexmit_path_state rexmit_path_state;
#else
typedef uint32_t rexmit_path_state;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Why an association ended.
 */
enum rexmit_close_reason
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Gracefully, with everything delivered.
     */
    REXMIT_CLOSED_SHUTDOWN = 0,
    /**
     * Aborted by us: by the application, or because the peer violated the protocol.
     */
    REXMIT_CLOSED_ABORTED = 1,
    /**
     * Aborted by the peer.
     */
    REXMIT_CLOSED_ABORTED_BY_PEER = 2,
    /**
     * The peer does not respond any more.
     */
    REXMIT_CLOSED_UNREACHABLE = 3,
    /**
     * The peer never answered.
     */
    REXMIT_CLOSED_CONNECT_TIMED_OUT = 4,
    /**
     * The association ended for another reason.
     */
    REXMIT_CLOSED_OTHER = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rexmit_close_reason rexmit_close_reason;
#else
typedef uint32_t rexmit_close_reason;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Loss recovery profiles. The command `rexmit profiles` describes each.
 */
enum rexmit_profile
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * For urgent small messages at a low rate; bulk transfers are as fast as without it. The default.
     */
    REXMIT_INTERACTIVE = 0,
    /**
     * REXMIT_INTERACTIVE with redundant copies within a budget, for when latency matters more than bytes.
     */
    REXMIT_INTERACTIVE_REDUNDANT = 1,
    /**
     * RFC 9260 with its suggested values.
     */
    REXMIT_RFC9260 = 2,
    /**
     * RFC 9260 with the loss detection of RACK (RFC 8985).
     */
    REXMIT_RACK = 3,
    /**
     * RFC 9260, robust to reordering and to sudden delays (RR-SCTP).
     */
    REXMIT_RR = 4,
    /**
     * The four mechanisms for thin streams of Petlund 2009, with RTT samples of delayed ACKs.
     */
    REXMIT_THIN = 5,
    /**
     * The SCTP of Linux 6, for comparison.
     */
    REXMIT_LINUX = 6,
    /**
     * Large transfers alone: CUBIC, paced, with RACK.
     */
    REXMIT_BULK = 7,
    /**
     * `REXMIT_INTERACTIVE` for associations that also carry large transfers: it keeps the queue of the path short.
     */
    REXMIT_MIXED = 8,
    /**
     * REXMIT_INTERACTIVE with unacknowledged data bundled with new data: 1.5 times the bytes in the same packets.
     */
    REXMIT_INTERACTIVE_BUNDLING = 9,
    /**
     * REXMIT_INTERACTIVE for two networks: retransmissions take the path whose losses have the least in common.
     */
    REXMIT_INTERACTIVE_MULTIPATH = 10,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rexmit_profile rexmit_profile;
#else
typedef uint32_t rexmit_profile;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The stream schedulers of RFC 8260 §3: the order in which streams send. Within a stream, messages are sent
 * in the order in which they were accepted.
 */
enum rexmit_scheduling
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Each stream with data, in turn. The default.
     */
    REXMIT_ROUND_ROBIN = 0,
    /**
     * REXMIT_ROUND_ROBIN with new data of one stream only in each packet.
     */
    REXMIT_ROUND_ROBIN_PER_PACKET = 1,
    /**
     * The order in which messages were accepted.
     */
    REXMIT_FIRST_COME_FIRST_SERVED = 2,
    /**
     * The stream with the highest priority that has data; streams of equal priority in turn.
     */
    REXMIT_PRIORITY = 3,
    /**
     * The same number of bytes for each stream with data.
     */
    REXMIT_FAIR_BANDWIDTH = 4,
    /**
     * Bytes in proportion to the priorities of the streams with data.
     */
    REXMIT_WEIGHTED_FAIR_QUEUEING = 5,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rexmit_scheduling rexmit_scheduling;
#else
typedef uint32_t rexmit_scheduling;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * For which peers the SACKs of thin streams are sent twice.
 */
enum rexmit_ack_copies
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * For none.
     */
    REXMIT_ACK_COPIES_OFF = 0,
    /**
     * For those that ask for it when the association is set up. The default.
     */
    REXMIT_ACK_COPIES_ON_REQUEST = 1,
    /**
     * For all, whatever implementation they run.
     */
    REXMIT_ACK_COPIES_ALWAYS = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rexmit_ack_copies rexmit_ack_copies;
#else
typedef uint32_t rexmit_ack_copies;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * What happens to a message of the peer that is larger than the limit (`rexmit_config_set_max_message_bytes`).
 */
enum rexmit_oversized_messages
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    /**
     * Drop the message: REXMIT_EVENT_MESSAGE_DROPPED reports it, and the messages after it are delivered. The default.
     */
    REXMIT_OVERSIZED_DROP = 0,
    /**
     * As REXMIT_OVERSIZED_DROP, and the peer is asked to reset the stream (RFC 6525 §4.2), so that its application learns
     * of it. A peer without stream resets, or one that refuses, is not told.
     */
    REXMIT_OVERSIZED_RESET_STREAM = 1,
    /**
     * Abort the association.
     */
    REXMIT_OVERSIZED_ABORT = 2,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum rexmit_oversized_messages rexmit_oversized_messages;
#else
typedef uint32_t rexmit_oversized_messages;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The configuration of endpoints and of their associations. Not thread-safe.
 */
typedef struct rexmit_config rexmit_config;

/**
 * An SCTP endpoint with its associations, encrypted by DTLS 1.3 if the configuration says so. Not thread-safe: it may move between threads, but only one may use it at a
 * time.
 */
typedef struct rexmit_endpoint rexmit_endpoint;

/**
 * The owner of the bytes of a message.
 */
typedef struct rexmit_payload rexmit_payload;

/**
 * An IP address and a UDP port.
 */
typedef struct rexmit_address {
    /**
     * 4 or 6; 0 in an address that is not set.
     */
    uint8_t family;
    /**
     * The address in network byte order; IPv4 in the first four bytes.
     */
    uint8_t bytes[16];
    /**
     * UDP port, in host byte order.
     */
    uint16_t port;
    /**
     * Scope of a link-local IPv6 address (the index of its interface); else 0.
     */
    uint32_t scope;
} rexmit_address;

/**
 * Delivery options of a message. `REXMIT_DELIVERY` has the defaults: ordered and reliable, on stream 0.
 */
typedef struct rexmit_delivery {
    /**
     * The outgoing stream.
     */
    uint16_t stream;
    /**
     * Reserved; must be 0.
     */
    uint16_t reserved;
    /**
     * Payload protocol identifier for the peer's application, in host byte order; 0 is unspecified.
     */
    uint32_t ppid;
    /**
     * REXMIT_UNORDERED and REXMIT_IMMEDIATE, or 0.
     */
    uint32_t flags;
    /**
     * The milliseconds after which the message is abandoned (RFC 3758 §4.1); REXMIT_UNLIMITED never abandons
     * it.
     */
    uint32_t lifetime;
    /**
     * The retransmissions of a chunk after which the message is abandoned (RFC 7496 §3.1); REXMIT_UNLIMITED
     * never abandons it. Only one of both may be limited.
     */
    uint32_t retransmissions;
} rexmit_delivery;

/**
 * A part of a message to send.
 */
typedef struct rexmit_buffer {
    /**
     * The bytes of this part.
     */
    const uint8_t *data;
    /**
     * How many.
     */
    size_t length;
} rexmit_buffer;

/**
 * A delivery with a deadline: `{REXMIT_DELIVERY(stream), milliseconds, probability}`.
 */
typedef struct rexmit_timely_delivery {
    /**
     * The stream, the order, and the other options of the delivery.
     */
    struct rexmit_delivery delivery;
    /**
     * The milliseconds within which the message should arrive, more than 0. A late message is still delivered, unless
     * its `lifetime` is over.
     */
    uint32_t within;
    /**
     * The probability with which it should arrive in time: more than 0 and less than 1, such as 0.999.
     */
    double probability;
} rexmit_timely_delivery;

/**
 * A message from the peer. Free it with `rexmit_message_free`.
 */
typedef struct rexmit_message {
    /**
     * The bytes of the message.
     */
    const uint8_t *data;
    /**
     * How many.
     */
    size_t length;
    /**
     * Payload protocol identifier, as set by the peer's application.
     */
    uint32_t ppid;
    /**
     * The incoming stream.
     */
    uint16_t stream;
    /**
     * Whether the message was sent unordered.
     */
    bool unordered;
    /**
     * The owner of the bytes; for `rexmit_message_free` only.
     */
    struct rexmit_payload *owner;
} rexmit_message;

/**
 * The fingerprint (SHA-256) of a certificate, by which peers are authenticated.
 */
typedef struct rexmit_fingerprint {
    /**
     * The digest.
     */
    uint8_t bytes[32];
} rexmit_fingerprint;

/**
 * The data of REXMIT_EVENT_CONNECTED.
 */
typedef struct rexmit_connected {
    /**
     * The peer's address.
     */
    struct rexmit_address peer;
    /**
     * The number of outgoing streams, which are numbered from 0.
     */
    uint16_t outbound_streams;
    /**
     * The number of incoming streams, which are numbered from 0.
     */
    uint16_t inbound_streams;
    /**
     * Whether the peer initiated the association.
     */
    bool incoming;
} rexmit_connected;

/**
 * The data of events of a message.
 */
typedef struct rexmit_message_event {
    /**
     * The number that `rexmit_send` returned.
     */
    uint64_t id;
    /**
     * The message, if it failed; else NULL.
     */
    const uint8_t *data;
    /**
     * Length of the message, in bytes.
     */
    size_t length;
    /**
     * Why the message failed.
     */
    rexmit_fail_reason reason;
    /**
     * The stream of the message.
     */
    uint16_t stream;
    /**
     * Whether a part of it was sent.
     */
    bool was_begun;
} rexmit_message_event;

/**
 * The data of stream resets.
 */
typedef struct rexmit_streams_event {
    /**
     * The streams; an empty list means all.
     */
    const uint16_t *streams;
    /**
     * The number of streams in the list.
     */
    size_t count;
    /**
     * Whether the reset was performed.
     */
    bool performed;
} rexmit_streams_event;

/**
 * The data of events of paths.
 */
typedef struct rexmit_path_event {
    /**
     * The peer's address.
     */
    struct rexmit_address address;
    /**
     * The new state.
     */
    rexmit_path_state state;
    /**
     * The number of the path.
     */
    uint8_t path;
} rexmit_path_event;

/**
 * The data of REXMIT_EVENT_ADDRESS_CHANGED.
 */
typedef struct rexmit_address_change_event {
    /**
     * The address; unspecified as in RFC 5061 §4.2.4.
     */
    struct rexmit_address address;
    /**
     * The cause for which the change was refused (RFC 5061 §4.3), or 0.
     */
    uint16_t refused;
    /**
     * Whether the address was added (1), deleted (2) or preferred (3).
     */
    uint8_t what;
} rexmit_address_change_event;

/**
 * The data of REXMIT_EVENT_CLOSED.
 */
typedef struct rexmit_closed_event {
    /**
     * The reason in English.
     */
    const char *text;
    /**
     * Why.
     */
    rexmit_close_reason reason;
    /**
     * The first cause code of the peer's ABORT, or 0.
     */
    uint16_t cause;
} rexmit_closed_event;

/**
 * The data of REXMIT_EVENT_MESSAGE_DROPPED.
 */
typedef struct rexmit_dropped_event {
    /**
     * Payload protocol identifier of the message.
     */
    uint32_t ppid;
    /**
     * The stream of the message.
     */
    uint16_t stream;
    /**
     * Whether the message was sent unordered.
     */
    bool unordered;
} rexmit_dropped_event;

/**
 * The data of REXMIT_EVENT_INFEASIBLE.
 */
typedef struct rexmit_infeasible_event {
    /**
     * The probability of being in time at the present loss rate.
     */
    double achievable;
} rexmit_infeasible_event;

/**
 * The data of an event, by its kind.
 */
typedef union rexmit_event_data {
    /**
     * The data of REXMIT_EVENT_CONNECTED.
     */
    struct rexmit_connected connected;
    /**
     * The data of events of a message.
     */
    struct rexmit_message_event message;
    /**
     * The data of stream resets.
     */
    struct rexmit_streams_event streams;
    /**
     * The data of events of paths and of the peer's addresses.
     */
    struct rexmit_path_event path;
    /**
     * The data of REXMIT_EVENT_ADDRESS_CHANGED.
     */
    struct rexmit_address_change_event address_change;
    /**
     * The cause code of REXMIT_EVENT_PEER_ERROR.
     */
    uint16_t code;
    /**
     * The data of REXMIT_EVENT_CLOSED.
     */
    struct rexmit_closed_event closed;
    /**
     * The data of REXMIT_EVENT_MESSAGE_DROPPED.
     */
    struct rexmit_dropped_event dropped;
    /**
     * The data of REXMIT_EVENT_INFEASIBLE.
     */
    struct rexmit_infeasible_event infeasible;
    /**
     * Reserved for the data of later events.
     */
    uint64_t reserved[16];
} rexmit_event_data;

/**
 * An event. The memory that it points to is valid until the next call of `rexmit_endpoint_poll_event`.
 */
typedef struct rexmit_event {
    /**
     * The association.
     */
    uint64_t association;
    /**
     * The kind of the event.
     */
    rexmit_event_kind kind;
    /**
     * The data of the event, by its kind.
     */
    union rexmit_event_data data;
} rexmit_event;

/**
 * The traffic of an association.
 */
typedef struct rexmit_traffic {
    /**
     * SCTP packets sent.
     */
    uint64_t packets_sent;
    /**
     * Bytes of these.
     */
    uint64_t bytes_sent;
    /**
     * SCTP packets received.
     */
    uint64_t packets_received;
    /**
     * Bytes of these.
     */
    uint64_t bytes_received;
    /**
     * Messages accepted from the application.
     */
    uint64_t messages_accepted;
    /**
     * Messages handed to the application.
     */
    uint64_t messages_delivered;
    /**
     * Messages that failed.
     */
    uint64_t messages_failed;
    /**
     * Payload bytes accepted.
     */
    uint64_t payload_accepted_bytes;
    /**
     * Payload bytes handed to the application.
     */
    uint64_t payload_delivered_bytes;
    /**
     * DATA chunks received that had been received before.
     */
    uint64_t duplicates_received;
    /**
     * SACKs sent.
     */
    uint64_t sacks_sent;
    /**
     * SACKs received.
     */
    uint64_t sacks_received;
} rexmit_traffic;

/**
 * Retransmitted DATA chunks by cause.
 */
typedef struct rexmit_by_cause {
    /**
     * The retransmission timer expired.
     */
    uint64_t timeout;
    /**
     * Missing reports, or RACK.
     */
    uint64_t fast_retransmit;
    /**
     * Bundled with another retransmission.
     */
    uint64_t bundled;
    /**
     * A probe of a closed window.
     */
    uint64_t window_probe;
    /**
     * Early Fast Retransmit.
     */
    uint64_t early;
    /**
     * Redundant copies, which are not retransmissions.
     */
    uint64_t redundant;
    /**
     * The probe timer of a thin stream.
     */
    uint64_t probe;
} rexmit_by_cause;

/**
 * Counters of an association from its start, and its present state.
 */
typedef struct rexmit_statistics {
    /**
     * The traffic.
     */
    struct rexmit_traffic traffic;
    /**
     * DATA chunks retransmitted.
     */
    struct rexmit_by_cause retransmitted;
    /**
     * DATA chunks retransmitted spuriously, as far as is known.
     */
    struct rexmit_by_cause spurious;
    /**
     * Bytes accepted and not yet acknowledged.
     */
    uint64_t send_buffered_bytes;
    /**
     * Bytes received and not yet read by the application.
     */
    uint64_t receive_buffered_bytes;
    /**
     * Whether the association is thin.
     */
    bool is_thin;
    /**
     * The number of paths, for `rexmit_get_path_statistics`.
     */
    uint8_t paths;
} rexmit_statistics;

/**
 * One path of an association.
 */
typedef struct rexmit_path_statistics {
    /**
     * Our address; unspecified if the system chooses it.
     */
    struct rexmit_address local;
    /**
     * The peer's address.
     */
    struct rexmit_address remote;
    /**
     * The state of the path.
     */
    rexmit_path_state state;
    /**
     * Timeouts and unanswered HEARTBEATs in a row.
     */
    uint32_t errors;
    /**
     * Smoothed round-trip time in nanoseconds; 0 if it was not measured.
     */
    uint64_t srtt;
    /**
     * Retransmission timeout in nanoseconds.
     */
    uint64_t rto;
    /**
     * Congestion window in bytes.
     */
    uint64_t cwnd;
    /**
     * Slow start threshold in bytes.
     */
    uint64_t ssthresh;
    /**
     * Bytes in flight.
     */
    uint64_t bytes_in_flight;
    /**
     * Packets with data sent.
     */
    uint64_t packets;
    /**
     * Packets declared lost.
     */
    uint64_t packets_lost;
    /**
     * Expiries of the retransmission timer.
     */
    uint64_t timeouts;
    /**
     * Whether new data uses it while it is active.
     */
    bool is_primary;
} rexmit_path_statistics;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Reads "192.0.2.1:9899" or "[2001:db8::1]:9899" (no names: resolve those with getaddrinfo).
 *
 * # Safety
 * `text` is a text that ends with a zero byte; `address` points to memory for the result.
 */
rexmit_status rexmit_address_parse(const char *text, struct rexmit_address *address);

/**
 * Writes the address as a text of at most REXMIT_ADDRESS_TEXT bytes, the zero byte at its end included.
 * REXMIT_TOO_LARGE if it does not fit `capacity`.
 *
 * # Safety
 * `address` points to an address, `text` to `capacity` bytes.
 */
rexmit_status rexmit_address_format(const struct rexmit_address *address, char *text, size_t capacity);

/**
 * Begins an association with the SCTP port `port` of the peer at `remotes`: one UDP address, or several of the same
 * host (one only with encryption). Messages can be sent at once. REXMIT_EVENT_CONNECTED or REXMIT_EVENT_CLOSED reports
 * the result. The only time limit is Max.Init.Retransmits: call `rexmit_abort` to stop earlier. With encryption, the
 * handshake of DTLS comes first, which has 10 s; if it fails or one side does not trust the other, the association is
 * REXMIT_CLOSED_ABORTED, and the text of REXMIT_EVENT_CLOSED says why.
 *
 * ```c
 * rexmit_address server;
 * uint64_t association;
 * if (rexmit_address_parse("192.0.2.1:9899", &server) != REXMIT_OK ||
 *     rexmit_connect(endpoint, rexmit_now(), &server, 1, 5000, &association) != REXMIT_OK)
 *     fprintf(stderr, "%s\n", rexmit_endpoint_error(endpoint));
 * ```
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; `remotes` points to `count` addresses, `association` to memory for the
 * result.
 */
rexmit_status rexmit_connect(struct rexmit_endpoint *endpoint,
                             uint64_t now,
                             const struct rexmit_address *remotes,
                             size_t count,
                             uint16_t port,
                             uint64_t *association);

/**
 * Accepts a message of `count` parts, such as a header and a body, for the peer. Events report its fate: failures always, success if the
 * configuration asks for it. The number of the message is written to `message`, which may be NULL.
 *
 * ```c
 * static const uint8_t header[] = {1, 2}, body[] = "jump";
 * rexmit_buffer parts[] = {{header, sizeof header}, {body, sizeof body - 1}};
 * rexmit_delivery delivery = REXMIT_DELIVERY(3);
 * delivery.flags = REXMIT_UNORDERED;
 * if (rexmit_send(endpoint, rexmit_now(), association, &delivery, parts, 2, NULL) == REXMIT_BUFFER_FULL)
 *     puts("the send buffer is full: wait for REXMIT_EVENT_WRITABLE");
 * ```
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; `delivery` points to a delivery, `buffers` to `count` buffers, each of
 * which points to its bytes; `message` is NULL or points to memory for the result.
 */
rexmit_status rexmit_send(struct rexmit_endpoint *endpoint,
                          uint64_t now,
                          uint64_t association,
                          const struct rexmit_delivery *delivery,
                          const struct rexmit_buffer *buffers,
                          size_t count,
                          uint64_t *message);

/**
 * As `rexmit_send`, for a message that should arrive within a time: copies of it are sent if that requires them, within
 * the budget of copies (`rexmit_config_set_copy_budget`). REXMIT_EVENT_INFEASIBLE reports that deadlines cannot be met.
 * Only profiles with mechanisms for thin streams send copies.
 *
 * # Safety
 * As `rexmit_send`; `delivery` points to a delivery with a deadline.
 */
rexmit_status rexmit_send_within(struct rexmit_endpoint *endpoint,
                                 uint64_t now,
                                 uint64_t association,
                                 const struct rexmit_timely_delivery *delivery,
                                 const struct rexmit_buffer *buffers,
                                 size_t count,
                                 uint64_t *message);

/**
 * The next message from the peer, in the order of delivery; REXMIT_NOTHING if no message is left.
 *
 * ```c
 * rexmit_message message;
 * while (rexmit_receive(endpoint, rexmit_now(), association, &message) == REXMIT_OK) {
 *     printf("stream %u: %zu bytes\n", (unsigned)message.stream, message.length);
 *     rexmit_message_free(&message);
 * }
 * ```
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; `message` points to memory for the result.
 */
rexmit_status rexmit_receive(struct rexmit_endpoint *endpoint,
                             uint64_t now,
                             uint64_t association,
                             struct rexmit_message *message);

/**
 * Ends the association gracefully: everything accepted on both sides is still delivered.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_shutdown(struct rexmit_endpoint *endpoint, uint64_t now, uint64_t association);

/**
 * Aborts the association at once; the peer gets the reason (`length` bytes, of which at most 400 are sent).
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_abort(struct rexmit_endpoint *endpoint,
                           uint64_t now,
                           uint64_t association,
                           const uint8_t *reason,
                           size_t length);

/**
 * Resets outgoing streams to sequence number 0 (RFC 6525); an empty list resets all.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_reset_streams(struct rexmit_endpoint *endpoint,
                                   uint64_t now,
                                   uint64_t association,
                                   const uint16_t *streams,
                                   size_t count);

/**
 * The fingerprint of the certificate that the peer of an association has proved to own. REXMIT_NOT_FOUND
 * without encryption, and before REXMIT_EVENT_CONNECTED.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; `fingerprint` points to memory for the result.
 */
rexmit_status rexmit_peer_fingerprint(struct rexmit_endpoint *endpoint,
                                      uint64_t association,
                                      struct rexmit_fingerprint *fingerprint);

/**
 * Sets the priority of an outgoing stream, initially 256. With REXMIT_PRIORITY the stream with the higher
 * value is sent first; with REXMIT_WEIGHTED_FAIR_QUEUEING it is the weight (RFC 8260 §3). It applies to
 * chunks sent from now on.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`.
 */
rexmit_status rexmit_set_priority(struct rexmit_endpoint *endpoint,
                                  uint64_t now,
                                  uint64_t association,
                                  uint16_t stream,
                                  uint16_t priority);

/**
 * Changes the scheduler of the outgoing streams to one of `enum rexmit_scheduling`.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`.
 */
rexmit_status rexmit_set_scheduling(struct rexmit_endpoint *endpoint,
                                    uint64_t now,
                                    uint64_t association,
                                    uint32_t number);

/**
 * Sets the mechanisms of the association while it is thin to those of this profile (`enum rexmit_profile`).
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_set_thin(struct rexmit_endpoint *endpoint,
                              uint64_t now,
                              uint64_t association,
                              uint32_t number);

/**
 * Singles out an outgoing stream: whether it is thin depends on its own packets in flight only, and its
 * mechanisms are those of this profile (`enum rexmit_profile`). At most 31 streams can be singled out in the
 * life of an association.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_set_stream_thin(struct rexmit_endpoint *endpoint,
                                     uint64_t now,
                                     uint64_t association,
                                     uint16_t stream,
                                     uint32_t number);

/**
 * Ends `rexmit_set_stream_thin`: chunks that the stream sends from now on count as the association's again.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_unset_stream_thin(struct rexmit_endpoint *endpoint,
                                       uint64_t now,
                                       uint64_t association,
                                       uint16_t stream);

/**
 * Makes this path the primary path, which carries new data while it works.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_set_primary(struct rexmit_endpoint *endpoint,
                                 uint64_t now,
                                 uint64_t association,
                                 uint8_t path);

/**
 * Asks the peer to send to this local address while it works (RFC 5061 §4.2.4). REXMIT_EVENT_ADDRESS_CHANGED reports
 * the result.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_set_peer_primary(struct rexmit_endpoint *endpoint,
                                      uint64_t now,
                                      uint64_t association,
                                      const struct rexmit_address *address);

/**
 * Adds a local address (RFC 5061). REXMIT_EVENT_ADDRESS_CHANGED reports the result.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_add_address(struct rexmit_endpoint *endpoint,
                                 uint64_t now,
                                 uint64_t association,
                                 const struct rexmit_address *address);

/**
 * Removes a local address (RFC 5061). REXMIT_EVENT_ADDRESS_CHANGED reports the result.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_delete_address(struct rexmit_endpoint *endpoint,
                                    uint64_t now,
                                    uint64_t association,
                                    const struct rexmit_address *address);

/**
 * Replaces all local addresses by this one (RFC 5061), after the host has changed its network.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_move_to(struct rexmit_endpoint *endpoint,
                             uint64_t now,
                             uint64_t association,
                             const struct rexmit_address *address);

/**
 * Sets a shared key of `length` bytes for authenticated chunks (RFC 4895).
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_set_shared_key(struct rexmit_endpoint *endpoint,
                                    uint64_t now,
                                    uint64_t association,
                                    uint16_t key_id,
                                    const uint8_t *key,
                                    size_t length);

/**
 * Authenticates outgoing chunks with this key from now on.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_use_shared_key(struct rexmit_endpoint *endpoint,
                                    uint64_t now,
                                    uint64_t association,
                                    uint16_t key_id);

/**
 * Deletes a shared key that is not in use.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; each other pointer points to a value of its type, or to
 * as many elements as its length says.
 */
rexmit_status rexmit_delete_shared_key(struct rexmit_endpoint *endpoint,
                                       uint64_t now,
                                       uint64_t association,
                                       uint16_t key_id);

/**
 * A configuration with the defaults of each setter below. Free it with `rexmit_config_free`.
 */
struct rexmit_config *rexmit_config_new(void);

/**
 * Frees a configuration; endpoints made with it keep theirs. NULL is ignored.
 *
 * # Safety
 * `config` is NULL, or came from `rexmit_config_new` and was not freed.
 */
void rexmit_config_free(struct rexmit_config *config);

/**
 * Why the last call with this configuration failed, in English; empty if none did. Valid until the next one.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
const char *rexmit_config_error(const struct rexmit_config *config);

/**
 * The profile, one of `enum rexmit_profile`; also sets `dead_after`, `interleaving`, and whether endpoints with a socket
 * (`rexmit_endpoint_bind`) offer ECN; REXMIT_MIXED sets
 * scheduling by priority, and REXMIT_MIXED and REXMIT_BULK raise buffers to at least 4 MiB, and packets to up to 1500
 * bytes where the path allows them. Default REXMIT_INTERACTIVE. It replaces what `rexmit_config_set_recovery`,
 * `rexmit_config_set_deadline` and `rexmit_config_set_copy_budget` have set: call these after it.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_profile(struct rexmit_config *config,
                                        uint32_t number);

/**
 * The local SCTP port. Default 5000.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_port(struct rexmit_config *config, uint16_t port);

/**
 * Whether associations initiated by peers are accepted. Default false.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_accept(struct rexmit_config *config, bool accept);

/**
 * The stream scheduler, one of `enum rexmit_scheduling`. Default REXMIT_ROUND_ROBIN.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_scheduling(struct rexmit_config *config, uint32_t number);

/**
 * The deadline of messages that have none of their own: the milliseconds within which each should arrive, and the
 * probability, above 0 and below 1. With 0 milliseconds, the default, they have no deadline.
 * `rexmit_config_set_profile` resets it.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_deadline(struct rexmit_config *config,
                                         uint32_t within,
                                         double probability);

/**
 * The budget for redundant copies: packets with copies only, in percent of packets with new data, and copied bytes, in
 * percent of new ones; 0 is no limit. Default: that of the profile (none for REXMIT_INTERACTIVE).
 * `rexmit_config_set_profile` resets it.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_copy_budget(struct rexmit_config *config,
                                            uint16_t packets_percent,
                                            uint16_t bytes_percent);

/**
 * Whether to interleave messages of different streams with peers that can (I-DATA, RFC 8260), so that a large one delays
 * those of other streams by one chunk. Default true with the interactive profiles, otherwise false.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_interleaving(struct rexmit_config *config,
                                             bool interleaving);

/**
 * The most associations at one time. Default 200,000.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_max_associations(struct rexmit_config *config, size_t limit);

/**
 * The most bytes that all associations hold of received data until the application reads it, with 256 more for each chunk and
 * message. At the limit an association holds at most 16 KiB, or what it had; one without a message to read gets one packet at a
 * time beyond that, up to its own receive buffer. Default 256 MiB.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_max_receive_bytes(struct rexmit_config *config,
                                                  size_t bytes);

/**
 * The number of outgoing streams to request. Default 16.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_outbound_streams(struct rexmit_config *config, uint16_t streams);

/**
 * Incoming streams to accept. Default 2048.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_max_inbound_streams(struct rexmit_config *config, uint16_t streams);

/**
 * The largest message in bytes, in and out. Default 262,144.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_max_message_bytes(struct rexmit_config *config, size_t bytes);

/**
 * The largest SCTP packet in bytes. Default 1232.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_max_packet_bytes(struct rexmit_config *config, size_t bytes);

/**
 * The largest path MTU to search for, in bytes of an IP packet; 0, the default, searches for none (RFC 8899). Packets of
 * the size that was found bundle several chunks; none of these is larger than `max_packet_bytes` allows.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_path_mtu(struct rexmit_config *config,
                                         uint16_t max_mtu);

/**
 * Second copies of the SACKs of thin streams, so that the loss of one causes no spurious retransmission: for which peers
 * this side sends them, one of `enum rexmit_ack_copies`, whether it asks its peers for them, and the time between a SACK
 * and its copy in microseconds, 100 to 100,000. Default REXMIT_ACK_COPIES_ON_REQUEST, false and 1000.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_ack_copies(struct rexmit_config *config,
                                           uint32_t send,
                                           bool request,
                                           uint32_t delay_us);

/**
 * The send buffer: the most bytes accepted and not yet acknowledged. Default 1,048,576.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_send_buffer_bytes(struct rexmit_config *config, size_t bytes);

/**
 * The receive buffer in bytes. Default 1,048,576.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_receive_buffer_bytes(struct rexmit_config *config, size_t bytes);

/**
 * The milliseconds of silence, while data, or the end of the association, is sent to it, after which a peer is unreachable; 0 leaves it to
 * the error counters of RFC 9260 §8.1 (minutes). Default 15,000 with the interactive profiles, else 0.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_dead_after(struct rexmit_config *config,
                                           uint32_t milliseconds);

/**
 * HB.interval in milliseconds; 0 sends no HEARTBEAT. Default 30,000.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_heartbeat_interval(struct rexmit_config *config, uint32_t milliseconds);

/**
 * Max.Init.Retransmits. Default 8.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_max_init_retransmits(struct rexmit_config *config, uint32_t count);

/**
 * Offer partial reliability (RFC 3758). Default true.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_partial_reliability(struct rexmit_config *config, bool offer);

/**
 * Offer stream reset (RFC 6525). Default true.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_stream_reset(struct rexmit_config *config, bool offer);

/**
 * Offer dynamic addresses (RFC 5061). Default true.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_dynamic_addresses(struct rexmit_config *config, bool offer);

/**
 * Report each message whose last chunk was sent (REXMIT_EVENT_MESSAGE_SENT). Default false.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_report_sent(struct rexmit_config *config, bool report);

/**
 * Report each message that was acknowledged (REXMIT_EVENT_MESSAGE_ACKNOWLEDGED). Default false.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_report_acknowledged(struct rexmit_config *config, bool report);

/**
 * Adds a local address, for an endpoint with several; its port is ignored.
 *
 * # Safety
 * `config` came from `rexmit_config_new`; `address` points to an address.
 */
rexmit_status rexmit_config_add_address(struct rexmit_config *config, const struct rexmit_address *address);

/**
 * Adds a shared key for authenticated chunks (RFC 4895). The first one is used at the beginning.
 *
 * # Safety
 * `config` came from `rexmit_config_new`; `key` points to `length` bytes.
 */
rexmit_status rexmit_config_add_shared_key(struct rexmit_config *config,
                                           uint16_t id,
                                           const uint8_t *key,
                                           size_t length);

/**
 * Whether an endpoint would accept this configuration; `rexmit_config_error` says why not.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_validate(struct rexmit_config *config);

/**
 * Encryption: endpoints have a new identity, a key on P-256 with a self-signed certificate. A server that
 * clients should recognize after a restart stores it (`rexmit_config_certificate`,
 * `rexmit_config_private_key`).
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_generate_identity(struct rexmit_config *config);

/**
 * Encryption: endpoints have the identity of a certificate (X.509) and its private key (ECDSA on P-256 or P-384, PKCS #8
 * or SEC 1), both as texts in PEM.
 *
 * # Safety
 * `config` came from `rexmit_config_new`; the others are texts that end with a zero byte.
 */
rexmit_status rexmit_config_set_identity_pem(struct rexmit_config *config,
                                             const char *certificate,
                                             const char *private_key);

/**
 * As `rexmit_config_set_identity_pem`, in DER.
 *
 * # Safety
 * `config` came from `rexmit_config_new`; the others point to buffers, which point to their bytes.
 */
rexmit_status rexmit_config_set_identity_der(struct rexmit_config *config,
                                             const struct rexmit_buffer *certificate,
                                             const struct rexmit_buffer *private_key);

/**
 * The certificate of the identity in DER. Valid until the identity is changed or the configuration is freed.
 *
 * # Safety
 * `config` came from `rexmit_config_new`; `certificate` points to memory for the result.
 */
rexmit_status rexmit_config_certificate(struct rexmit_config *config, struct rexmit_buffer *certificate);

/**
 * The private key of the identity in DER. Keep it secret. Valid as long as the certificate.
 *
 * # Safety
 * `config` came from `rexmit_config_new`; `private_key` points to memory for the result.
 */
rexmit_status rexmit_config_private_key(struct rexmit_config *config, struct rexmit_buffer *private_key);

/**
 * The fingerprint of this configuration's certificate, which peers have to trust; REXMIT_NOT_FOUND without
 * an identity.
 *
 * # Safety
 * `config` came from `rexmit_config_new`; `fingerprint` points to memory for the result.
 */
rexmit_status rexmit_config_fingerprint(struct rexmit_config *config, struct rexmit_fingerprint *fingerprint);

/**
 * Encryption: endpoints trust peers with this certificate, in addition to earlier ones. An endpoint without
 * an identity generates one.
 *
 * # Safety
 * `config` came from `rexmit_config_new`; `fingerprint` points to a fingerprint.
 */
rexmit_status rexmit_config_trust(struct rexmit_config *config, const struct rexmit_fingerprint *fingerprint);

/**
 * Encryption: endpoints trust every peer, for a server whose clients are not known beforehand. A client that
 * trusts anyone is protected against passive eavesdroppers only: a host on the path can impersonate the
 * server.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_trust_anyone(struct rexmit_config *config);

/**
 * Reads a fingerprint: 64 hexadecimal digits, with or without colons, as `openssl x509 -fingerprint -sha256` prints it.
 *
 * # Safety
 * `text` is a text that ends with a zero byte; `fingerprint` points to memory for the result.
 */
rexmit_status rexmit_fingerprint_parse(const char *text,
                                       struct rexmit_fingerprint *fingerprint);

/**
 * Writes a fingerprint as a text of REXMIT_FINGERPRINT_TEXT bytes, the zero byte at its end included. REXMIT_TOO_LARGE if
 * it does not fit `capacity`.
 *
 * # Safety
 * `fingerprint` points to a fingerprint, `text` to `capacity` bytes.
 */
rexmit_status rexmit_fingerprint_format(const struct rexmit_fingerprint *fingerprint,
                                        char *text,
                                        size_t capacity);

/**
 * The monotonic clock, in nanoseconds: the `now` of all calls of an endpoint with a socket. A program that drives the
 * endpoint itself may use any clock that does not go back.
 */
uint64_t rexmit_now(void);

/**
 * Makes an endpoint, which encrypts if the configuration has an identity or trusted peers. `seed` points to 32 bytes
 * of full entropy; if it is NULL, the system provides them. (A fixed seed is for simulations: tags and cookies are
 * drawn from it, encryption keys are not.) On failure `rexmit_config_error` says why.
 *
 * ```c
 * rexmit_config *config = rexmit_config_new();
 * rexmit_endpoint *endpoint;
 * rexmit_config_set_profile(config, REXMIT_INTERACTIVE_REDUNDANT);
 * if (rexmit_endpoint_new(config, NULL, &endpoint) != REXMIT_OK)
 *     fprintf(stderr, "%s\n", rexmit_config_error(config));
 * rexmit_config_free(config);
 * ```
 *
 * # Safety
 * `config` came from `rexmit_config_new`; `seed` is NULL or points to 32 bytes; `endpoint` to memory for a pointer.
 */
rexmit_status rexmit_endpoint_new(struct rexmit_config *config,
                                  const uint8_t *seed,
                                  struct rexmit_endpoint **endpoint);

/**
 * Frees an endpoint and closes its socket. Its associations vanish without notice to their peers: shut them
 * down or abort them before. NULL is ignored.
 *
 * # Safety
 * `endpoint` is NULL, or came from `rexmit_endpoint_new` and was not freed.
 */
void rexmit_endpoint_free(struct rexmit_endpoint *endpoint);

/**
 * Why the last failed call failed, in English. Valid until the next call.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`.
 */
const char *rexmit_endpoint_error(const struct rexmit_endpoint *endpoint);

/**
 * Sans-IO: a UDP datagram arrived at `local` (as the program knows its own address) from `remote`.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; the others point to two addresses and to `length` bytes.
 */
rexmit_status rexmit_endpoint_handle_input(struct rexmit_endpoint *endpoint,
                                           uint64_t now,
                                           const struct rexmit_address *local,
                                           const struct rexmit_address *remote,
                                           const uint8_t *datagram,
                                           size_t length);

/**
 * Sans-IO: to be called when the time of `rexmit_endpoint_poll_timeout` is reached. Harmless when called
 * early.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`.
 */
rexmit_status rexmit_endpoint_handle_timeout(struct rexmit_endpoint *endpoint, uint64_t now);

/**
 * Sans-IO: the next datagram to send, with its addresses; REXMIT_NOTHING if no datagram is left. `capacity` of at
 * least the configured packet size (default 1232) always suffices; a datagram that does not fit is dropped
 * (REXMIT_TOO_LARGE), and treated as lost. An unspecified `local` leaves the choice to the program.
 *
 * ```c
 * uint8_t packet[65536];
 * size_t length;
 * rexmit_address local, remote;
 * while (rexmit_endpoint_poll_transmit(endpoint, now, &local, &remote, packet, sizeof packet, &length) == REXMIT_OK)
 *     send_datagram(packet, length, &remote);
 * set_timer(rexmit_endpoint_poll_timeout(endpoint));
 * ```
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; `datagram` points to `capacity` bytes; the others to memory for results.
 */
rexmit_status rexmit_endpoint_poll_transmit(struct rexmit_endpoint *endpoint,
                                            uint64_t now,
                                            struct rexmit_address *local,
                                            struct rexmit_address *remote,
                                            uint8_t *datagram,
                                            size_t capacity,
                                            size_t *length);

/**
 * Sans-IO: when `rexmit_endpoint_handle_timeout` is to be called at the latest; UINT64_MAX if nothing is due.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`.
 */
uint64_t rexmit_endpoint_poll_timeout(const struct rexmit_endpoint *endpoint);

/**
 * Event loop: gives the endpoint a UDP socket bound to `address` (port 0: any). From now on, each call also transmits.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; `address` points to an address.
 */
rexmit_status rexmit_endpoint_bind(struct rexmit_endpoint *endpoint,
                                   const struct rexmit_address *address);

/**
 * Event loop: the address to which the socket is bound.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; `address` points to memory for the result.
 */
rexmit_status rexmit_endpoint_local_address(struct rexmit_endpoint *endpoint, struct rexmit_address *address);

/**
 * Event loop: the descriptor to wait for with poll, select or epoll, until it is readable; then call
 * `rexmit_endpoint_process`. -1 without a socket. The endpoint owns it: neither read nor close it.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`.
 */
int32_t rexmit_endpoint_fd(const struct rexmit_endpoint *endpoint);

/**
 * Event loop: receives, lets timers expire and transmits, without waiting. Then call `rexmit_endpoint_poll_event`
 * until it returns REXMIT_NOTHING.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`.
 */
rexmit_status rexmit_endpoint_process(struct rexmit_endpoint *endpoint,
                                      uint64_t now);

/**
 * Reads the next event; REXMIT_NOTHING if none is left.
 *
 * ```c
 * rexmit_event event;
 * while (rexmit_endpoint_poll_event(endpoint, &event) == REXMIT_OK) {
 *     switch (event.kind) {
 *     case REXMIT_EVENT_CONNECTED:
 *         puts("connected");
 *         break;
 *     case REXMIT_EVENT_CLOSED:
 *         puts(event.data.closed.text);
 *         break;
 *     default:
 *         break;
 *     }
 * }
 * ```
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; `event` points to memory for the result.
 */
rexmit_status rexmit_endpoint_poll_event(struct rexmit_endpoint *endpoint, struct rexmit_event *event);

/**
 * Frees a message of `rexmit_receive`, and makes it empty, so that a second call does nothing. NULL is ignored.
 *
 * # Safety
 * `message` is NULL, or points to a message of `rexmit_receive` or to zeros.
 */
void rexmit_message_free(struct rexmit_message *message);

/**
 * Changes single settings of loss recovery and congestion control, as a text in TOML with the names and values that the
 * table `recovery` has in study files: tables are merged with what is set already, and other values are replaced, so
 * `rto.min = '200ms'` changes RTO.Min alone. Times have a unit (us, ms, s), switches are true or false, and anything else
 * that is off is 'off'. The command `rexmit profiles NAME` has the settings of a profile, and what each means.
 *
 * `rexmit_config_set_profile` replaces all of them, so it comes first. Calls of this function add up, also with
 * `rexmit_config_set_deadline` and `rexmit_config_set_copy_budget`, which set `thin.deadline` and `thin.copy_budget`.
 * A text with an unknown name, a wrong value or values that do not fit together is REXMIT_INVALID_ARGUMENT, and so is
 * one of more than REXMIT_MAX_SETTINGS_BYTES; `rexmit_config_error` names the line and the setting, and nothing changes.
 *
 * # Safety
 * `config` came from `rexmit_config_new`; `settings` ends with a zero byte.
 */
rexmit_status rexmit_config_set_recovery(struct rexmit_config *config,
                                         const char *settings);

/**
 * SACK.Delay (RFC 9260 §6.2): the milliseconds for which a SACK waits at most, 500 at most; with 0 none waits. The
 * default is 200. Profiles leave it as it is.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_sack_delay(struct rexmit_config *config,
                                           uint32_t milliseconds);

/**
 * The packets with data, 1 to 255, after which a SACK is sent at the latest (RFC 9260 §6.2). Default 2. Profiles leave
 * it as it is.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_sack_every(struct rexmit_config *config,
                                           uint8_t packets);

/**
 * What happens to messages of the peer that are too large, one of `enum rexmit_oversized_messages`. Default
 * REXMIT_OVERSIZED_DROP.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_oversized_messages(struct rexmit_config *config, uint32_t number);

/**
 * Primary.Switchover.Max.Retrans (RFC 7829 §5): after more consecutive errors of the primary path, the path in use
 * becomes the primary one, so that data does not return to the old one when that works again. At least the errors after
 * which data takes another path: Path.Max.Retrans, 5, or less with the setting `sctp.potentially_failed_max_retrans` of
 * `rexmit_config_set_recovery`. With REXMIT_UNLIMITED, the default, data returns.
 *
 * # Safety
 * `config` came from `rexmit_config_new`.
 */
rexmit_status rexmit_config_set_primary_switchover_max_retrans(struct rexmit_config *config,
                                                               uint32_t count);

/**
 * Counters of an association, also right after REXMIT_EVENT_CLOSED. `size` is `sizeof(struct rexmit_statistics)`.
 *
 * ```c
 * rexmit_statistics statistics;
 * if (rexmit_get_statistics(endpoint, association, &statistics, sizeof statistics) == REXMIT_OK)
 *     printf("%llu bytes wait\n", (unsigned long long)statistics.send_buffered_bytes);
 * ```
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; `statistics` points to `size` bytes.
 */
rexmit_status rexmit_get_statistics(struct rexmit_endpoint *endpoint,
                                    uint64_t association,
                                    struct rexmit_statistics *statistics,
                                    size_t size);

/**
 * The statistics of one path of an association, by number. `size` is `sizeof(struct
 * rexmit_path_statistics)`.
 *
 * # Safety
 * `endpoint` came from `rexmit_endpoint_new`; `statistics` points to `size` bytes.
 */
rexmit_status rexmit_get_path_statistics(struct rexmit_endpoint *endpoint,
                                         uint64_t association,
                                         uint8_t path,
                                         struct rexmit_path_statistics *statistics,
                                         size_t size);

/**
 * The meaning of a status, in English. Never NULL; not to be freed.
 */
const char *rexmit_status_text(int32_t status);

/**
 * The version of the library that is linked, such as "0.2.0". Not to be freed.
 */
const char *rexmit_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* REXMIT_H */

/** The defaults of a delivery: ordered and reliable, on `stream`. */
#define REXMIT_DELIVERY(stream) { (stream), 0, 0, 0, REXMIT_UNLIMITED, REXMIT_UNLIMITED }
