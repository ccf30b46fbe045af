#include <sys/socket.h>

#include <map>

#include <asio/post.hpp>

#include <dtrain/base/error.hpp>
#include <dtrain/net/connection_quota.hpp>
#include <dtrain/net/socket_address.hpp>

#include "connection.hpp"
#include "pending_handshake.hpp"
#include "sockets.hpp"

namespace dtrain::net {
namespace {

constexpr std::chrono::seconds kProofDeadline{10};
constexpr std::size_t kMostPending = 256;
// Accepted in one go before others of the loop get their turn.
constexpr int kAcceptedPerTurn = 64;
// Between tries when the process has no descriptor left.
constexpr std::chrono::milliseconds kPause{100};

// Lives as long as its handlers on the loop, which end once close() was called.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(Loop& loop, FileDescriptor listening, StreamKey key,
           std::function<void(std::shared_ptr<Channel>)> on_channel)
      : loop_(loop), listening_(std::move(listening)), key_(std::move(key)), on_channel_(std::move(on_channel)) {}

  void watch() {
    loop_.when_readable(listening_.get(), [self = shared_from_this()] { return self->accept_waiting(); });
  }

  // A listening socket that is shut down counts as readable, so the watch ends too.
  void close() {
    ::shutdown(listening_.get(), SHUT_RDWR);
    listening_ = FileDescriptor();
    on_channel_ = nullptr;
    const auto pending = std::exchange(pending_, {});
    for (const auto& [id, connection] : pending) connection->give_up();
  }

  Loop& loop() { return loop_; }

 private:
  bool accept_waiting() {
    for (int i = 0; i < kAcceptedPerTurn && listening_; ++i) {
      if (quota_.is_full(std::chrono::steady_clock::now())) return pause(kPause);
      FileDescriptor socket = accept_from(listening_.get());
      if (socket) {
        admit(std::move(socket));
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        return pause(kPause);
      } else if (errno == EAGAIN) {
        return true;
      }
    }
    return bool(listening_);
  }

  // Ends this watch and begins another later.
  bool pause(std::chrono::milliseconds time) {
    loop_.after(time, [self = shared_from_this()] {
      if (self->listening_) self->watch_again();
    });
    return false;
  }

  // A watch needs a descriptor, and the one that the pause gave back may be in use elsewhere.
  void watch_again() {
    try {
      watch();
    } catch (const Error&) {
      pause(kPause);
    }
  }

  void admit(FileDescriptor socket) {
    const std::string address = SocketAddress::peer_of(socket.get()).address();
    auto connection = std::make_shared<PendingHandshake>(loop_.state(), std::move(socket), key_);
    PendingHandshake* const id = connection.get();
    const auto decision = quota_.add(id, address, std::chrono::steady_clock::now());
    pending_[id] = connection;
    // The connection is this one's: were this one its, too, neither would end with a loop that stops before them.
    connection->start(
        kProofDeadline,
        [weak = weak_from_this(), id] {
          if (const auto self = weak.lock()) self->quota_.spoke(id, std::chrono::steady_clock::now());
        },
        [weak = weak_from_this(), id](Stream proven) {
          if (const auto self = weak.lock()) self->finish(id, std::move(proven));
        });
    if (const auto displaced = pending_.find(decision.displaced); displaced != pending_.end()) {
      const auto goes = displaced->second;  // giving up removes the entry
      goes->give_up();
    }
  }

  void finish(ConnectionQuota::Id id, Stream proven) {
    quota_.remove(id);
    pending_.erase(id);
    if (proven && on_channel_) on_channel_(make_channel(loop_.state(), std::move(proven)));
  }

  Loop& loop_;
  FileDescriptor listening_;
  const StreamKey key_;
  std::function<void(std::shared_ptr<Channel>)> on_channel_;
  ConnectionQuota quota_{{.most = kMostPending}};
  std::map<ConnectionQuota::Id, std::shared_ptr<PendingHandshake>> pending_;
};

}  // namespace

struct Listener::State {
  std::string address;
  std::uint16_t port = 0;
  std::weak_ptr<Acceptor> acceptor;
};

Listener::Listener(Loop& loop, const std::string& bind_address, std::string secret,
                   std::function<void(std::shared_ptr<Channel>)> on_channel, const ListenerOptions& options)
    : state_(std::make_shared<State>()) {
  if (secret.empty()) throw UsageError("the shared secret of a port is empty");
  FileDescriptor listening = listen_on(bind_address, options.port);
  state_->address = bind_address;
  state_->port = SocketAddress::own_of(listening.get()).port();
  auto acceptor = std::make_shared<Acceptor>(loop, std::move(listening), StreamKey{std::move(secret), options.purpose},
                                             std::move(on_channel));
  state_->acceptor = acceptor;
  acceptor->watch();
}

Listener::~Listener() {
  if (auto acceptor = state_->acceptor.lock()) {
    Loop& loop = acceptor->loop();
    if (!loop.state().ending) loop.post([acceptor] { acceptor->close(); });
  }
}

std::string Listener::address() const { return state_->address; }

std::uint16_t Listener::port() const { return state_->port; }

}  // namespace dtrain::net
