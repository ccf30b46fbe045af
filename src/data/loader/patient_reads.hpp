// Reads of records that outlast a server which is away for a while.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include <dtrain/base/mutex.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/net/aws.hpp>

#include "remote/server_pauses.hpp"

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
    for (Tries tries;;) {
      try {
        auto result = read();
        if (tries.pauses > 0) recovered();
        return result;
      } catch (const net::AwsError& error) {
        if (!outlast(error, tries, dropped)) throw;
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Tries {  // of one read
    int pauses = 0;
    std::chrono::milliseconds pause = kFirstPause;
  };
  // Of the server, for all reads. It outlives the batches of a generation, so that one generation after the other does
  // not begin the patience anew.
  struct Outage {
    Clock::time_point begin, last_failure;
  };
  // Pauses. False: another try is of no use, or comes too late.
  bool outlast(const net::AwsError& error, Tries& tries, const std::atomic<bool>& dropped);
  // Notes the failure, tells the first one of an outage, and returns when the patience ends.
  Clock::time_point end_of_patience(const net::AwsError& error);
  void recovered();

  const LoaderOptions& options_;
  Mutex mutex_;
  std::optional<Outage> outage_ DTRAIN_GUARDED_BY(mutex_);  // nullopt: the server answers
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
