#include "dial.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>
#include <dtrain/base/open_files.hpp>

namespace dtrain::net::ssh {
namespace {

using namespace std::chrono_literals;
// A host that came back is still unreachable for its neighbours for about a second.
constexpr auto kPauseWhenUnreachable = 1s;

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

struct Resolution {
  int error = EAI_SYSTEM;
  std::vector<Address> addresses;
};

Resolution resolve_now(const DialPlace& place, int flags) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_flags = flags | AI_NUMERICSERV;
  wanted.ai_family = place.family;
  wanted.ai_socktype = SOCK_STREAM;
  Resolution result;
  result.error = ::getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &wanted, &found);
  if (result.error != 0) return result;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    Address& address = result.addresses.emplace_back();
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
  }
  ::freeaddrinfo(found);
  return result;
}

// getaddrinfo(3) has no deadline and cannot be interrupted: it runs in a thread that may outlive the wait for it.
class Resolver {
 public:
  explicit Resolver(const DialPlace& place) : shared_(std::make_shared<Shared>()) {
    std::thread([shared = shared_, place] {
      Resolution result = resolve_now(place, AI_ADDRCONFIG);
      const MutexLock lock(shared->mutex);
      shared->result = std::move(result);
      shared->done = true;
      shared->changed.notify_all();
    }).detach();
  }

  // An error of EAI_AGAIN when it takes too long.
  Resolution wait(const Patience& patience) {
    const MutexLock lock(shared_->mutex);
    while (!shared_->done) {
      const auto look = patience.next_look();
      if (look.count() <= 0) return {EAI_AGAIN, {}};
      shared_->changed.wait_for(shared_->mutex, look);
    }
    return shared_->result;
  }

 private:
  struct Shared {
    Mutex mutex;
    CondVar changed;
    bool done DTRAIN_GUARDED_BY(mutex) = false;
    Resolution result DTRAIN_GUARDED_BY(mutex);
  };
  std::shared_ptr<Shared> shared_;
};

std::vector<Address> resolve(const DialPlace& place, const Patience& patience) {
  Resolution result = resolve_now(place, AI_NUMERICHOST);
  if (result.error != 0) result = Resolver(place).wait(patience);
  if (result.error == 0) return result.addresses;
  throw RemoteError(
      fmt::format("{}: cannot find the address of '{}': {}", place.name, place.host, ::gai_strerror(result.error)),
      fmt::format("check the name with: getent hosts {}", place.host));
}

void set_option(int socket, int level, int option, int value) {
  ::setsockopt(socket, level, option, &value, sizeof value);
}

// libssh has no sign of life of its own: without these a silent partition would never end.
void keep_alive(int socket, std::chrono::milliseconds silence) {
  constexpr int kProbes = 3;
  const int seconds = static_cast<int>(std::chrono::ceil<std::chrono::seconds>(silence).count());
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, seconds / 2));
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / (2 * kProbes)));
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(silence.count()));
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

// 0 or the error; ETIMEDOUT: the patience is over.
int connect_to(int socket, const Address& address, const Patience& patience) {
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd entry{socket, POLLOUT, 0};
  do {
    const auto look = patience.next_look();
    if (look.count() <= 0) return ETIMEDOUT;
    ::poll(&entry, 1, static_cast<int>(look.count()));
  } while (entry.revents == 0);
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

struct Attempt {
  FileDescriptor socket;
  int error = 0;
};

Attempt attempt(const Address& address, std::chrono::milliseconds silence, const Patience& patience) {
  Attempt result;
  result.socket = FileDescriptor(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!result.socket) return {{}, errno};
  keep_alive(result.socket.get(), silence);
  result.error = connect_to(result.socket.get(), address, patience);
  if (result.error == EHOSTUNREACH && !patience.is_over()) {
    patience.sleep(kPauseWhenUnreachable);
    result.error = connect_to(result.socket.get(), address, patience);
  }
  return result;
}

std::string advice(int error, const std::string& host, int port) {
  if (std::string lack = hint_without_descriptors(error); !lack.empty()) return lack;
  if (error == ECONNREFUSED) return fmt::format("is sshd running there, on port {}?", port);
  return fmt::format("is the host up, and its port {} open to this machine? Try: ping {}", port, host);
}

}  // namespace

FileDescriptor dial(const DialPlace& place, std::chrono::milliseconds silence, const Patience& patience) {
  const std::vector<Address> addresses = resolve(place, patience);
  int error = 0;
  for (std::size_t i = 0; i < addresses.size(); ++i) {  // each gets its share of the time
    const auto share = (patience.until - Clock::now()) / static_cast<long>(addresses.size() - i);
    Attempt tried = attempt(addresses[i], silence, {Clock::now() + share, patience.stop});
    if (tried.error == 0) return std::move(tried.socket);
    error = tried.error;
  }
  throw RemoteError(fmt::format("{}: cannot connect to port {}: {}", place.name, place.port, std::strerror(error)),
                    advice(error, place.host, place.port));
}

}  // namespace dtrain::net::ssh
