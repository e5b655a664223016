/* Wrong use of every kind: each call must say what is wrong, and nothing may crash. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rexmit.h"

#define EXPECT(status, call)                                                                   \
    do {                                                                                       \
        int got = (call);                                                                      \
        if (got != (status)) {                                                                 \
            fprintf(stderr, "%s: %d (%s)\n", #call, got, rexmit_status_text(got));             \
            return 1;                                                                          \
        }                                                                                      \
    } while (0)

int main(void) {
    rexmit_config *config = rexmit_config_new();
    rexmit_endpoint *endpoint = NULL;
    rexmit_address address, any;
    rexmit_event event;
    rexmit_message message;
    rexmit_statistics statistics;
    rexmit_delivery delivery = REXMIT_DELIVERY(0);
    rexmit_buffer buffer = {(const uint8_t *)"x", 1};
    uint64_t association;
    size_t length;
    char text[8], text_of_version[40];
    uint8_t datagram[8] = {0};

    /* NULL everywhere. */
    rexmit_config_free(NULL);
    rexmit_endpoint_free(NULL);
    rexmit_message_free(NULL);
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_config_set_port(NULL, 1));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_endpoint_new(NULL, NULL, &endpoint));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_endpoint_new(config, NULL, NULL));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_endpoint_process(NULL, 0));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_address_parse(NULL, &address));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_address_parse("127.0.0.1:1", NULL));
    if (rexmit_endpoint_poll_timeout(NULL) != UINT64_MAX || rexmit_endpoint_fd(NULL) != -1)
        return 1;

    snprintf(text_of_version, sizeof text_of_version, "%d.%d.%d", REXMIT_VERSION_MAJOR, REXMIT_VERSION_MINOR,
             REXMIT_VERSION_PATCH);
    if (strcmp(rexmit_version(), text_of_version) != 0)
        return 1;

    /* Values out of range. */
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_address_parse("no address", &address));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_config_set_profile(config, 4711));
    if (!strstr(rexmit_config_error(config), "4711"))
        return 1;
    for (int i = 0; i < 5; i++) {
        const double wrong[] = {0, 1, -1, 1e300, NAN};
        EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_config_set_deadline(config, 100, wrong[i]));
    }
    if (!strstr(rexmit_config_error(config), "probability"))
        return 1;
    EXPECT(REXMIT_OK, rexmit_config_set_deadline(config, 0, 0));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_config_set_recovery(NULL, "rto.min = '1s'"));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_config_set_recovery(config, NULL));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_config_set_recovery(config, "rto.min = '\xff'"));
    if (!strstr(rexmit_config_error(config), "UTF-8"))
        return 1;
    static char settings[REXMIT_MAX_SETTINGS_BYTES + 2];
    memset(settings, '\n', REXMIT_MAX_SETTINGS_BYTES);
    EXPECT(REXMIT_OK, rexmit_config_set_recovery(config, settings));
    settings[REXMIT_MAX_SETTINGS_BYTES] = '\n';
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_config_set_recovery(config, settings));
    if (!strstr(rexmit_config_error(config), "at most 16384"))
        return 1;
    settings[REXMIT_MAX_SETTINGS_BYTES] = 0;
    memcpy(settings, "a = ", 4);
    memset(settings + 4, '[', REXMIT_MAX_SETTINGS_BYTES - 4);
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_config_set_recovery(config, settings));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_config_set_oversized_messages(config, 4711));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_config_set_sack_delay(NULL, 1));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_config_set_copy_budget(NULL, 1, 1));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_config_set_ack_copies(config, 3, true, 1000));
    EXPECT(REXMIT_OK, rexmit_config_set_ack_copies(config, REXMIT_ACK_COPIES_ALWAYS, true, 99));
    EXPECT(REXMIT_CONFIG, rexmit_config_validate(config));
    EXPECT(REXMIT_OK, rexmit_config_set_ack_copies(config, REXMIT_ACK_COPIES_ALWAYS, true, 1000));
    EXPECT(REXMIT_OK, rexmit_config_set_max_receive_bytes(config, 100));
    EXPECT(REXMIT_CONFIG, rexmit_config_validate(config));
    EXPECT(REXMIT_OK, rexmit_config_set_max_receive_bytes(config, 64 * 1024));
    EXPECT(REXMIT_OK, rexmit_config_validate(config));
    EXPECT(REXMIT_OK, rexmit_config_set_path_mtu(config, 100));
    EXPECT(REXMIT_CONFIG, rexmit_config_validate(config));
    EXPECT(REXMIT_OK, rexmit_config_set_path_mtu(config, 9000));
    EXPECT(REXMIT_OK, rexmit_config_validate(config));
    EXPECT(REXMIT_OK, rexmit_config_set_path_mtu(config, 0));
    EXPECT(REXMIT_OK, rexmit_config_set_port(config, 0));
    EXPECT(REXMIT_CONFIG, rexmit_config_validate(config));
    EXPECT(REXMIT_CONFIG, rexmit_endpoint_new(config, NULL, &endpoint));
    EXPECT(REXMIT_OK, rexmit_config_set_port(config, 5000));
    EXPECT(REXMIT_OK, rexmit_endpoint_new(config, NULL, &endpoint));

    EXPECT(REXMIT_NOT_ESTABLISHED, rexmit_endpoint_process(endpoint, 0));
    EXPECT(REXMIT_OK, rexmit_address_parse("127.0.0.1:9", &address));
    EXPECT(REXMIT_TOO_LARGE, rexmit_address_format(&address, text, sizeof text));
    memset(&any, 0, sizeof any);
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_endpoint_bind(endpoint, &any));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_connect(endpoint, 0, &any, 1, 5000, &association));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_connect(endpoint, 0, NULL, 1, 5000, &association));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_connect(endpoint, 0, &address, 0, 5000, &association));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_connect(endpoint, 0, &address, 1, 0, &association));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_connect(endpoint, 0, &address, 1, 5000, NULL));
    const char *const nowhere[] = {"127.0.0.1:0", "0.0.0.0:9", "[::]:9", "224.0.0.1:9", "255.255.255.255:9", "[ff02::1]:9"};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        EXPECT(REXMIT_OK, rexmit_address_parse(nowhere[i], &any));
        EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_connect(endpoint, 0, &any, 1, 5000, &association));
        if (!strstr(rexmit_endpoint_error(endpoint), nowhere[i]))
            return 1;
    }
    /* A socket of one family does not reach the other. */
    EXPECT(REXMIT_OK, rexmit_address_parse("127.0.0.1:0", &any));
    EXPECT(REXMIT_OK, rexmit_endpoint_bind(endpoint, &any));
    EXPECT(REXMIT_OK, rexmit_address_parse("[::1]:9", &any));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_connect(endpoint, 0, &any, 1, 5000, &association));
    EXPECT(REXMIT_OK, rexmit_address_parse("[::ffff:127.0.0.1]:9", &any));
    EXPECT(REXMIT_OK, rexmit_connect(endpoint, 0, &any, 1, 5001, &association));
    rexmit_endpoint_free(endpoint);
    EXPECT(REXMIT_OK, rexmit_endpoint_new(config, NULL, &endpoint));

    /* Numbers that name nothing. */
    for (uint64_t number = 0; number < 3; number++) {
        uint64_t wrong = number == 2 ? UINT64_MAX : number;
        EXPECT(REXMIT_NO_ASSOCIATION, rexmit_send(endpoint, 0, wrong, &delivery, &buffer, 1, NULL));
        EXPECT(REXMIT_NOTHING, rexmit_receive(endpoint, 0, wrong, &message));
        EXPECT(REXMIT_NO_ASSOCIATION, rexmit_shutdown(endpoint, 0, wrong));
        EXPECT(REXMIT_NO_ASSOCIATION, rexmit_abort(endpoint, 0, wrong, NULL, 0));
        EXPECT(REXMIT_NO_ASSOCIATION, rexmit_set_primary(endpoint, 0, wrong, 0));
        EXPECT(REXMIT_NO_ASSOCIATION,
               rexmit_get_statistics(endpoint, wrong, &statistics, sizeof statistics));
    }

    /* Messages. */
    EXPECT(REXMIT_OK, rexmit_connect(endpoint, 0, &address, 1, 5000, &association));
    EXPECT(REXMIT_ALREADY, rexmit_connect(endpoint, 0, &address, 1, 5000, &association));
    rexmit_endpoint_free(endpoint);
    EXPECT(REXMIT_OK, rexmit_endpoint_new(config, NULL, &endpoint));
    EXPECT(REXMIT_OK, rexmit_connect(endpoint, 0, &address, 1, 5000, &association));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_send(endpoint, 0, association, NULL, &buffer, 1, NULL));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_send(endpoint, 0, association, &delivery, NULL, 1, NULL));
    EXPECT(REXMIT_EMPTY, rexmit_send(endpoint, 0, association, &delivery, NULL, 0, NULL));
    delivery.stream = 9999;
    EXPECT(REXMIT_NOT_FOUND, rexmit_send(endpoint, 0, association, &delivery, &buffer, 1, NULL));
    delivery.stream = 0;
    delivery.flags = 0x80;
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_send(endpoint, 0, association, &delivery, &buffer, 1, NULL));
    delivery.flags = 0;
    delivery.lifetime = delivery.retransmissions = 1;
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_send(endpoint, 0, association, &delivery, &buffer, 1, NULL));
    delivery.lifetime = delivery.retransmissions = REXMIT_UNLIMITED;
    rexmit_timely_delivery timely = {REXMIT_DELIVERY(0), 0, 0.999};
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_send_within(endpoint, 0, association, &timely, &buffer, 1, NULL));
    timely.within = 100;
    timely.probability = 1;
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_send_within(endpoint, 0, association, &timely, &buffer, 1, NULL));
    EXPECT(REXMIT_INVALID_ARGUMENT, rexmit_send_within(endpoint, 0, association, NULL, &buffer, 1, NULL));
    timely.probability = 0.999;
    EXPECT(REXMIT_NO_ASSOCIATION, rexmit_send_within(endpoint, 0, UINT64_MAX, &timely, &buffer, 1, NULL));
    buffer.length = SIZE_MAX;
    EXPECT(REXMIT_TOO_LARGE, rexmit_send_within(endpoint, 0, association, &timely, &buffer, 1, NULL));
    EXPECT(REXMIT_TOO_LARGE, rexmit_send(endpoint, 0, association, &delivery, &buffer, 1, NULL));
    buffer.length = 1;
    EXPECT(REXMIT_OK, rexmit_send(endpoint, 0, association, &delivery, &buffer, 1, NULL));

    /* A datagram that does not fit, and rubbish in. */
    EXPECT(REXMIT_TOO_LARGE, rexmit_endpoint_poll_transmit(endpoint, 0, &any, &address, datagram,
                                                          sizeof datagram, &length));
    EXPECT(REXMIT_NOTHING, rexmit_endpoint_poll_transmit(endpoint, 0, &any, &address, datagram,
                                                         sizeof datagram, &length));
    EXPECT(REXMIT_OK, rexmit_address_parse("127.0.0.1:9", &address));
    EXPECT(REXMIT_OK, rexmit_endpoint_handle_input(endpoint, 0, &address, &address, datagram,
                                                   sizeof datagram));
    EXPECT(REXMIT_INVALID_ARGUMENT,
           rexmit_endpoint_handle_input(endpoint, 0, &address, &address, NULL, 5));
    /* Time that goes back counts as if it stood still. */
    EXPECT(REXMIT_OK, rexmit_endpoint_handle_timeout(endpoint, 1000));
    EXPECT(REXMIT_OK, rexmit_endpoint_handle_timeout(endpoint, 1));

    /* The end, and what comes after it. */
    EXPECT(REXMIT_OK, rexmit_abort(endpoint, 1000, association, (const uint8_t *)"enough", 6));
    while (rexmit_endpoint_poll_event(endpoint, &event) == REXMIT_OK) {
        if (event.kind == REXMIT_EVENT_MESSAGE_FAILED && event.data.message.length != 1)
            return 1;
        if (event.kind == REXMIT_EVENT_CLOSED && event.data.closed.reason != REXMIT_CLOSED_ABORTED)
            return 1;
    }
    EXPECT(REXMIT_NO_ASSOCIATION, rexmit_send(endpoint, 0, association, &delivery, &buffer, 1, NULL));
    rexmit_endpoint_free(endpoint);
    rexmit_config_free(config);
    return 0;
}
