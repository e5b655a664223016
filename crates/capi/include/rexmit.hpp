// rexmit for C++17: what rexmit.h has, with owners and exceptions. See docs/c.md.
#ifndef REXMIT_HPP
#define REXMIT_HPP

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rexmit.h"

namespace rexmit {

/// A call that failed.
class Error : public std::runtime_error {
public:
    Error(rexmit_status status, const std::string &text) : std::runtime_error(text), status_(status) {}
    /// Why, as a number of `enum rexmit_status`.
    rexmit_status status() const noexcept { return status_; }

private:
    rexmit_status status_;
};

/// A UDP address.
class Address {
public:
    Address() = default;
    Address(const rexmit_address &raw) : raw_(raw) {}
    /// "192.0.2.1:9899" or "[2001:db8::1]:9899".
    explicit Address(const std::string &text) {
        if (rexmit_address_parse(text.c_str(), &raw_) != REXMIT_OK)
            throw Error(REXMIT_INVALID_ARGUMENT, text + " is no address as 192.0.2.1:9899");
    }
    std::string text() const {
        char buffer[REXMIT_ADDRESS_TEXT];
        const rexmit_status status = rexmit_address_format(&raw_, buffer, sizeof buffer);
        return status == REXMIT_OK ? buffer : "(no address)";
    }
    const rexmit_address &raw() const noexcept { return raw_; }

private:
    rexmit_address raw_{};
};

/// The SHA-256 of a certificate: what a peer is known by.
class Fingerprint {
public:
    Fingerprint(const rexmit_fingerprint &raw) : raw_(raw) {}
    /// 64 hexadecimal digits, with or without colons.
    explicit Fingerprint(const std::string &text) {
        if (rexmit_fingerprint_parse(text.c_str(), &raw_) != REXMIT_OK)
            throw Error(REXMIT_INVALID_ARGUMENT, text + " is no fingerprint: 64 hexadecimal digits");
    }
    std::string text() const {
        char buffer[REXMIT_FINGERPRINT_TEXT];
        rexmit_fingerprint_format(&raw_, buffer, sizeof buffer);
        return buffer;
    }
    const rexmit_fingerprint &raw() const noexcept { return raw_; }
    bool operator==(const Fingerprint &other) const noexcept {
        return std::memcmp(raw_.bytes, other.raw_.bytes, sizeof raw_.bytes) == 0;
    }
    bool operator!=(const Fingerprint &other) const noexcept { return !(*this == other); }

private:
    rexmit_fingerprint raw_{};
};

/// The configuration of an endpoint; the calls can be chained.
class Config {
public:
    Config() : raw_(rexmit_config_new()) {
        if (!raw_)
            throw std::bad_alloc();
    }
    Config &profile(rexmit_profile it) { return check(rexmit_config_set_profile(raw_.get(), it)); }
    /// Single settings of recovery as TOML, such as "rto.min = '200ms'", after the profile.
    Config &recovery(const std::string &settings) {
        return check(rexmit_config_set_recovery(raw_.get(), settings.c_str()));
    }
    Config &port(std::uint16_t it) { return check(rexmit_config_set_port(raw_.get(), it)); }
    Config &accept(bool it) { return check(rexmit_config_set_accept(raw_.get(), it)); }
    Config &max_associations(std::size_t it) {
        return check(rexmit_config_set_max_associations(raw_.get(), it));
    }
    Config &max_receive_bytes(std::size_t it) {
        return check(rexmit_config_set_max_receive_bytes(raw_.get(), it));
    }
    Config &outbound_streams(std::uint16_t it) {
        return check(rexmit_config_set_outbound_streams(raw_.get(), it));
    }
    Config &max_message_bytes(std::size_t it) {
        return check(rexmit_config_set_max_message_bytes(raw_.get(), it));
    }
    Config &dead_after(std::uint32_t milliseconds) {
        return check(rexmit_config_set_dead_after(raw_.get(), milliseconds));
    }
    Config &report_acknowledged(bool it) {
        return check(rexmit_config_set_report_acknowledged(raw_.get(), it));
    }
    /// The deadline of messages that have none of their own.
    Config &deadline(std::uint32_t milliseconds, double probability) {
        return check(rexmit_config_set_deadline(raw_.get(), milliseconds, probability));
    }
    /// The budget for redundant copies, in percent of new packets and bytes; 0 is no limit.
    Config &copy_budget(std::uint16_t packets, std::uint16_t bytes) {
        return check(rexmit_config_set_copy_budget(raw_.get(), packets, bytes));
    }
    Config &add_address(const Address &it) {
        return check(rexmit_config_add_address(raw_.get(), &it.raw()));
    }
    Config &scheduling(rexmit_scheduling it) {
        return check(rexmit_config_set_scheduling(raw_.get(), it));
    }
    /// Encryption: who endpoints are, and whom they trust. Without any of these calls they do not encrypt.
    Config &generate_identity() { return check(rexmit_config_generate_identity(raw_.get())); }
    Config &identity(const std::string &certificate_pem, const std::string &private_key_pem) {
        return check(rexmit_config_set_identity_pem(raw_.get(), certificate_pem.c_str(),
                                                    private_key_pem.c_str()));
    }
    Config &trust(const Fingerprint &it) { return check(rexmit_config_trust(raw_.get(), &it.raw())); }
    Config &trust_anyone() { return check(rexmit_config_trust_anyone(raw_.get())); }
    Fingerprint fingerprint() {
        rexmit_fingerprint own;
        check(rexmit_config_fingerprint(raw_.get(), &own));
        return own;
    }
    /// For the setters of rexmit.h that have no name here.
    rexmit_config *get() const noexcept { return raw_.get(); }
    Config &check(rexmit_status status) {
        if (status != REXMIT_OK)
            throw Error(status, rexmit_config_error(raw_.get()));
        return *this;
    }

private:
    struct Free {
        void operator()(rexmit_config *config) const noexcept { rexmit_config_free(config); }
    };
    std::unique_ptr<rexmit_config, Free> raw_;
};

/// A message from the peer.
class Message {
public:
    explicit Message(const rexmit_message &raw) : raw_(raw) {}
    Message(Message &&other) noexcept : raw_(std::exchange(other.raw_, rexmit_message{})) {}
    Message &operator=(Message &&other) noexcept {
        std::swap(raw_, other.raw_);
        return *this;
    }
    ~Message() { rexmit_message_free(&raw_); }
    const std::uint8_t *data() const noexcept { return raw_.data; }
    std::size_t size() const noexcept { return raw_.length; }
    std::string_view text() const noexcept {
        return {reinterpret_cast<const char *>(raw_.data), raw_.length};
    }
    std::uint16_t stream() const noexcept { return raw_.stream; }
    std::uint32_t ppid() const noexcept { return raw_.ppid; }

private:
    rexmit_message raw_;
};

/// What a message needs.
struct Delivery : rexmit_delivery {
    explicit Delivery(std::uint16_t stream = 0) : rexmit_delivery(REXMIT_DELIVERY(stream)) {}
    Delivery &unordered() { return flags |= REXMIT_UNORDERED, *this; }
    /// A lifetime, after which the message is abandoned.
    Delivery &abandon_after(std::uint32_t milliseconds) { return lifetime = milliseconds, *this; }
    Delivery &retransmit_at_most(std::uint16_t count) { return retransmissions = count, *this; }
    /// When the message should arrive, and with which probability. A late message is still delivered.
    Delivery &within(std::uint32_t milliseconds, double of_all) {
        return deadline_milliseconds = milliseconds, probability = of_all, *this;
    }
    std::uint32_t deadline_milliseconds = 0;
    double probability = 0;
};

/// An endpoint. Move-only; what it gives out must not outlive it.
class Endpoint {
public:
    /// In an event loop, with a UDP socket: wait until fd() is readable, then process().
    Endpoint(const Config &config, const Address &bind_to) : Endpoint(config, nullptr) {
        check(rexmit_endpoint_bind(get(), &bind_to.raw()));
    }
    /// Without a socket. `seed` has 32 bytes, or is nullptr: then the system gives them.
    Endpoint(const Config &config, const std::uint8_t *seed) {
        rexmit_endpoint *made = nullptr;
        const rexmit_status status = rexmit_endpoint_new(config.get(), seed, &made);
        raw_.reset(made);
        if (status != REXMIT_OK)
            throw Error(status, rexmit_config_error(config.get()));
    }

    Address local_address() const {
        rexmit_address address;
        check(rexmit_endpoint_local_address(get(), &address));
        return address;
    }
    int fd() const noexcept { return rexmit_endpoint_fd(get()); }
    void process(std::uint64_t now = rexmit_now()) { check(rexmit_endpoint_process(get(), now)); }

    /// The next event, if there is one. It is valid until the next call.
    std::optional<rexmit_event> poll_event() {
        rexmit_event event;
        if (found(rexmit_endpoint_poll_event(get(), &event)))
            return event;
        return std::nullopt;
    }
    std::uint64_t connect(const std::vector<Address> &peer, std::uint16_t port = 5000,
                          std::uint64_t now = rexmit_now()) {
        std::vector<rexmit_address> raw;
        for (const Address &address : peer)
            raw.push_back(address.raw());
        std::uint64_t association;
        check(rexmit_connect(get(), now, raw.data(), raw.size(), port, &association));
        return association;
    }
    /// Accepts a message; false if the send buffer is full: wait for REXMIT_EVENT_WRITABLE.
    bool send(std::uint64_t association, std::string_view payload, const Delivery &delivery = Delivery(),
              std::uint64_t now = rexmit_now()) {
        const rexmit_buffer buffer{reinterpret_cast<const std::uint8_t *>(payload.data()), payload.size()};
        const rexmit_timely_delivery timely{delivery, delivery.deadline_milliseconds, delivery.probability};
        const auto status = delivery.deadline_milliseconds == 0
            ? rexmit_send(get(), now, association, &delivery, &buffer, 1, nullptr)
            : rexmit_send_within(get(), now, association, &timely, &buffer, 1, nullptr);
        if (status != REXMIT_BUFFER_FULL)
            check(status);
        return status == REXMIT_OK;
    }
    std::optional<Message> receive(std::uint64_t association, std::uint64_t now = rexmit_now()) {
        rexmit_message message;
        if (found(rexmit_receive(get(), now, association, &message)))
            return Message(message);
        return std::nullopt;
    }
    void shutdown(std::uint64_t association, std::uint64_t now = rexmit_now()) {
        check(rexmit_shutdown(get(), now, association));
    }
    void abort(std::uint64_t association, std::string_view reason = {}, std::uint64_t now = rexmit_now()) {
        const auto *bytes = reinterpret_cast<const std::uint8_t *>(reason.data());
        check(rexmit_abort(get(), now, association, bytes, reason.size()));
    }
    void reset_streams(std::uint64_t association, const std::vector<std::uint16_t> &streams,
                       std::uint64_t now = rexmit_now()) {
        check(rexmit_reset_streams(get(), now, association, streams.data(), streams.size()));
    }
    void set_stream_thin(std::uint64_t association, std::uint16_t stream, rexmit_profile profile,
                         std::uint64_t now = rexmit_now()) {
        check(rexmit_set_stream_thin(get(), now, association, stream, profile));
    }
    void set_priority(std::uint64_t association, std::uint16_t stream, std::uint16_t priority,
                      std::uint64_t now = rexmit_now()) {
        check(rexmit_set_priority(get(), now, association, stream, priority));
    }
    void set_scheduling(std::uint64_t association, rexmit_scheduling scheduling,
                        std::uint64_t now = rexmit_now()) {
        check(rexmit_set_scheduling(get(), now, association, scheduling));
    }
    Fingerprint peer_fingerprint(std::uint64_t association) const {
        rexmit_fingerprint peer;
        check(rexmit_peer_fingerprint(get(), association, &peer));
        return peer;
    }
    rexmit_statistics statistics(std::uint64_t association) const {
        rexmit_statistics all;
        check(rexmit_get_statistics(get(), association, &all, sizeof all));
        return all;
    }
    /// For the calls of rexmit.h that have no name here.
    rexmit_endpoint *get() const noexcept { return raw_.get(); }

private:
    struct Free {
        void operator()(rexmit_endpoint *endpoint) const noexcept { rexmit_endpoint_free(endpoint); }
    };
    void check(rexmit_status status) const {
        if (status != REXMIT_OK)
            throw Error(status, rexmit_endpoint_error(get()));
    }
    bool found(rexmit_status status) const {
        if (status != REXMIT_NOTHING)
            check(status);
        return status == REXMIT_OK;
    }
    std::unique_ptr<rexmit_endpoint, Free> raw_;
};

} // namespace rexmit

#endif
