#include "mesh.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <iterator>
#include <system_error>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>

namespace dtrain::comm::tcp {
namespace {

constexpr std::chrono::milliseconds kLook(20);                           // for a cancellation
constexpr std::chrono::milliseconds kFirstPause(5), kLongestPause(200);  // between calls

// One rank's call to another, in a thread of its own.
class Call {
 public:
  Call(const Caller& me, const PeerAddress& to, const Reception& own, Clock::time_point deadline,
       std::function<bool()> cancelled)
      : me_(me), to_(to), own_(own), deadline_(deadline), cancelled_(std::move(cancelled)), by_tcp_(me.number > 0) {}

  int peer() const { return me_.called; }
  bool is_by_tcp() const { return bool(stream_) && !is_near_; }
  const std::string& problem() const { return problem_; }
  bool is_over() const { return over_; }  // the peer says that the generation is
  net::Stream take_stream() {
    const MutexLock lock(mutex_);
    return std::move(stream_);
  }

  void run() {
    for (auto pause = kFirstPause; go_on(); pause = std::min(2 * pause, kLongestPause)) {
      if (try_once()) return;
      hold({});
      const auto until = std::min(Clock::now() + pause, deadline_);
      while (go_on() && Clock::now() < until) std::this_thread::sleep_for(std::min(pause, kLook));
    }
  }

  // From any thread: what waits for the peer's proof ends.
  void interrupt() {
    const MutexLock lock(mutex_);
    if (stream_) ::shutdown(stream_.socket(), SHUT_RDWR);
  }

 private:
  bool go_on() const { return !over_ && !cancelled_() && Clock::now() < deadline_; }

  // A cancellation that came before the stream was here found nothing to interrupt.
  void hold(net::Stream stream) {
    const MutexLock lock(mutex_);
    stream_ = std::move(stream);
    if (stream_ && cancelled_()) ::shutdown(stream_.socket(), SHUT_RDWR);
  }

  // By the Unix socket of a peer on this machine, unless its name led to another process.
  FileDescriptor connect() {
    FileDescriptor socket = by_tcp_ ? FileDescriptor() : connect_near(to_);
    is_near_ = bool(socket);
    return is_near_ ? std::move(socket) : connect_to(to_, deadline_, cancelled_);
  }

  bool try_once() {
    try {
      FileDescriptor socket = connect();
      if (!socket) {
        problem_ = "does not accept connections";
        return false;
      }
      Caller caller = me_;
      caller.plain = is_near_ || own_.is_plain();
      if (is_near_) caller.connections = 1;
      hold({std::move(socket), net::Role::connected, own_.key()});
      const auto deadline = std::min(deadline_, Clock::now() + kProofDeadline);
      net::shake_hands(stream_, deadline);
      net::write_all(stream_, hello_of(caller), deadline);
      if (!is_taken()) return false;
      if (caller.plain) {
        stream_.continue_plain();
      } else {
        stream_.continue_in_bulk();
      }
      return true;
    } catch (const Error& error) {
      problem_ = error.what();
      by_tcp_ |= is_near_;
      return false;
    }
  }

  // The peer answers when it makes the same mesh.
  bool is_taken() {
    problem_ = "has not come to this generation";
    while (go_on()) {
      pollfd entry{stream_.socket(), POLLIN, 0};
      if (::poll(&entry, 1, static_cast<int>(kLook.count())) <= 0) continue;
      char word = 0;
      const iovec part{&word, 1};
      const net::Moved moved = stream_.read({&part, 1});
      if (moved.bytes == 0 && moved.state == net::Moved::State::blocked) continue;
      if (moved.bytes == 1 && word == kTaken) return true;
      over_ = moved.bytes == 1 && word == kOver;
      if (over_) problem_ = "is in a newer generation";
      return false;
    }
    return false;
  }

  const Caller me_;
  const PeerAddress to_;
  const Reception& own_;
  const Clock::time_point deadline_;
  const std::function<bool()> cancelled_;
  Mutex mutex_;  // guards the life of stream_
  net::Stream stream_;
  bool is_near_ = false, by_tcp_;
  std::string problem_;
  bool over_ = false;
};

// While a mesh is being made, the reception keeps the callers of its generation.
class Awaiting {
 public:
  Awaiting(Reception& reception, std::uint64_t generation) : reception_(reception), generation_(generation) {
    reception_.await(generation_);
  }
  ~Awaiting() { reception_.forget(generation_); }
  Awaiting(const Awaiting&) = delete;

 private:
  Reception& reception_;
  const std::uint64_t generation_;
};

// The calls to one rank: the first finds out whether it is on this machine; if not, the others follow.
class Calls {
 public:
  Calls(Caller caller, const PeerAddress& to, const Reception& own, Clock::time_point deadline,
        const std::function<bool()>& cancelled) {
    for (caller.number = 0; caller.number < caller.connections; ++caller.number) {
      calls_.emplace_back(caller, to, own, deadline, cancelled);
    }
  }

  int peer() const { return calls_.front().peer(); }
  void run() {
    calls_.front().run();
    if (!calls_.front().is_by_tcp()) return;
    std::vector<std::jthread> threads;
    for (auto call = std::next(calls_.begin()); call != calls_.end(); ++call) {
      try {
        threads.emplace_back([call] { call->run(); });
      } catch (const std::system_error&) {  // no thread is to be had: one after the other
        call->run();
      }
    }
  }
  bool is_over() const { return std::ranges::any_of(calls_, &Call::is_over); }
  void interrupt() {
    for (Call& call : calls_) call.interrupt();
  }

  // None when one is missing; then `problem` says why.
  std::vector<net::Stream> take_streams(std::string& problem) {
    const std::size_t count = calls_.front().is_by_tcp() ? calls_.size() : 1;
    std::vector<net::Stream> streams;
    for (std::size_t i = 0; i < count; ++i) {
      streams.push_back(calls_[i].take_stream());
      if (streams.back()) continue;
      problem = calls_[i].problem();
      return {};
    }
    return streams;
  }

 private:
  std::deque<Call> calls_;
};

std::string name_of(const MeshPlan& plan, int peer, const std::string& problem) {
  const PeerAddress& address = plan.ranks[static_cast<std::size_t>(peer)];
  return fmt::format("rank {} at {} port {} ({})", peer, address.address, address.port, problem);
}

}  // namespace

std::vector<std::vector<net::Stream>> form_mesh(Reception& reception, const MeshPlan& plan, int connections,
                                                std::chrono::milliseconds deadline, std::stop_token cancel) {
  const int ranks = static_cast<int>(plan.ranks.size());
  const Clock::time_point end = Clock::now() + deadline;
  const Caller me{.generation = plan.generation, .rank = plan.rank, .ranks = ranks};
  const Awaiting awaiting(reception, plan.generation);
  // One rank that says that the generation is over is enough to stop trying.
  std::atomic<bool> over{false};
  const auto cancelled = [&] { return cancel.stop_requested() || over; };

  std::deque<Calls> calls;  // to the ranks above
  for (int peer = plan.rank + 1; peer < ranks; ++peer) {
    Caller caller = me;
    caller.called = peer;
    caller.connections = connections;
    calls.emplace_back(caller, plan.ranks[static_cast<std::size_t>(peer)], reception, end, cancelled);
  }
  const std::stop_callback on_cancel(cancel, [&] {
    for (Calls& each : calls) each.interrupt();
    reception.look_again();
  });
  std::vector<std::jthread> threads;
  for (Calls& each : calls) {
    try {
      threads.emplace_back([&] {
        each.run();
        if (!each.is_over()) return;
        over = true;
        reception.look_again();
      });
    } catch (const std::system_error& error) {  // the calls that have begun end soon
      over = true;
      for (Calls& begun : calls) begun.interrupt();
      throw Error(
          fmt::format("could not make the mesh of generation {}: no thread is to be had for the call to rank {} "
                      "({}; see ulimit -u)",
                      plan.generation, each.peer(), error.what()));
    }
  }
  std::map<int, std::vector<net::Stream>> called = reception.take(me, plan.rank, end, cancelled);
  threads.clear();

  std::vector<std::vector<net::Stream>> streams(static_cast<std::size_t>(ranks));
  std::vector<std::string> missing;
  for (int peer = 0; peer < plan.rank; ++peer) {
    std::vector<net::Stream>& from = streams[static_cast<std::size_t>(peer)] = std::move(called[peer]);
    if (from.empty()) missing.push_back(name_of(plan, peer, "has not called"));
  }
  for (Calls& each : calls) {
    std::string problem;
    std::vector<net::Stream>& to = streams[static_cast<std::size_t>(each.peer())] = each.take_streams(problem);
    if (to.empty()) missing.push_back(name_of(plan, each.peer(), problem));
  }
  if (missing.empty()) return streams;
  throw PeerLost(fmt::format("{} the mesh of generation {}: missing {}",
                             cancel.stop_requested() ? "gave up" : "could not make", plan.generation,
                             fmt::join(missing, ", ")));
}

}  // namespace dtrain::comm::tcp
