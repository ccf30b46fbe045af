// Reads of records that outlast a server which is away for a while.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include <dtrain/base/mutex.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/net/aws.hpp>

namespace dtrain::data {

// Safe for concurrent use: each of a loader's threads waits by itself, and the first one tells. The options must
// outlive this.
class PatientReads {
 public:
  explicit PatientReads(const LoaderOptions& options) : options_(options) {}

  // read(); again after growing pauses where its server is away, for LoaderOptions::patience, until `dropped` says that
  // nothing needs the result any more.
  template <typename Read>
  auto operator()(const Read& read, const std::atomic<bool>& dropped) {
    for (Outage outage;;) {
      try {
        auto result = read();
        if (outage.pauses > 0) recovered();
        return result;
      } catch (const net::AwsError& error) {
        if (!outlast(error, outage, dropped)) throw;
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  // As one read sees it.
  struct Outage {
    int pauses = 0;
    std::chrono::milliseconds pause{1'000};
  };
  // As all reads see it, also those of batches that were dropped meanwhile: a generation that ends begins no new one.
  struct Known {
    Clock::time_point begin, last_failure;
  };
  // Pauses. False: another try is of no use, or comes too late.
  bool outlast(const net::AwsError& error, Outage& outage, const std::atomic<bool>& dropped);
  // When the patience with this failure ends. The first failure of an outage is told.
  Clock::time_point end_of_patience(const net::AwsError& error);
  void recovered();

  const LoaderOptions& options_;
  Mutex mutex_;
  std::optional<Known> known_ DTRAIN_GUARDED_BY(mutex_);  // nullopt: the last try of each read went well
};

// A wait in Loader::next(): says when to call LoaderOptions::while_waiting.
class WatchedWait {
 public:
  explicit WatchedWait(std::chrono::seconds patience) : patience_(patience) {}
  // The caller waits so long at a time.
  static constexpr std::chrono::milliseconds kInterval{200};
  // Not in short waits, which end by themselves; and no more once the threads have lost patience: they hang then.
  bool is_due() const {
    const auto waited = std::chrono::steady_clock::now() - begin_;
    return waited > std::chrono::seconds(5) && waited < 2 * patience_;
  }

 private:
  const std::chrono::seconds patience_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace dtrain::data
