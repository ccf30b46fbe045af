#include "parallel.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include <dtrain/base/mutex.hpp>
#include <dtrain/base/thread_error.hpp>

namespace dtrain::net {
namespace {

constexpr std::size_t kFirstConnections = 2;
constexpr auto kLookEvery = std::chrono::milliseconds(100);
// More connections are taken while the last ones made the whole so much faster.
constexpr double kWorthIt = 1.1;

// Threads that take pieces in order, each over its own connection. The caller's thread measures the rate and adds
// threads; it joins all before it returns. The first exception ends the taking of further pieces.
class AdaptivePool {
 public:
  AdaptivePool(std::size_t count, const std::function<void(std::size_t, const Came&)>& work)
      : count_(count), work_(work) {}

  void run(std::size_t most) {
    double best = 0;
    std::size_t wanted = std::min(kFirstConnections, most);
    do {
      if (!grow_to(wanted)) most = threads_.size();
      const double rate = wait_and_measure();
      if (rate > best * kWorthIt) wanted = std::min(threads_.size() * 2, most);
      best = std::max(best, rate);
    } while (!ended());
    threads_.clear();  // joins
    const MutexLock lock(mutex_);
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  // False: the system gives no more, and those that are there take all pieces.
  bool grow_to(std::size_t wanted) try {
    while (threads_.size() < wanted) threads_.emplace_back([this] { take_pieces(); });
    return true;
  } catch (const std::system_error& refused) {
    if (threads_.empty()) throw no_thread("that fetches", refused);
    return false;
  }

  void take_pieces() {
    const Came came = [this](std::uint64_t bytes) { bytes_ += bytes; };
    for (std::size_t piece = next_++; piece < count_ && !failed_; piece = next_++) {
      try {
        work_(piece, came);
      } catch (...) {
        const MutexLock lock(mutex_);
        if (!failed_.exchange(true)) thrown_ = std::current_exception();
      }
    }
    const MutexLock lock(mutex_);
    ++finished_;
    changed_.notify_all();
  }

  bool ended() {
    const MutexLock lock(mutex_);
    return finished_ == threads_.size();
  }

  // Bytes a second over the next moment, or until all is done.
  double wait_and_measure() {
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t before = bytes_;
    const MutexLock lock(mutex_);
    changed_.wait_for(mutex_, kLookEvery, [this]() DTRAIN_REQUIRES(mutex_) { return finished_ == threads_.size(); });
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    return static_cast<double>(bytes_ - before) / passed.count();
  }

  const std::size_t count_;
  const std::function<void(std::size_t, const Came&)>& work_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<bool> failed_{false};
  Mutex mutex_;
  CondVar changed_;
  std::size_t finished_ DTRAIN_GUARDED_BY(mutex_) = 0;
  std::exception_ptr thrown_ DTRAIN_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;
};

}  // namespace

void for_each_piece(std::size_t count, std::size_t most, const std::function<void(std::size_t, const Came&)>& work) {
  if (count == 1) return work(0, [](std::uint64_t) {});
  if (count > 1) AdaptivePool(count, work).run(std::min(count, most));
}

}  // namespace dtrain::net
