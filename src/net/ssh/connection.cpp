#include "connection.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <libssh/server.h>
#include <poll.h>
#include <unistd.h>

#include <new>
#include <utility>

namespace dtrain::net::ssh {

Connection::Connection(std::string name, FileDescriptor socket)
    : name_(std::move(name)), socket_(std::move(socket)), session_(ssh_new()) {
  if (!session_) throw std::bad_alloc();
  ssh_set_blocking(session_.get(), 0);
  ssh_set_counters(session_.get(), &traffic_, nullptr);
}

// Without ssh_disconnect(): after it, ssh_free() leaves the lent socket open.
Connection::~Connection() {
  if (event_) ssh_event_remove_session(event_.get(), session_.get());
}

int Connection::lend_socket() const { return ::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0); }

void Connection::never_block() const { ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK); }

void Connection::wait_for_bytes(std::string_view what, const Patience& patience) {
  const auto look = patience.next_look();
  if (look.count() <= 0) {
    throw RemoteError(fmt::format("{}: {}: no answer in time", name_, what),
                      "the host accepts connections but does not go on: look at its load and its sshd");
  }
  pollfd entry{socket_.get(), poll_events(), 0};
  ::poll(&entry, 1, static_cast<int>(look.count()));
}

void Connection::begin_events() {
  event_.reset(ssh_event_new());
  if (!event_ || ssh_event_add_session(event_.get(), get()) != SSH_OK) fail("cannot serve the connection");
}

void Connection::pump(const Patience& patience) {
  const auto look = patience.next_look();
  if (ssh_event_dopoll(event_.get(), static_cast<int>(look.count())) == SSH_ERROR) failed_ = true;
}

void Connection::pump_now() {
  if (ssh_event_dopoll(event_.get(), 0) == SSH_ERROR) failed_ = true;
}

short Connection::poll_events() const {
  const bool writes = (ssh_get_poll_flags(get()) & SSH_WRITE_PENDING) != 0;
  return static_cast<short>(POLLIN | (writes ? POLLOUT : 0));
}

// Twice: where an answer to the request before has come, the first call only takes note of it.
void Connection::ask_for_life_sign() {
  ssh_send_keepalive(get());
  ssh_send_keepalive(get());
}

void Connection::give_up(std::string_view what, std::string hint) {
  failed_ = true;
  throw RemoteError(fmt::format("{}: {}", name_, what), std::move(hint));
}

bool Connection::is_lost() const { return failed_ || ssh_is_connected(get()) == 0; }

std::string Connection::reason() const {
  const std::string text = ssh_get_error(get());
  return text.empty() ? "the connection was closed" : text;
}

void Connection::fail(std::string_view what, std::string hint) const {
  throw RemoteError(fmt::format("{}: {}: {}", name_, what, reason()), std::move(hint));
}

}  // namespace dtrain::net::ssh
