// Stands in for libnccl.so.2 where there is no GPU: its C interface, as far as src/comm/nccl uses it, on memory of the
// host, between threads or processes of one machine, over sockets in the abstract namespace.
//
// What it shows: that the ranks meet, that sends match receptions in the order in which both sides ask for them, that
// nothing counts on work that a stream has not done, and that whoever is alone ends by abort and not by an error; a
// rank that is gone only falls silent here, which is the worst that NCCL does. What it does not show: GPUs, CUDA
// streams and their order, NCCL's own limits and errors, and how fast anything is.
#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dtrain/base/bfloat16.hpp>

#include "comm/nccl/api.hpp"
#include "host_stream.hpp"

namespace dtrain::comm::nccl {
namespace {

constexpr int kVersion = 22800, kPollMilliseconds = 5;

struct Move {
  bool sends = false;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  int peer = -1;
};

sockaddr_un address_of(const std::string& id, int rank, socklen_t& size) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "dtrain-nccl-" + id + "-" + std::to_string(rank);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

}  // namespace

// One rank of a communicator.
class Opaque {
 public:
  Opaque(int ranks, int rank, std::string id)
      : rank_(rank), id_(std::move(id)), sockets_(static_cast<std::size_t>(ranks), -1) {
    background_ = std::thread([this] { meet(); });
  }
  // What streams still hold of it ends first.
  ~Opaque() {
    aborted_ = true;
    background_.join();
    while (on_streams_ > 0) std::this_thread::yield();
    for (const int socket : sockets_) {
      if (socket >= 0) ::close(socket);
    }
  }

  Result state() const { return state_; }
  bool has_peer(int peer) const { return peer >= 0 && peer < static_cast<int>(sockets_.size()); }

  void start(std::vector<Move> moves, testing::HostStream* stream) {
    start_work([this, moves = std::move(moves)]() mutable { return run(std::move(moves)); }, stream);
  }

  // Adds from the last rank to the first: an order that is nobody's tree.
  template <typename T>
  void start_sum(const T* from, T* to, std::size_t count, float (*widen)(T), T (*narrow)(float),
                 testing::HostStream* stream) {
    start_work(
        [=, this] {
          std::vector<std::vector<T>> all(sockets_.size(), std::vector<T>(from, from + count));
          std::vector<Move> moves;
          for (int peer = 0; has_peer(peer); ++peer) {
            auto& theirs = all[static_cast<std::size_t>(peer)];
            auto* const mine = reinterpret_cast<std::byte*>(const_cast<T*>(from));
            moves.push_back({true, mine, count * sizeof(T), peer});
            moves.push_back({false, reinterpret_cast<std::byte*>(theirs.data()), count * sizeof(T), peer});
          }
          if (!run(std::move(moves))) return false;
          for (std::size_t i = 0; i < count; ++i) {
            float sum = 0;
            for (std::size_t peer = all.size(); peer-- > 0;) sum += widen(all[peer][i]);
            to[i] = narrow(sum);
          }
          return true;
        },
        stream);
  }

 private:
  void meet() {
    const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = 0;
    sockaddr_un address = address_of(id_, rank_, size);
    if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener, 64) != 0) std::abort();
    for (int peer = 0; peer < rank_ && !aborted_; ++peer) call(peer);
    for (int peer = rank_ + 1; has_peer(peer) && !aborted_; ++peer) answer(listener);
    ::close(listener);
    for (const int socket : sockets_) {
      if (socket >= 0) ::fcntl(socket, F_SETFL, O_NONBLOCK);
    }
    if (!aborted_) state_ = Result::success;
  }

  void call(int peer) {
    socklen_t size = 0;
    sockaddr_un address = address_of(id_, peer, size);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    while (!aborted_ && ::connect(socket, reinterpret_cast<sockaddr*>(&address), size) != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (::send(socket, &rank_, sizeof rank_, MSG_NOSIGNAL) != sizeof rank_ && !aborted_) std::abort();
    sockets_[static_cast<std::size_t>(peer)] = socket;
  }

  void answer(int listener) {
    pollfd waiting{listener, POLLIN, 0};
    while (::poll(&waiting, 1, kPollMilliseconds) <= 0) {
      if (aborted_) return;
    }
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    int peer = -1;
    if (::recv(socket, &peer, sizeof peer, MSG_WAITALL) != sizeof peer || !has_peer(peer)) std::abort();
    sockets_[static_cast<std::size_t>(peer)] = socket;
  }

  // Without a stream a thread does it, and the communicator is in progress until it has.
  void start_work(std::function<bool()> work, testing::HostStream* stream) {
    if (stream) {
      ++on_streams_;
      return stream->enqueue([this, work = std::move(work)] {
        work();
        --on_streams_;
      });
    }
    background_.join();
    state_ = Result::in_progress;
    background_ = std::thread([this, work = std::move(work)] {
      if (work()) state_ = Result::success;
    });
  }

  // All moves of a group at once, those with one peer in order. False: aborted.
  bool run(std::vector<Move> moves) {
    std::map<std::pair<int, bool>, std::deque<Move>> queues;
    for (const Move& move : moves) queues[{move.peer, move.sends}].push_back(move);
    move_to_itself(queues);
    while (!aborted_) {
      bool rests = false;
      std::vector<pollfd> waiting;
      for (auto& [key, queue] : queues) {
        while (!queue.empty() && advance(queue.front())) queue.pop_front();
        if (queue.empty()) continue;
        rests = true;
        const auto events = static_cast<short>(key.second ? POLLOUT : POLLIN);
        waiting.push_back({sockets_[static_cast<std::size_t>(key.first)], events, 0});
      }
      if (!rests) return true;
      ::poll(waiting.data(), waiting.size(), kPollMilliseconds);
    }
    return false;
  }

  void move_to_itself(std::map<std::pair<int, bool>, std::deque<Move>>& queues) const {
    auto& sends = queues[{rank_, true}];
    auto& receptions = queues[{rank_, false}];
    while (!sends.empty() && !receptions.empty()) {
      std::memcpy(receptions.front().memory, sends.front().memory, sends.front().bytes);
      sends.pop_front();
      receptions.pop_front();
    }
    queues.erase({rank_, true});
    queues.erase({rank_, false});
  }

  // Goes on as far as it can; true: it is done.
  bool advance(Move& move) const {
    const int socket = sockets_[static_cast<std::size_t>(move.peer)];
    while (move.bytes > 0) {
      const ssize_t done = move.sends ? ::send(socket, move.memory, move.bytes, MSG_NOSIGNAL)
                                      : ::recv(socket, move.memory, move.bytes, 0);
      if (done <= 0) return false;
      move.memory += done;
      move.bytes -= static_cast<std::size_t>(done);
    }
    return true;
  }

  const int rank_;
  const std::string id_;
  std::vector<int> sockets_;
  std::atomic<bool> aborted_{false};
  std::atomic<int> on_streams_{0};
  std::atomic<Result> state_{Result::in_progress};
  std::thread background_;
};

namespace {

// The calls of a thread between group_start and group_end.
struct Group {
  int depth = 0;
  Handle handle = nullptr;
  testing::HostStream* stream = nullptr;
  std::vector<Move> moves;
};
thread_local Group group;

Result add(Move move, DataType type, Handle handle, void* stream) {
  if (group.depth == 0 || !handle->has_peer(move.peer) || (group.handle && group.handle != handle)) {
    return Result::invalid_usage;
  }
  if (handle->state() != Result::success) return Result::invalid_usage;
  move.bytes *= type == DataType::float32 ? 4 : 2;
  group.handle = handle;
  group.stream = static_cast<testing::HostStream*>(stream);
  group.moves.push_back(move);
  return Result::success;
}

}  // namespace

extern "C" {

Result ncclGetVersion(int* version) {
  *version = kVersion;
  return Result::success;
}

Result ncclGetUniqueId(UniqueId* id) {
  unsigned char random[16];
  if (::getrandom(random, sizeof random, 0) != sizeof random) return Result::system_error;
  std::memset(id->bytes, 0, sizeof id->bytes);
  for (std::size_t i = 0; i < sizeof random; ++i) {
    id->bytes[2 * i] = "0123456789abcdef"[random[i] >> 4];
    id->bytes[2 * i + 1] = "0123456789abcdef"[random[i] & 15];
  }
  return Result::success;
}

Result ncclCommInitRankConfig(Handle* handle, int ranks, UniqueId id, int rank, Config* config) {
  if (config->magic != 0xcafebeef || config->blocking != 0) return Result::invalid_argument;
  if (rank < 0 || rank >= ranks) return Result::invalid_argument;
  *handle = new Opaque(ranks, rank, id.bytes);
  return Result::in_progress;
}

Result ncclCommGetAsyncError(Handle handle, Result* error) {
  *error = handle->state();
  return Result::success;
}

Result ncclGroupStart() {
  ++group.depth;
  return Result::success;
}

Result ncclGroupEnd() {
  if (group.depth == 0) return Result::invalid_usage;
  if (--group.depth > 0) return Result::success;
  const Group whole = std::exchange(group, {});
  if (!whole.handle) return Result::success;
  whole.handle->start(whole.moves, whole.stream);
  return whole.handle->state();
}

Result ncclSend(const void* from, std::size_t count, DataType type, int peer, Handle handle, void* stream) {
  auto* const memory = static_cast<std::byte*>(const_cast<void*>(from));
  return add({true, memory, count, peer}, type, handle, stream);
}

Result ncclRecv(void* to, std::size_t count, DataType type, int peer, Handle handle, void* stream) {
  return add({false, static_cast<std::byte*>(to), count, peer}, type, handle, stream);
}

Result ncclAllReduce(const void* from, void* to, std::size_t count, DataType type, Operation operation, Handle handle,
                     void* stream) {
  if (handle->state() != Result::success || operation != Operation::sum) return Result::invalid_usage;
  auto* const queue = static_cast<testing::HostStream*>(stream);
  if (type == DataType::float32) {
    const auto same = [](float value) { return value; };
    handle->start_sum<float>(static_cast<const float*>(from), static_cast<float*>(to), count, same, same, queue);
  } else {
    handle->start_sum<bfloat16_bits>(static_cast<const bfloat16_bits*>(from), static_cast<bfloat16_bits*>(to), count,
                                     from_bfloat16, to_bfloat16, queue);
  }
  return handle->state();
}

Result ncclCommAbort(Handle handle) {
  delete handle;
  return Result::success;
}

const char* ncclGetErrorString(Result result) {
  return result == Result::success ? "no error" : result == Result::invalid_usage ? "invalid usage" : "an error";
}

}  // extern "C"

}  // namespace dtrain::comm::nccl
