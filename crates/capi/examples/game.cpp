// A game loop: a server sends 20 snapshots per second, unordered and good for 100 ms, to clients that send inputs, all in
// one process over loopback. The program owns the loop; the endpoints own nothing but their sockets.
//
//   game [CLIENTS] [SECONDS]
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "rexmit.hpp"

namespace {

constexpr std::uint64_t tick = 50'000'000;

struct Player {
    std::unique_ptr<rexmit::Endpoint> endpoint;
    std::uint64_t association = 0;
    bool connected = false;
    unsigned snapshots = 0;
};

} // namespace

int main(int count, char **words) try {
    const int clients = count > 1 ? std::atoi(words[1]) : 10;
    const double seconds = count > 2 ? std::atof(words[2]) : 2;

    rexmit::Config accepting;
    accepting.accept(true).generate_identity().trust_anyone();
    rexmit::Endpoint server(accepting, rexmit::Address("127.0.0.1:0"));
    const rexmit::Address address = server.local_address();

    std::vector<Player> players(clients);
    std::vector<pollfd> ready{{server.fd(), POLLIN, 0}};
    for (Player &player : players) {
        player.endpoint = std::make_unique<rexmit::Endpoint>(
            rexmit::Config().trust(accepting.fingerprint()), rexmit::Address("127.0.0.1:0"));
        player.association = player.endpoint->connect({address});
        ready.push_back({player.endpoint->fd(), POLLIN, 0});
    }

    std::map<std::uint64_t, unsigned> inputs; // by association of the server
    const std::uint64_t begin = rexmit_now(), end = begin + static_cast<std::uint64_t>(seconds * 1e9);
    for (std::uint64_t next = begin, now = begin; now < end; now = rexmit_now()) {
        poll(ready.data(), ready.size(), next > now ? static_cast<int>((next - now) / 1'000'000) + 1 : 0);
        server.process();
        while (const auto event = server.poll_event()) {
            if (event->kind == REXMIT_EVENT_CONNECTED)
                inputs[event->association] = 0;
            else if (event->kind == REXMIT_EVENT_CLOSED)
                inputs.erase(event->association);
            else if (event->kind == REXMIT_EVENT_READABLE)
                while (server.receive(event->association))
                    ++inputs[event->association];
        }
        for (Player &player : players) {
            player.endpoint->process();
            while (const auto event = player.endpoint->poll_event()) {
                player.connected |= event->kind == REXMIT_EVENT_CONNECTED;
                if (event->kind == REXMIT_EVENT_READABLE)
                    while (player.endpoint->receive(player.association))
                        ++player.snapshots;
            }
        }
        if (rexmit_now() < next)
            continue;
        next += tick;
        const std::string snapshot(200, 's');
        for (const auto &[association, seen] : inputs)
            server.send(association, snapshot, rexmit::Delivery(1).unordered().abandon_after(100));
        for (Player &player : players)
            if (player.connected)
                player.endpoint->send(player.association, "input");
    }

    unsigned snapshots = 0, heard = 0;
    for (const Player &player : players)
        snapshots += player.snapshots;
    for (const auto &[association, seen] : inputs)
        heard += seen;
    std::printf("%zu of %d clients, %u snapshots and %u inputs received\n", inputs.size(), clients, snapshots, heard);
    return inputs.size() == players.size() && snapshots > 0 && heard > 0 ? 0 : 1;
} catch (const rexmit::Error &error) {
    std::fprintf(stderr, "game: %s (%d)\n", error.what(), error.status());
    return 1;
}
