#include "channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <new>

#include <dtrain/net/addresses.hpp>

namespace dtrain::net::ssh {
namespace {

constexpr std::size_t kPiece = 32 << 10;

Channel& self(void* data) { return *static_cast<Channel*>(data); }

}  // namespace

Channel::Channel(Connection& connection) : connection_(connection), channel_(ssh_channel_new(connection.get())) {
  if (!channel_) throw std::bad_alloc();
  callbacks_.userdata = this;
  callbacks_.channel_data_function = [](ssh_session, ssh_channel, void* bytes, std::uint32_t size, int is_error,
                                        void* me) {
    (is_error != 0 ? self(me).error_ : self(me).output_).append(static_cast<const char*>(bytes), size);
    return static_cast<int>(size);
  };
  callbacks_.channel_eof_function = [](ssh_session, ssh_channel, void* me) { self(me).ended_ = true; };
  callbacks_.channel_close_function = [](ssh_session, ssh_channel, void* me) { self(me).closed_ = true; };
  callbacks_.channel_exit_status_function = [](ssh_session, ssh_channel, int code, void* me) {
    self(me).exit_code_ = code;
  };
  callbacks_.channel_exit_signal_function = [](ssh_session, ssh_channel, const char* name, int, const char*,
                                               const char*, void* me) { self(me).exit_signal_ = name; };
  ssh_callbacks_init(&callbacks_);
  ssh_add_channel_callbacks(channel_.get(), &callbacks_);
}

Channel::Channel(Connection& connection, const Patience& patience) : Channel(connection) {
  finish(
      "opening a channel", patience, [](ssh_channel channel, const char*) { return ssh_channel_open_session(channel); },
      nullptr);
}

Channel::Channel(Connection& connection, const std::string& host, int port, const Patience& patience)
    : Channel(connection) {
  const std::string what = fmt::format("reaching {}:{} from there", in_brackets(host), port);
  const int opened = connection.finish(what, SSH_AGAIN, patience, [&] {
    return ssh_channel_open_forward(channel_.get(), host.c_str(), port, "127.0.0.1", 0);
  });
  if (opened != SSH_OK) {
    connection.fail(what, "the next hop must be up, and sshd there must allow AllowTcpForwarding");
  }
}

void Channel::exec(const std::string& line, const Patience& patience) {
  finish("starting a command", patience, ssh_channel_request_exec, line.c_str());
}

void Channel::subsystem(const std::string& name, const Patience& patience) {
  finish(fmt::format("starting {}", name), patience, ssh_channel_request_subsystem, name.c_str());
}

void Channel::finish(std::string_view what, const Patience& patience, int (*ask)(ssh_channel, const char*),
                     const char* text) {
  const int result = connection_.finish(what, SSH_AGAIN, patience, [&] { return ask(channel_.get(), text); });
  if (result == SSH_OK) return;
  std::string hint = connection_.is_lost() ? "" : "its sshd_config may forbid it, or too many sessions are open there";
  connection_.fail(what, std::move(hint));
}

bool Channel::send(std::string_view& bytes) {
  while (!bytes.empty() && !closed_ && (ssh_get_poll_flags(connection_.get()) & SSH_WRITE_PENDING) == 0) {
    const std::size_t piece = std::min({bytes.size(), kPiece, std::size_t{ssh_channel_window_size(channel_.get())}});
    if (piece == 0) return true;
    const int sent = ssh_channel_write(channel_.get(), bytes.data(), static_cast<std::uint32_t>(piece));
    if (sent < 0) return false;
    if (sent == 0) return true;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return !closed_;
}

void Channel::send_end() { ssh_channel_send_eof(channel_.get()); }

void Channel::send_signal(const char* name) { ssh_channel_request_send_signal(channel_.get(), name); }

}  // namespace dtrain::net::ssh
