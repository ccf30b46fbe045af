#include "step.hpp"

#include <exception>
#include <list>
#include <mutex>
#include <utility>

namespace dtrain::train {
namespace {

// Hands contributions to the reduction as they become final. When a peer is lost the shards that are under way still
// need memory: they get some that nobody reads, and the loss is thrown when they are done.
class ReductionSink final : public backend::ContributionSink {
 public:
  ReductionSink(comm::Reduction& reduction, std::int64_t size)
      : reduction_(reduction), size_(static_cast<std::size_t>(size)) {}

  std::span<float> buffer(const backend::ShardRange& shard) override {
    std::span<float> memory;
    attempt([&] { memory = reduction_.leaf(shard.index); });
    if (!memory.empty()) return memory;
    const std::lock_guard lock(mutex_);
    return nobodys_.emplace_back(size_);
  }

  void ready(const backend::ShardRange& shard, std::int64_t first, std::int64_t size, bool) override {
    attempt([&] { reduction_.ready(shard.index, first, size); });
  }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  template <typename Work>
  void attempt(Work work) {
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return;
    }
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  comm::Reduction& reduction_;
  const std::size_t size_;
  std::mutex mutex_;  // guards what follows
  std::exception_ptr failure_;
  std::list<std::vector<float>> nobodys_;
};

class DeviceReductionSink final : public backend::DeviceSink {
 public:
  explicit DeviceReductionSink(comm::DeviceReduction& reduction) : reduction_(reduction) {}
  void begin(DeviceMark mark) override { reduction_.begin(mark); }
  void take(const backend::ShardRange& shard, int part, const float* values, DeviceMark ready) override {
    reduction_.take(shard.index, part, values, ready);
  }
  DeviceMark taken() override { return reduction_.taken(); }

 private:
  comm::DeviceReduction& reduction_;
};

}  // namespace

StepRunner::StepRunner(const nn::Graph& graph, backend::Executable& executable, comm::Communicator& comm,
                       int logical_shards, std::int64_t rounded)
    : executable_(executable),
      comm_(comm),
      layout_(graph),
      shape_{.shards = logical_shards, .size = layout_.size(), .rounded = rounded},
      parts_(executable.parts_here()) {}

void StepRunner::compute(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
                         const backend::StepKey& key, const comm::Note& note) {
  comm_.recycle(std::move(reduced_.sum));
  reduced_ = {};
  held_.reset();
  if (comm_.size() == 1 && shape_.rounded == 0) held_ = executable_.sum_here(batch, shards, key);
  if (held_) {
    reduced_.notes = {note};
    return;
  }
  if (compute_there(batch, shards, key, note)) return;
  reduction_ = comm_.begin_reduction(shape_, note);
  ReductionSink sink(*reduction_, layout_.size());
  executable_.enqueue(batch, shards, key, sink);
  executable_.synchronize();
  sink.rethrow();
}

// False: not with this executable, or not over this communicator.
bool StepRunner::compute_there(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
                               const backend::StepKey& key, const comm::Note& note) {
  if (parts_.empty()) return false;
  there_ = comm_.begin_device_reduction(shape_, parts_, note);
  if (!there_) return false;
  DeviceReductionSink sink(*there_);
  executable_.enqueue_here(batch, shards, key, sink);
  return true;
}

const std::vector<comm::Note>& StepRunner::reduce() {
  if (there_) {
    comm::DeviceSum sum = there_->finish();
    reduced_.notes = std::move(sum.notes);
    held_ = executable_.take_sum(sum.values);
  }
  if (reduction_) reduced_ = reduction_->finish();
  there_.reset();
  reduction_.reset();
  return reduced_.notes;
}

backend::StepMetrics StepRunner::metrics() const { return held_ ? *held_ : backend::metrics_of(layout_, reduced_.sum); }

void StepRunner::apply(const backend::Update& update) {
  if (held_) return executable_.apply_here(update);
  executable_.apply(reduced_.sum, update);
}

}  // namespace dtrain::train
