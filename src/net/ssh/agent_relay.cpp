#include "agent_relay.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/open_files.hpp>

#include "sftp_packet.hpp"

namespace dtrain::net::ssh {
namespace {

constexpr std::uint8_t kAskIdentities = 11, kIdentities = 12;
constexpr std::size_t kLengthSize = 4;
constexpr std::size_t kLargestMessage = 256 << 10;  // as in OpenSSH

struct HeldKey {
  std::string_view key, comment;
};

// The places of the keys in `order`; all others come after them.
std::size_t place_of(const HeldKey& held, const std::vector<std::string>& order) {
  return static_cast<std::size_t>(std::ranges::find(order, held.key) - order.begin());
}

std::vector<HeldKey> keys_in(std::string_view identities) {
  Unpacker fields(identities);
  fields.byte();
  std::vector<HeldKey> keys;
  for (std::uint32_t left = fields.u32(); left > 0; --left) {
    const std::string_view key = fields.text(), comment = fields.text();
    keys.push_back({key, comment});
  }
  return keys;
}

}  // namespace

std::string in_order(std::string_view identities, const AgentOrder& order) {
  std::vector<HeldKey> keys = keys_in(identities);
  std::ranges::stable_sort(keys, {}, [&](const HeldKey& one) { return place_of(one, order.first); });
  if (order.no_others) {
    std::erase_if(keys, [&](const HeldKey& one) { return place_of(one, order.first) == order.first.size(); });
  }
  Packer answer;
  answer.byte(kIdentities).u32(static_cast<std::uint32_t>(keys.size()));
  for (const HeldKey& one : keys) answer.text(one.key).text(one.comment);
  return answer.bytes();
}

FileDescriptor connect_to_agent(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return {};
  std::memcpy(address.sun_path, path.data(), path.size());
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return socket;
}

bool agent_holds(const std::string& path, const std::string& key, const Patience& patience) {
  FileDescriptor agent = connect_to_agent(path);
  if (!agent) return false;
  AgentRelay relay(std::move(agent), {.first = {key}, .no_others = true}, patience);
  const FileDescriptor socket = relay.take_socket();
  const std::string request = Packer().text(Packer().byte(kAskIdentities).bytes()).bytes();
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    return false;
  }
  const auto next = [&](std::size_t size) {
    std::string bytes(size, '\0');
    const ssize_t got = ::recv(socket.get(), bytes.data(), size, MSG_WAITALL);
    return got == static_cast<ssize_t>(size) ? bytes : std::string();
  };
  const std::string head = next(kLengthSize + 1);
  if (head.empty() || static_cast<std::uint8_t>(head.back()) != kIdentities) return false;
  const std::string count = next(sizeof(std::uint32_t));  // of keys: this one, or none
  return !count.empty() && Unpacker(count).u32() > 0;
}

AgentRelay::AgentRelay(FileDescriptor agent, AgentOrder order, Patience patience)
    : agent_(std::move(agent)), order_(std::move(order)), patience_(std::move(patience)) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(fmt::format("cannot make a pair of sockets: {}", std::strerror(errno)),
                hint_without_descriptors(errno));
  }
  near_end_ = FileDescriptor(ends[0]);
  far_end_ = FileDescriptor(ends[1]);
  thread_ = std::jthread([this](const std::stop_token& done) { serve(done); });
}

// Shut down, the sockets wake the thread at once.
AgentRelay::~AgentRelay() {
  thread_.request_stop();
  ::shutdown(far_end_.get(), SHUT_RDWR);
  ::shutdown(agent_.get(), SHUT_RDWR);
  thread_.join();
}

void AgentRelay::serve(const std::stop_token& done) const {
  while (const auto request = take(far_end_.get(), done)) {
    if (!give(agent_.get(), *request, done)) break;
    auto answer = take(agent_.get(), done);
    if (!answer || !give(far_end_.get(), ordered(std::move(*answer)), done)) break;
  }
  ::shutdown(far_end_.get(), SHUT_RDWR);
}

// Other answers, and damaged lists, go to libssh unchanged.
std::string AgentRelay::ordered(std::string answer) const {
  if (static_cast<std::uint8_t>(answer.front()) != kIdentities) return answer;
  try {
    return in_order(answer, order_);
  } catch (const RemoteError&) {
    return answer;
  }
}

bool AgentRelay::wait_for(int socket, short events, const std::stop_token& done) const {
  for (;;) {
    if (done.stop_requested() || patience_.stop.stop_requested() || patience_.is_over()) return false;
    pollfd entry{socket, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(kLook.count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

std::optional<std::string> AgentRelay::take(int socket, const std::stop_token& done) const {
  std::string bytes;
  for (std::size_t wanted = kLengthSize; bytes.size() < wanted;) {
    if (!wait_for(socket, POLLIN, done)) return std::nullopt;
    char piece[4096];
    const ssize_t size = ::recv(socket, piece, std::min(sizeof piece, wanted - bytes.size()), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size <= 0) return std::nullopt;
    bytes.append(piece, static_cast<std::size_t>(size));
    if (bytes.size() != kLengthSize) continue;
    const std::size_t length = Unpacker(bytes).u32();
    if (length == 0 || length > kLargestMessage) return std::nullopt;
    wanted += length;
  }
  return bytes.substr(kLengthSize);
}

bool AgentRelay::give(int socket, std::string_view message, const std::stop_token& done) const {
  const std::string framed = Packer().text(message).bytes();
  for (std::string_view left = framed; !left.empty();) {
    if (!wait_for(socket, POLLOUT, done)) return false;
    const ssize_t size = ::send(socket, left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size < 0) return false;
    left.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace dtrain::net::ssh
