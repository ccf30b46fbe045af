#include "step.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <list>
#include <map>
#include <utility>

#include <dtrain/base/mutex.hpp>

#include "sign_of_life_sink.hpp"

namespace dtrain::train {
namespace {

// The work of a sink goes on until all shards are computed, and what it threw first is thrown then.
class Attempts {
 public:
  template <typename Work>
  void attempt(Work work) {
    {
      const MutexLock lock(mutex_);
      if (failure_) return;
    }
    try {
      work();
    } catch (...) {
      const MutexLock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }
  void rethrow() {
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  Mutex mutex_;
  std::exception_ptr failure_ DTRAIN_GUARDED_BY(mutex_);
};

// Memory of the reduction for the contributions of shards. When a peer is lost the shards that are under way still need
// memory: they get some that is never read.
class LeafMemory {
 public:
  LeafMemory(comm::Reduction& reduction, std::int64_t size, Attempts& attempts)
      : reduction_(reduction), size_(static_cast<std::size_t>(size)), attempts_(attempts) {}

  std::span<float> take(int shard) {
    std::span<float> memory;
    attempts_.attempt([&] { memory = reduction_.leaf(shard); });
    const MutexLock lock(mutex_);
    if (memory.empty()) return nobodys_.emplace_back(size_);
    return leaves_[shard] = memory;
  }
  std::span<float> of(int shard) {
    const MutexLock lock(mutex_);
    return leaves_.at(shard);
  }

 private:
  comm::Reduction& reduction_;
  const std::size_t size_;
  Attempts& attempts_;
  Mutex mutex_;
  std::list<std::vector<float>> nobodys_ DTRAIN_GUARDED_BY(mutex_);
  std::map<int, std::span<float>> leaves_ DTRAIN_GUARDED_BY(mutex_);  // [shard]
};

// Hands contributions to the reduction as they become final.
class ReductionSink final : public backend::DeferringSink {
 public:
  ReductionSink(comm::Reduction& reduction, std::int64_t size)
      : reduction_(reduction), memory_(reduction, size, attempts_) {}

  std::span<float> buffer(const backend::ShardRange& shard) override { return memory_.take(shard.index); }
  void ready(const backend::ShardRange& shard, std::int64_t first, std::int64_t size, bool) override {
    attempts_.attempt([&] { reduction_.ready(shard.index, first, size); });
  }
  void defer(const backend::ShardRange& shard, FloatRange part, std::shared_ptr<const DeferredFloats> floats) override {
    attempts_.attempt([&] { reduction_.defer(shard.index, part, std::move(floats)); });
  }
  void compute_deferred() override {
    attempts_.attempt([&] { reduction_.compute_deferred(); });
  }
  void rethrow() { attempts_.rethrow(); }

 private:
  comm::Reduction& reduction_;
  Attempts attempts_;
  LeafMemory memory_;
};

// Hands what a compressor makes of contributions to the reduction, as they become final.
class CompressingSink final : public backend::ContributionSink {
 public:
  CompressingSink(comm::Reduction& reduction, std::int64_t size, GradientCompressor& compressor)
      : reduction_(reduction), compressor_(compressor), memory_(reduction, size, attempts_) {}

  std::span<float> buffer(const backend::ShardRange& shard) override { return memory_.take(shard.index); }
  void ready(const backend::ShardRange& shard, std::int64_t first, std::int64_t size, bool) override {
    attempts_.attempt([&] {
      const std::int64_t gradients = std::clamp<std::int64_t>(compressor_.gradients() - first, 0, size);
      if (gradients > 0) {
        const FloatRange compressed = compressor_.take(shard.index, memory_.of(shard.index), {first, gradients});
        if (compressed.size > 0) reduction_.ready(shard.index, compressed.first, compressed.size);
      }
      if (gradients < size) reduction_.ready(shard.index, first + gradients, size - gradients);
    });
  }
  void rethrow() { attempts_.rethrow(); }

 private:
  comm::Reduction& reduction_;
  GradientCompressor& compressor_;
  Attempts attempts_;
  LeafMemory memory_;
};

// Collects the contribution of each shard and hands the left factors of it to the reduction.
class FactorSink final : public backend::ContributionSink {
 public:
  FactorSink(comm::Reduction& reduction, std::int64_t size, std::int64_t leaf, GradientCompressor& compressor)
      : reduction_(reduction), size_(size), leaf_(leaf), compressor_(compressor) {}

  std::span<float> buffer(const backend::ShardRange& shard) override {
    return compressor_.contribution(shard.index, size_);
  }
  void ready(const backend::ShardRange& shard, std::int64_t first, std::int64_t size, bool) override {
    if (!compressor_.collect(shard.index, {first, size})) return;
    attempts_.attempt([&] {
      compressor_.left_factors(shard.index, reduction_.leaf(shard.index));
      reduction_.ready(shard.index, 0, leaf_);
    });
  }
  void rethrow() { attempts_.rethrow(); }

 private:
  comm::Reduction& reduction_;
  const std::int64_t size_, leaf_;
  GradientCompressor& compressor_;
  Attempts attempts_;
};

// In double, in eight sums that a compiler can keep in one register.
double length_of(std::span<const float> values) {
  std::array<double, 8> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= values.size(); i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  for (; i < values.size(); ++i) sums[0] += double{values[i]} * values[i];
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

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

StepRunner::StepRunner(backend::Executable& executable, comm::Communicator& comm, const comm::ReductionShape& shape,
                       GradientCompressor* compressor)
    : executable_(executable), comm_(comm), shape_(shape), compressor_(compressor), parts_(executable.device_parts()) {}

void StepRunner::compute(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
                         const backend::StepKey& key, const comm::Note& note) {
  keep_for_next_step(std::move(reduced_.sum));
  reduced_ = {};
  if (!parts_.empty() && !compressor_) {
    if (comm_.size() == 1 && shape_.rounded == 0) {
      executable_.enqueue(batch, shards, key, backend::OwnSum{});
      reduced_.notes = {note};
      return;
    }
    on_device_ = comm_.begin_device_reduction(shape_, parts_, note);
    if (on_device_) {
      DeviceReductionSink sink(*on_device_);
      return executable_.enqueue(batch, shards, key, sink);
    }
  }
  if (meeting_) {
    meeting_->begin_step(shards);
    executable_.enqueue(batch, shards, key, *meeting_);
    executable_.synchronize();
  }
  const auto contribute = [&](auto&& sink) {
    if (meeting_) {
      meeting_->hand_over(shards, sink);
    } else {
      SignOfLifeSink watched(sink, sign_of_life_);
      executable_.enqueue(batch, shards, key, watched.as_sink());
      executable_.synchronize();
      watched.rethrow();
    }
    sink.rethrow();
  };
  if (compressor_ && compressor_->has_factors()) {
    const comm::ReductionShape shape = compressor_->left_shape(shape_);
    on_host_ = comm_.begin_reduction(shape, note);
    return contribute(FactorSink(*on_host_, shape_.size, shape.size, *compressor_));
  }
  if (compressor_) {
    on_host_ = comm_.begin_reduction(compressor_->shape(shape_), note);
    return contribute(CompressingSink(*on_host_, shape_.size, *compressor_));
  }
  on_host_ = comm_.begin_reduction(shape_, note);
  contribute(ReductionSink(*on_host_, shape_.size));
}

bool StepRunner::exchange() {
  if (on_device_) on_device_->exchange();
  return on_device_ != nullptr;
}

void StepRunner::wait_until_computed() { on_device_->wait_for_leaves(); }

const std::vector<comm::Note>& StepRunner::reduce() {
  if (on_device_) {
    comm::DeviceSum sum = on_device_->finish();
    reduced_.notes = std::move(sum.notes);
    metrics_ = executable_.set_sum(sum.values);
  } else if (on_host_) {
    reduced_ = on_host_->finish();
    on_host_.reset();
    if (compressor_ && compressor_->has_factors()) {
      reduced_.sum = add_factors(*compressor_, comm_, shape_, std::move(reduced_.sum), std::move(room_));
    } else if (compressor_) {
      compressor_->restore(reduced_.sum);
    }
    metrics_ = executable_.set_sum(reduced_.sum);
  } else {
    metrics_ = executable_.set_sum(backend::OwnSum{});
  }
  on_device_.reset();
  on_host_.reset();
  return reduced_.notes;
}

void StepRunner::keep_for_next_step(comm::FloatBuffer sum) {
  if (compressor_ && compressor_->has_factors()) {
    room_ = std::move(sum);
  } else {
    comm_.recycle(std::move(sum));
  }
}

std::optional<double> StepRunner::gradient_norm(std::size_t gradients) {
  if (metrics_.count <= 0) return std::nullopt;
  if (reduced_.sum.size() < gradients) return executable_.gradient_norm();
  return length_of(std::span(reduced_.sum).first(gradients)) / metrics_.count;
}

}  // namespace dtrain::train
