/* A server without encryption: sends each message back, until its input ends. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "rexmit.h"

int main(void) {
    rexmit_config *config = rexmit_config_new();
    rexmit_endpoint *endpoint;
    rexmit_address address;
    char text[64];
    rexmit_address_parse("127.0.0.1:0", &address);
    rexmit_config_set_accept(config, true);
    if (rexmit_endpoint_new(config, NULL, &endpoint) != REXMIT_OK || rexmit_endpoint_bind(endpoint, &address) != REXMIT_OK)
        return 1;
    rexmit_endpoint_local_address(endpoint, &address);
    rexmit_address_format(&address, text, sizeof text);
    printf("%s\n", text);
    fflush(stdout);
    for (;;) {
        struct pollfd ready[] = {{rexmit_endpoint_fd(endpoint), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        rexmit_event event;
        rexmit_message message;
        poll(ready, 2, -1);
        if (ready[1].revents)
            break;
        rexmit_endpoint_process(endpoint, rexmit_now());
        while (rexmit_endpoint_poll_event(endpoint, &event) == REXMIT_OK) {
            uint64_t association = event.association;
            while (event.kind == REXMIT_EVENT_READABLE &&
                   rexmit_receive(endpoint, rexmit_now(), association, &message) == REXMIT_OK) {
                rexmit_delivery delivery = REXMIT_DELIVERY(message.stream);
                rexmit_buffer buffer = {message.data, message.length};
                rexmit_send(endpoint, rexmit_now(), association, &delivery, &buffer, 1, NULL);
                rexmit_message_free(&message);
            }
        }
    }
    rexmit_endpoint_free(endpoint);
    rexmit_config_free(config);
    return 0;
}
