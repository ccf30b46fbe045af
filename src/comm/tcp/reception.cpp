#include "reception.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <system_error>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/net/addresses.hpp>

namespace dtrain::comm::tcp {
namespace {

// A caller in good faith proves itself within milliseconds, so with more than so many at once one goes.
constexpr std::size_t kMostHandshakes = 128;
// How long a connection of a generation that is not awaited is kept, and how many of them. One that is older than
// another that was awaited is hardly to come, unless two are begun at the same time.
constexpr std::chrono::milliseconds kKeptFor(60'000), kOlderKeptFor(1000);
constexpr std::chrono::milliseconds kTick(250);  // how often that is looked at
constexpr std::size_t kParked = 1024;

constexpr std::size_t kLongestHello = 100;

bool has_hung_up(int socket) {
  char byte = 0;
  return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// Whether the kernel took the word, as it does on a connection on which nothing was sent yet.
bool say(net::Stream& stream, char word) {
  const iovec part{&word, 1};
  return stream.write({&part, 1}).bytes == 1 && stream.unsent() == 0;
}

bool is_whole(const std::vector<net::Stream>& connections) {
  return std::ranges::all_of(connections, [](const net::Stream& stream) { return bool(stream); });
}

std::string read_hello(net::Stream& stream, Clock::time_point deadline) {
  const auto size = static_cast<unsigned char>(net::read_exactly(stream, 1, deadline)[0]);
  return net::read_exactly(stream, size, deadline);
}

}  // namespace

std::string hello_of(const Caller& caller) {
  const std::string text =
      fmt::format("{} {} {} {} {} {} {}", caller.generation, caller.rank, caller.ranks, caller.called,
                  caller.plain ? "plain" : "encrypted", caller.number, caller.connections);
  return static_cast<char>(text.size()) + text;
}

std::optional<Caller> caller_of(const std::string& hello) {
  if (hello.size() > kLongestHello) return std::nullopt;
  Caller caller;
  std::istringstream words(hello);
  std::string form, rest;
  words >> caller.generation >> caller.rank >> caller.ranks >> caller.called >> form >> caller.number;
  if (!(words >> caller.connections)) return std::nullopt;
  caller.plain = form == "plain";
  if (words >> rest || (!caller.plain && form != "encrypted")) return std::nullopt;
  if (caller.rank < 0 || caller.rank >= caller.called || caller.called >= caller.ranks) return std::nullopt;
  if (caller.connections > kMostConnections || caller.number < 0 || caller.number >= caller.connections) {
    return std::nullopt;
  }
  return caller;
}

Reception::Reception(const std::string& bind_address, const std::string& secret, bool near, bool plain)
    : key_{secret, kDataPurpose},
      plain_(plain),
      listener_(listen_on(bind_address)),
      address_(address_of(listener_.get())),
      near_listener_(near ? listen_near(address_) : FileDescriptor()),
      quota_({.most = kMostHandshakes}) {
  thread_ = std::thread([this] { serve(); });
}

Reception::~Reception() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  ::shutdown(listener_.get(), SHUT_RDWR);
  if (near_listener_) ::shutdown(near_listener_.get(), SHUT_RDWR);
  thread_.join();
  reap(true);
}

// ---- callers that have proved nothing yet

void Reception::serve() {
  // poll() overlooks a listener that is none, which is -1. The first one in the list is served first, so they take
  // turns.
  std::array<int, 2> listeners{listener_.get(), near_listener_.get()};
  while (true) {
    std::swap(listeners[0], listeners[1]);
    FileDescriptor socket = accept_from(listeners, kTick);
    const int error = errno;
    {
      const MutexLock lock(mutex_);
      if (closing_) return;
    }
    reap(false);
    if (socket) {
      admit(std::move(socket));
    } else if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));  // others may close theirs
    }
  }
}

void Reception::admit(FileDescriptor socket) {
  const bool near = is_near(socket.get());
  if (near && !net::is_same_user(socket.get())) return;  // the caller comes again by TCP
  const std::string address = net::peer_address(socket.get());
  net::Stream stream(std::move(socket), net::Role::accepted, key_);
  const MutexLock lock(mutex_);
  PendingHandshake& pending = handshakes_.emplace_back();
  pending.stream = std::move(stream);
  pending.near = near;
  const auto now = Clock::now();
  const auto displaced = quota_.add(&pending, address, now).displaced;
  if (near) quota_.spoke(&pending, now);  // a process of the same user
  for (PendingHandshake& other : handshakes_) {
    if (&other == displaced && !other.done) ::shutdown(other.stream.socket(), SHUT_RDWR);
  }
  try {
    pending.thread = std::thread([this, &pending] { verify(pending); });
  } catch (const std::system_error&) {  // no thread is free: the caller tries again
    quota_.remove(&pending);
    handshakes_.pop_back();
  }
}

void Reception::verify(PendingHandshake& pending) {
  std::optional<Caller> caller;
  try {
    const auto deadline = Clock::now() + kProofDeadline;
    net::shake_hands(pending.stream, deadline);
    caller = caller_of(read_hello(pending.stream, deadline));
  } catch (const Error&) {  // a caller without the token gets no answer, and it is no event for the user
  }
  const MutexLock lock(mutex_);
  const bool agrees = caller && caller->plain == (pending.near || plain_);
  if (agrees && !closing_) park(*caller, std::move(pending.stream));
  pending.done = true;
  quota_.remove(&pending);
}

// Ends the threads of those who were questioned.
void Reception::reap(bool all) {
  std::list<PendingHandshake> gone;
  {
    const MutexLock lock(mutex_);
    for (auto i = handshakes_.begin(); i != handshakes_.end();) {
      const auto next = std::next(i);
      if (all && !i->done) ::shutdown(i->stream.socket(), SHUT_RDWR);
      if (all || i->done) gone.splice(gone.end(), handshakes_, i);
      i = next;
    }
    drop_old();
  }
  for (PendingHandshake& pending : gone) pending.thread.join();
}

// ---- proven callers

void Reception::park(const Caller& caller, net::Stream stream) {
  if (!awaited_.contains(caller.generation) && parked_.size() >= kParked) return;
  parked_[{caller.generation, caller.rank, caller.number}] = {std::move(stream), caller, Clock::now()};
  changed_.notify_all();
}

void Reception::drop_old() {
  for (auto entry = parked_.begin(); entry != parked_.end();) {
    const std::uint64_t generation = entry->first.generation;
    Parked& parked = entry->second;
    const bool older = generation < newest_;
    const auto kept_for = older ? kOlderKeptFor : kKeptFor;
    if (awaited_.contains(generation) || Clock::now() - parked.since < kept_for) {
      ++entry;
    } else {
      if (older) say(parked.stream, kOver);
      entry = parked_.erase(entry);
    }
  }
}

void Reception::await(std::uint64_t generation) {
  const MutexLock lock(mutex_);
  awaited_.insert(generation);
  newest_ = std::max(newest_, generation);
}

void Reception::forget(std::uint64_t generation) {
  const MutexLock lock(mutex_);
  awaited_.erase(awaited_.find(generation));
  if (awaited_.contains(generation)) return;
  std::erase_if(parked_, [&](const auto& entry) { return entry.first.generation == generation; });
}

// Returns true when all are here.
bool Reception::take_what_came(const Caller& me, int below, std::map<int, Taken>& taken) {
  const auto first = parked_.lower_bound({me.generation, 0, 0});
  const auto last = parked_.lower_bound({me.generation, below, 0});
  for (auto entry = first; entry != last; entry = parked_.erase(entry)) {
    // Not a caller with another idea of the generation, nor one that has given up since. A peer that calls again
    // closed its first call.
    auto& [stream, caller, since] = entry->second;
    if (caller.ranks != me.ranks || caller.called != me.rank || has_hung_up(stream.socket()) || !say(stream, kTaken)) {
      continue;
    }
    if (caller.plain) {
      stream.continue_plain();
    } else {
      stream.continue_in_bulk();
    }
    Taken& of_rank = taken[caller.rank];
    of_rank.resize(static_cast<std::size_t>(caller.connections));
    of_rank[static_cast<std::size_t>(caller.number)] = std::move(stream);
  }
  return static_cast<int>(taken.size()) == below &&
         std::ranges::all_of(taken, [](const auto& entry) { return is_whole(entry.second); });
}

std::map<int, std::vector<net::Stream>> Reception::take(const Caller& me, int below, Clock::time_point deadline,
                                                        const std::function<bool()>& cancelled) {
  std::map<int, Taken> taken;
  const MutexLock lock(mutex_);
  const auto is_over = [&]() DTRAIN_REQUIRES(mutex_) {
    return take_what_came(me, below, taken) || cancelled() || closing_;
  };
  changed_.wait_for(mutex_, deadline - Clock::now(), is_over);
  std::erase_if(taken, [](const auto& entry) { return !is_whole(entry.second); });
  return taken;
}

void Reception::look_again() {
  const MutexLock lock(mutex_);
  changed_.notify_all();
}

}  // namespace dtrain::comm::tcp
