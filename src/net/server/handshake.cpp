#include <dtrain/net/handshake.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <dtrain/base/error.hpp>

#include "handshake_steps.hpp"

namespace dtrain::net {
namespace {

using Clock = std::chrono::steady_clock;

// A socket in either mode: MSG_DONTWAIT and poll() do the waiting, so a blocking one cannot hold us past the deadline.
class DeadlinedSocket {
 public:
  DeadlinedSocket(int socket, Clock::time_point deadline) : socket_(socket), deadline_(deadline) {}

  void send_all(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else {
        wait_or_throw(POLLOUT);
      }
    }
  }

  std::string receive_exactly(std::size_t size) {
    std::string bytes(size, '\0');
    for (std::size_t done = 0; done < size;) {
      const ssize_t got = ::recv(socket_, bytes.data() + done, size - done, MSG_DONTWAIT);
      if (got == 0) throw RemoteError("the peer closed the connection before it proved the job's token");
      if (got > 0) {
        done += static_cast<std::size_t>(got);
      } else {
        wait_or_throw(POLLIN);
      }
    }
    return bytes;
  }

 private:
  void wait_or_throw(short event) {
    if (errno == EINTR) return;
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      throw RemoteError(fmt::format("the connection broke during the handshake: {}", std::strerror(errno)));
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    if (left <= 0) throw RemoteError("the peer did not prove the job's token in time");
    pollfd entry{socket_, event, 0};
    ::poll(&entry, 1, static_cast<int>(std::min<long long>(left, 60'000)));
  }

  int socket_;
  Clock::time_point deadline_;
};

}  // namespace

std::string prove_and_verify(int socket, Role role, std::string_view secret, std::string_view hello,
                             std::chrono::milliseconds deadline) {
  DeadlinedSocket peer(socket, Clock::now() + deadline);
  Handshake handshake(role, secret, hello);
  peer.send_all(handshake.take_output());
  while (handshake.wanted() > 0) {
    handshake.receive(peer.receive_exactly(handshake.wanted()));
    peer.send_all(handshake.take_output());
  }
  return handshake.peer_hello();
}

}  // namespace dtrain::net
