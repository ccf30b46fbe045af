#include "read_ahead.hpp"

#include <algorithm>
#include <chrono>
#include <system_error>

#include <dtrain/base/error.hpp>
#include <dtrain/base/thread_error.hpp>

#include "server_pauses.hpp"

namespace dtrain::data {
namespace {

// They wait for the network, not for the processor: so many blocks on their way hide 50 ms a request at 500 MB/s.
constexpr int kThreads = 64;
constexpr std::size_t kFarthestAhead = 16384;  // records
// Farther ahead, blocks could be dropped from a small cache before they are read.
constexpr std::uint64_t kShareOfCache = 4;

std::size_t farthest_in(const RecordSet& set, std::uint64_t cache_size) {
  std::uint64_t bytes = 0;
  for (const RecordFile& file : set.files()) bytes += file.bytes();
  const std::uint64_t average = std::max<std::uint64_t>(1, bytes / set.size());
  return std::clamp<std::size_t>(cache_size / kShareOfCache / average, 1, kFarthestAhead);
}

}  // namespace

ReadAhead::ReadAhead(const RecordSet& set, std::uint64_t cache_size)
    : set_(set), farthest_(farthest_in(set, cache_size)) {
  if (!set.is_remote()) return;
  threads_.reserve(kThreads);
  try {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& refused) {
    // Fewer threads fetch more slowly. No exception may leave this constructor once a thread runs: only the destructor
    // ends them, and their join would last for ever.
    if (threads_.empty()) throw no_thread("that reads ahead", refused);
  }
}

ReadAhead::~ReadAhead() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
  }
  there_is_work_.notify_all();
}

void ReadAhead::start(std::vector<std::uint32_t> positions) {
  if (threads_.empty()) return;
  {
    const MutexLock lock(mutex_);
    positions_ = std::move(positions);
    next_ = read_ = 0;
    ++round_;
  }
  there_is_work_.notify_all();
}

void ReadAhead::add(const std::vector<std::uint32_t>& positions) {
  if (threads_.empty()) return;
  {
    const MutexLock lock(mutex_);
    positions_.insert(positions_.end(), positions.begin(), positions.end());
  }
  there_is_work_.notify_all();
}

void ReadAhead::have_read(std::size_t count) {
  if (threads_.empty()) return;
  {
    const MutexLock lock(mutex_);
    read_ = count;
  }
  there_is_work_.notify_all();
}

bool ReadAhead::may_go_on() const { return next_ < std::min(positions_.size(), read_ + farthest_); }

bool ReadAhead::fetch(std::uint32_t position, std::uint32_t round) const {
  try {
    set_.fetch_ahead(position, round);
    return true;
  } catch (const Error&) {
    return false;  // if it stays so, the reader meets it too, and knows what to say
  }
}

void ReadAhead::work() {
  MutexLock lock(mutex_);
  for (;;) {
    while (!ending_ && !may_go_on()) there_is_work_.wait(mutex_);
    if (ending_) return;
    const std::size_t turn = next_++;
    const std::uint32_t position = positions_[turn], round = round_;
    const auto is_too_late = [&]() DTRAIN_REQUIRES(mutex_) { return ending_ || round != round_ || turn < read_; };
    for (auto pause = kFirstPause;; pause = longer_pause(pause)) {
      lock.unlock();
      const bool is_fetched = fetch(position, round);
      lock.lock();
      if (is_fetched || there_is_work_.wait_for(mutex_, pause, is_too_late)) break;
    }
  }
}

}  // namespace dtrain::data
