#include "waiting_port.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include <dtrain/net/addresses.hpp>

namespace dtrain::external {
namespace {

constexpr std::size_t kChunk = 64 << 10;
constexpr int kLookMs = 10;  // interval of attempts to reach the program while a caller waits
constexpr int kStallLookMs = 1000;
constexpr std::chrono::seconds kStalled{60};
constexpr std::chrono::hours kForMembers{1 << 16};  // a connection that the program has answered stays

void hurry(const FileDescriptor& socket) {
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// Within one machine a connection succeeds or is refused at once. None: refused.
FileDescriptor connect_here(const net::SocketAddress& place) {
  FileDescriptor made(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!made || ::connect(made.get(), place.get(), place.size()) != 0) return {};
  hurry(made);
  return made;
}

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

WaitingPort::WaitingPort(const std::string& address, std::uint16_t behind, std::size_t most)
    : behind_(address, behind),
      quota_({.most = most, .grace = kForMembers}),
      place_(address),
      thread_([this] { serve(); }) {}

WaitingPort::~WaitingPort() {
  place_.end();
  thread_.join();
}

void WaitingPort::serve() {
  bool knocked_in_vain = false;
  while (true) {
    std::vector<pollfd> waits = {{place_.ended(), POLLIN, 0}, {place_.listener(), POLLIN, 0}};
    const bool full = quota_.is_full(std::chrono::steady_clock::now());
    if (knocked_in_vain || full) waits[1].events = 0;
    bool holds = false;
    std::vector<Stream*> streams;
    for (Joint& joint : joints_) {
      for (Stream* stream : {&joint.there, &joint.back}) {
        if (stream->ended) continue;
        const bool has_bytes = !stream->held.empty();
        holds = holds || has_bytes;
        waits.push_back(
            {has_bytes ? stream->to->get() : stream->from->get(), static_cast<short>(has_bytes ? POLLOUT : POLLIN), 0});
        streams.push_back(stream);
      }
    }
    ::poll(waits.data(), waits.size(), knocked_in_vain ? kLookMs : holds ? kStallLookMs : -1);
    if (waits[0].revents != 0) return;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (waits[i + 2].revents != 0 && !move(*streams[i])) streams[i]->ended = true;
    }
    drop_ended();
    if (waits[1].revents != 0) called_ = true;
    if (!full && (knocked_in_vain || waits[1].revents != 0)) knocked_in_vain = !join_one();
  }
}

void WaitingPort::drop_ended() {
  const auto now = std::chrono::steady_clock::now();
  const auto stands = [&](const Stream& stream) { return !stream.held.empty() && stream.since < now - kStalled; };
  std::erase_if(joints_, [&](const Joint& joint) {
    if (joint.back.moved) quota_.spoke(&joint, now);
    const bool over = (joint.there.ended && joint.back.ended) || stands(joint.there) || stands(joint.back);
    if (over) quota_.remove(&joint);
    return over;
  });
}

// The caller stays in the listener's queue until the program's port is open.
bool WaitingPort::join_one() {
  FileDescriptor program = connect_here(behind_);
  if (!program) return false;
  FileDescriptor caller(::accept4(place_.listener(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!caller) return true;
  hurry(caller);
  const std::string from = net::peer_address(caller.get());
  Joint& joint = joints_.emplace_back(std::move(caller), std::move(program));
  const auto decision = quota_.add(&joint, from, std::chrono::steady_clock::now());
  std::erase_if(joints_,
                [&](const Joint& one) { return &one == decision.displaced || (!decision.admitted && &one == &joint); });
  return true;
}

bool WaitingPort::move(Stream& stream) {
  if (stream.held.empty()) {
    stream.held.resize(kChunk);
    const ssize_t got = ::recv(stream.from->get(), stream.held.data(), stream.held.size(), MSG_DONTWAIT);
    stream.held.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    if (got < 0) return would_wait();
    stream.since = std::chrono::steady_clock::now();
    stream.moved |= got > 0;
    if (got == 0) {
      ::shutdown(stream.to->get(), SHUT_WR);
      return false;
    }
  }
  const ssize_t sent = ::send(stream.to->get(), stream.held.data(), stream.held.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return would_wait();
  stream.since = std::chrono::steady_clock::now();
  stream.held.erase(0, static_cast<std::size_t>(sent));
  return true;
}

}  // namespace dtrain::external
