// CpuExecutable::profile: where the time of a step goes, and what its primitives take alone.
#include <algorithm>
#include <cstring>
#include <set>

#include <dtrain/base/stats.hpp>

#include "cpu_executable.hpp"
#include "thread_clock.hpp"

namespace dtrain::backend::cpu {
namespace {

// A sink that drops contributions.
class Discard final : public ContributionSink {
 public:
  Discard(std::size_t shards, std::int64_t size) : size_(static_cast<std::size_t>(size)), buffers_(shards) {
    for (Buffer& each : buffers_) each.grow(float_bytes(size));
  }
  std::span<float> buffer(const ShardRange& shard) override {
    return {buffers_[static_cast<std::size_t>(shard.index)].as<float>(), size_};
  }
  void ready(const ShardRange&, std::int64_t, std::int64_t, bool) override {}

 private:
  std::size_t size_;
  std::vector<Buffer> buffers_;
};

// What each operation must move between memory and the caches of the cores for n samples in one shard. A segment's
// chunks stay in the cache: within one, each tensor is read from memory once at most, and local tensors never.
std::vector<std::uint64_t> moved_bytes(const Program& program, int n) {
  std::vector<std::uint64_t> moved;
  for (const Segment& segment : program.segments()) {
    std::set<TensorId> cached;
    for (int index = segment.first_op; index < segment.end_op; ++index) {
      const Op& op = program.op(index);
      std::uint64_t bytes = op.packed_bytes();
      const auto add = [&](TensorId id) {
        const Tensor& tensor = program.tensor(id);
        if (!tensor.local) bytes += static_cast<std::uint64_t>(n) * tensor.sample_bytes();
      };
      for (const TensorId id : op.reads) {
        if (cached.insert(id).second) add(id);
      }
      for (const TensorId id : op.writes) {
        cached.insert(id);
        add(id);
      }
      moved.push_back(bytes);
    }
  }
  return moved;
}

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
Profile CpuExecutable::profile(const HostBatch& batch, int repeats) {
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
  Profile profile{profile_operations(batch, repeats), {profile_packing(repeats)}, memory_rate()};
  times_.clear();
  return profile;
}

std::vector<OperationTime> CpuExecutable::profile_operations(const HostBatch& batch, int repeats) {
  const std::vector<std::uint64_t> moved = moved_bytes(training_.program, batch.n);
  std::vector<OperationTime> operations;
  for (int index = 0; index < training_.program.size(); ++index) {
    operations.push_back(profile_operation(index, repeats));
    operations.back().bytes = moved[static_cast<std::size_t>(index)];
  }
  return operations;
}

// What `repeats` steps have noted, and what the same calls take when the primitive is alone on the thread.
OperationTime CpuExecutable::profile_operation(int index, int repeats) {
  constexpr int kBareRepeats = 5;
  Op& op = training_.program.op(index);
  const auto noted_by = [&](std::size_t thread) -> const OpTimes::Entry& {
    return times_[thread].entries[static_cast<std::size_t>(index)];
  };
  std::vector<double> bare_by_thread(workers_.size());
  threads_.run([&](int number) {
    const auto thread = static_cast<std::size_t>(number);
    for (const auto& [count, calls] : noted_by(thread).calls) {
      bare_by_thread[thread] += calls * op.bare_seconds(workers_[thread], count, kBareRepeats);
    }
  });

  OperationTime operation{.name = op.name, .kind = op.kind};
  const double passes = static_cast<double>(workers_.size()) * repeats;
  for (std::size_t thread = 0; thread < workers_.size(); ++thread) {
    const OpTimes::Entry& noted = noted_by(thread);
    operation.seconds += noted.seconds / passes;
    operation.bare_seconds += bare_by_thread[thread] / passes;
    if (!noted.calls.empty()) operation.shape = op.shape_name(noted.calls.front().first);
  }
  return operation;
}

// All threads pack the weights together, once a step.
OperationTime CpuExecutable::profile_packing(int repeats) {
  std::vector<double> seconds;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    weights_changed();
    const std::vector<Packing> stale = stale_weights();
    std::vector<double> by_thread(workers_.size());
    threads_.run([&](int thread) {
      const double start = thread_seconds();
      pack(stale, thread);
      by_thread[static_cast<std::size_t>(thread)] = thread_seconds() - start;
    });
    seconds.push_back(std::ranges::max(by_thread));
  }
  OperationTime packing{.name = "weights", .kind = "packing", .seconds = median(std::move(seconds))};
  weights_changed();
  for (const auto& [layer, direction] : stale_weights()) packing.bytes += layer->packing_bytes(direction);
  return packing;
}

// Two tensors added into a third, all larger than a core's caches, on all threads at the same time.
double CpuExecutable::memory_rate() {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  constexpr int kRepeats = 5;
  std::vector<double> seconds(workers_.size());
  threads_.run([&](int thread) {
    const Buffer a(kBytes), b(kBytes), sum(kBytes);
    for (const Buffer* buffer : {&a, &b, &sum}) std::memset(buffer->data(), 0, kBytes);
    std::vector<double> times;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const double start = thread_seconds();
      kernels_.float32.add(a.data(), b.data(), sum.data(), static_cast<std::int64_t>(kBytes / sizeof(float)));
      times.push_back(thread_seconds() - start);
    }
    seconds[static_cast<std::size_t>(thread)] = median(std::move(times));
  });
  return options_.threads_per_lane * static_cast<double>(3 * kBytes) / median(std::move(seconds));
}

}  // namespace dtrain::backend::cpu
