// One step under way: what the threads of an executable know of it and of each other.
#pragma once

#include <atomic>
#include <barrier>
#include <exception>
#include <vector>

#include "cpu_executable.hpp"

namespace dtrain::backend::cpu {

// One enqueue's arguments and progress.
struct CpuExecutable::Step {
  HostBatch batch;
  std::vector<ShardRange> shards;
  StepKey key;
  ContributionSink* sink = nullptr;
  DeferringSink* deferring = nullptr;  // the sink, if it is one
  bool meets = false;                  // its shards meet at synchronized norms
  std::atomic<int> next{0};
};

// The memory of one shard under way, and what its threads share. The leader is the first of them; alone, it never
// waits.
struct CpuExecutable::Lane {
  Lane(int first, int count)
      : first_thread(first),
        contexts(static_cast<std::size_t>(count)),
        helpers(static_cast<std::size_t>(count - 1)),
        meeting(count) {}
  int first_thread;
  Buffer arena, coefficients;
  std::vector<Context> contexts;  // one per thread
  std::vector<Buffer> helpers;    // contributions of the threads behind the leader
  std::barrier<> meeting;
  int shard = 0;
  std::span<float> contribution;  // the sink's
  std::atomic<bool> failed{false};
  std::exception_ptr failure;  // of the thread that set `failed` first

  int threads() const { return static_cast<int>(contexts.size()); }
  void meet() {
    if (threads() > 1) meeting.arrive_and_wait();
  }
  // A thread that fails must still come to the meetings.
  template <typename Work>
  void attempt(Work work) {
    if (failed.load()) return;
    try {
      work();
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  }
  // After the last meeting, on the leader. Throws what failed.
  void end() {
    if (failed.exchange(false)) std::rethrow_exception(std::exchange(failure, nullptr));
  }
};

}  // namespace dtrain::backend::cpu
