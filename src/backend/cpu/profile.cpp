// CpuExecutable::profile: where the time of a step goes, and what its primitives take alone.
#include <fmt/format.h>

#include <algorithm>

#include "cpu_executable.hpp"

namespace dtrain::backend::cpu {
namespace {

// Contributions that nobody wants.
class Discard final : public ContributionSink {
 public:
  Discard(std::size_t shards, std::int64_t size)
      : buffers_(shards, std::vector<float>(static_cast<std::size_t>(size))) {}
  std::span<float> buffer(const ShardRange& shard) override { return buffers_[static_cast<std::size_t>(shard.index)]; }
  void ready(const ShardRange&, std::int64_t, std::int64_t, bool) override {}

 private:
  std::vector<std::vector<float>> buffers_;
};

// The batch in the largest shards this was compiled for.
std::vector<ShardRange> shards_of(int n, int max_samples) {
  std::vector<ShardRange> shards;
  for (int first = 0; first < n; first += max_samples) {
    shards.push_back({static_cast<int>(shards.size()), first, std::min(max_samples, n - first)});
  }
  return shards;
}

}  // namespace

void OpTimes::add(int op, int count, double seconds) {
  Entry& entry = entries[static_cast<std::size_t>(op)];
  entry.seconds += seconds;
  for (auto& [samples, calls] : entry.calls) {
    if (samples == count) {
      ++calls;
      return;
    }
  }
  entry.calls.emplace_back(count, 1);
}

// Seconds are those of one step as it passes on the wall: the threads' sum divided by their number.
Json CpuExecutable::profile(const HostBatch& batch, int repeats) {
  const std::vector<ShardRange> shards = shards_of(batch.n, options_.max_samples);
  Discard sink(shards.size(), layout_.size());
  const auto step = [&] {
    enqueue(batch, shards, {}, sink);
    synchronize();
  };
  step();
  const auto operations = static_cast<std::size_t>(training_.program.size());
  times_.assign(workers_.size(), {std::vector<OpTimes::Entry>(operations)});
  for (int repeat = 0; repeat < repeats; ++repeat) step();
  Json rows = profile_rows(repeats);
  times_.clear();
  return rows;
}

Json CpuExecutable::profile_rows(int repeats) {
  constexpr int kBareRepeats = 5;
  const double steps = static_cast<double>(repeats) * static_cast<double>(workers_.size());
  Json rows = Json::array();
  for (int index = 0; index < training_.program.size(); ++index) {
    Op& op = training_.program.op(index);
    double seconds = 0, bare = 0;
    std::int64_t calls = 0;
    int samples = 0;
    std::vector<double> bare_by_thread(workers_.size());
    // All threads at once, as in a step: they share the memory and the clock.
    crew_.run([&](int thread) {
      const auto t = static_cast<std::size_t>(thread);
      for (const auto& [count, number] : times_[t].entries[static_cast<std::size_t>(index)].calls) {
        bare_by_thread[t] += number * op.bare_seconds(workers_[t], count, kBareRepeats);
      }
    });
    for (std::size_t t = 0; t < workers_.size(); ++t) {
      const OpTimes::Entry& entry = times_[t].entries[static_cast<std::size_t>(index)];
      seconds += entry.seconds;
      bare += bare_by_thread[t];
      for (const auto& [count, number] : entry.calls) {
        calls += number;
        samples = std::max(samples, count);
      }
    }
    rows.push_back(Json::object({{"op", op.name},
                                 {"kind", op.kind},
                                 {"shape", op.shape_name(samples)},
                                 {"calls", calls / repeats},
                                 {"seconds", seconds / steps},
                                 {"bare_seconds", bare / steps}}));
  }
  return rows;
}

}  // namespace dtrain::backend::cpu
