#include "reception.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>
#include <system_error>

#include <dtrain/base/error.hpp>
#include <dtrain/net/handshake.hpp>

namespace dtrain::comm::tcp {
namespace {

// A caller in good faith proves itself within milliseconds, so with more than so many at once the oldest goes.
constexpr std::size_t kMostHandshakes = 128;
// How long a connection of a generation that is not awaited is kept, and how many of them. One that is older than
// another that was awaited is hardly to come, unless two are begun at the same time.
constexpr std::chrono::milliseconds kKeptFor(60'000), kOlderKeptFor(1000);
constexpr std::chrono::milliseconds kTick(250);  // how often that is looked at
constexpr std::size_t kParked = 1024;

constexpr std::string_view kHello = "dtrain data 1";

bool has_hung_up(int socket) {
  char byte = 0;
  return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void say(int socket, char word) { ::send(socket, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT); }

}  // namespace

std::string hello_of(const Caller& caller) {
  return fmt::format("{} {} {} {}", kHello, caller.generation, caller.rank, caller.ranks);
}

std::optional<Caller> caller_of(const std::string& hello) {
  if (hello.size() > 100 || !hello.starts_with(kHello)) return std::nullopt;
  Caller caller;
  std::istringstream words(hello.substr(kHello.size()));
  std::string rest;
  if (!(words >> caller.generation >> caller.rank >> caller.ranks) || words >> rest) return std::nullopt;
  if (caller.rank < 0 || caller.rank >= caller.ranks) return std::nullopt;
  return caller;
}

Reception::Reception(const std::string& bind_address, std::string secret, bool near)
    : secret_(std::move(secret)),
      listener_(listen_on(bind_address)),
      address_(address_of(listener_.get())),
      near_listener_(near ? listen_near(address_) : FileDescriptor()) {
  thread_ = std::thread([this] { serve(); });
}

Reception::~Reception() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  ::shutdown(listener_.get(), SHUT_RDWR);
  if (near_listener_) ::shutdown(near_listener_.get(), SHUT_RDWR);
  thread_.join();
  reap(true);
}

// ---- callers that have proved nothing yet

void Reception::serve() {
  // poll() overlooks a listener that is none, which is -1.
  const std::array<int, 2> listeners{listener_.get(), near_listener_.get()};
  while (true) {
    FileDescriptor socket = accept_from(listeners, kTick);
    const int error = errno;
    {
      const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
  if (handshakes_.size() >= kMostHandshakes) ::shutdown(handshakes_.front().socket.get(), SHUT_RDWR);
  PendingHandshake& pending = handshakes_.emplace_back();
  pending.socket = std::move(socket);
  try {
    pending.thread = std::thread([this, &pending] { verify(pending); });
  } catch (const std::system_error&) {
    handshakes_.pop_back();  // no thread is free: the caller tries again
  }
}

void Reception::verify(PendingHandshake& pending) {
  std::optional<Caller> caller;
  try {
    caller = caller_of(
        net::prove_and_verify(pending.socket.get(), net::Role::accepted, secret_, "dtrain data", kProofDeadline));
  } catch (const Error&) {  // a caller without the token gets no answer, and it is no event for the user
  }
  const std::lock_guard lock(mutex_);
  if (caller && !closing_) park(*caller, std::move(pending.socket));
  pending.done = true;
}

// Ends the threads of those who were questioned.
void Reception::reap(bool all) {
  std::list<PendingHandshake> gone;
  {
    const std::lock_guard lock(mutex_);
    for (auto i = handshakes_.begin(); i != handshakes_.end();) {
      const auto next = std::next(i);
      if (all && !i->done) ::shutdown(i->socket.get(), SHUT_RDWR);
      if (all || i->done) gone.splice(gone.end(), handshakes_, i);
      i = next;
    }
    drop_old();
  }
  for (PendingHandshake& pending : gone) pending.thread.join();
}

// ---- proven callers

// mutex_ is held.
void Reception::park(const Caller& caller, FileDescriptor socket) {
  if (!awaited_.contains(caller.generation) && parked_.size() >= kParked) return;
  parked_[{caller.generation, caller.rank}] = {std::move(socket), caller.ranks, Clock::now()};
  changed_.notify_all();
}

// mutex_ is held.
void Reception::drop_old() {
  std::erase_if(parked_, [&](const auto& entry) {
    const auto& [generation, rank] = entry.first;
    const Parked& parked = entry.second;
    const bool older = generation < newest_;
    if (awaited_.contains(generation) || Clock::now() - parked.since < (older ? kOlderKeptFor : kKeptFor)) return false;
    if (older) say(parked.socket.get(), kOver);
    return true;
  });
}

void Reception::await(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  awaited_.insert(generation);
  newest_ = std::max(newest_, generation);
}

void Reception::forget(std::uint64_t generation) {
  const std::lock_guard lock(mutex_);
  awaited_.erase(awaited_.find(generation));
  if (awaited_.contains(generation)) return;
  std::erase_if(parked_, [&](const auto& entry) { return entry.first.first == generation; });
}

std::map<int, FileDescriptor> Reception::take(const Caller& me, int below, Clock::time_point deadline,
                                              const std::function<bool()>& cancelled) {
  std::map<int, FileDescriptor> taken;
  std::unique_lock lock(mutex_);
  const auto take_what_came = [&] {
    for (int rank = 0; rank < below; ++rank) {
      const auto found = parked_.find({me.generation, rank});
      if (found == parked_.end()) continue;
      // Not a caller with another idea of the generation, nor one that has given up since. A peer that calls again
      // closed its first call.
      if (found->second.ranks == me.ranks && !has_hung_up(found->second.socket.get())) {
        say(found->second.socket.get(), kTaken);
        taken[rank] = std::move(found->second.socket);
      }
      parked_.erase(found);
    }
    return static_cast<int>(taken.size()) == below || cancelled() || closing_;
  };
  changed_.wait_until(lock, deadline, take_what_came);
  return taken;
}

void Reception::look_again() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

}  // namespace dtrain::comm::tcp
