#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/net/stream.hpp>

namespace dtrain::net {
namespace {

void wait_or_throw(int socket, short event, StreamClock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - StreamClock::now()).count();
  if (left <= 0) throw RemoteError("the peer does not answer");
  pollfd entry{socket, event, 0};
  ::poll(&entry, 1, static_cast<int>(std::min<long long>(left, 60'000)));
}

void expect_whole(const Moved& moved) {
  if (moved.state == Moved::State::ended) throw RemoteError("the peer closed the connection");
  if (moved.state == Moved::State::broken) throw RemoteError("the connection broke: " + moved.error);
}

}  // namespace

void shake_hands(Stream& stream, StreamClock::time_point deadline) {
  for (;;) {
    const Stream::Handshake next = stream.shake_hands();
    if (next == Stream::Handshake::done) return;
    wait_or_throw(stream.socket(), next == Stream::Handshake::wants_read ? POLLIN : POLLOUT, deadline);
  }
}

void write_all(Stream& stream, std::string_view bytes, StreamClock::time_point deadline) {
  while (!bytes.empty() || stream.unsent() > 0) {
    const iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    const Moved moved = bytes.empty() ? stream.flush() : stream.write({&part, 1});
    expect_whole(moved);
    bytes.remove_prefix(moved.bytes);
    if (moved.state == Moved::State::blocked) wait_or_throw(stream.socket(), POLLOUT, deadline);
  }
}

std::string read_exactly(Stream& stream, std::size_t size, StreamClock::time_point deadline) {
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const iovec part{bytes.data() + done, size - done};
    const Moved moved = stream.read({&part, 1});
    expect_whole(moved);
    done += moved.bytes;
    if (moved.state == Moved::State::blocked && done < size) wait_or_throw(stream.socket(), POLLIN, deadline);
  }
  return bytes;
}

bool is_same_user(int unix_socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(unix_socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace dtrain::net
