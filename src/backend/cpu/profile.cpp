// CpuExecutable::profile: where the time of a step goes, and what its primitives take alone.
#include "cpu_executable.hpp"

namespace dtrain::backend::cpu {
namespace {

// A sink that drops contributions.
class Discard final : public ContributionSink {
 public:
  Discard(std::size_t shards, std::int64_t size)
      : buffers_(shards, std::vector<float>(static_cast<std::size_t>(size))) {}
  std::span<float> buffer(const ShardRange& shard) override { return buffers_[static_cast<std::size_t>(shard.index)]; }
  void ready(const ShardRange&, std::int64_t, std::int64_t, bool) override {}

 private:
  std::vector<std::vector<float>> buffers_;
};

}  // namespace

void OpTimes::add(int op, int count, int calls, double seconds) {
  Entry& entry = entries[static_cast<std::size_t>(op)];
  entry.seconds += seconds;
  if (calls == 0) return;
  for (auto& [samples, number] : entry.calls) {
    if (samples == count) {
      number += calls;
      return;
    }
  }
  entry.calls.emplace_back(count, calls);
}

// Every lane computes the whole batch as one shard, at the same time, as in a step. Seconds are one lane's, by the
// processor time of its threads, which a busy machine disturbs least.
Json CpuExecutable::profile(const HostBatch& batch, int repeats) {
  std::vector<ShardRange> shards;
  for (int lane = 0; lane < options_.lanes; ++lane) shards.push_back({lane, 0, batch.n});
  Discard sink(shards.size(), layout_.size());
  const auto step = [&] {
    enqueue(batch, shards, {}, sink);
    synchronize();
  };
  step();
  times_.assign(workers_.size(), {std::vector<OpTimes::Entry>(static_cast<std::size_t>(training_.program.size()))});
  for (int repeat = 0; repeat < repeats; ++repeat) step();
  Json rows = profile_rows(repeats);
  times_.clear();
  return rows;
}

Json CpuExecutable::profile_rows(int repeats) {
  constexpr int kBareRepeats = 5;
  const auto threads = workers_.size();
  Json rows = Json::array();
  for (int index = 0; index < training_.program.size(); ++index) {
    Op& op = training_.program.op(index);
    const auto entry_of = [&](std::size_t t) -> const OpTimes::Entry& {
      return times_[t].entries[static_cast<std::size_t>(index)];
    };
    std::vector<double> bare_by_thread(threads);
    threads_.run([&](int thread) {
      const auto t = static_cast<std::size_t>(thread);
      for (const auto& [count, calls] : entry_of(t).calls) {
        bare_by_thread[t] += calls * op.bare_seconds(workers_[t], count, kBareRepeats);
      }
    });
    double seconds = 0, bare = 0;
    std::string shape;
    for (std::size_t t = 0; t < threads; ++t) {
      seconds += entry_of(t).seconds / static_cast<double>(threads);
      bare += bare_by_thread[t] / static_cast<double>(threads);
      if (!entry_of(t).calls.empty()) shape = op.shape_name(entry_of(t).calls.front().first);
    }
    rows.push_back(Json::object({{"op", op.name},
                                 {"kind", op.kind},
                                 {"shape", shape},
                                 {"calls", repeats},
                                 {"seconds", seconds},
                                 {"bare_seconds", bare}}));
  }
  return rows;
}

}  // namespace dtrain::backend::cpu
