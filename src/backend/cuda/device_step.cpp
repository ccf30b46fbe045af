// CudaExecutable: steps whose sum stays on the device.
#include <bit>

#include <dtrain/base/error.hpp>

#include "executable.hpp"

namespace dtrain::backend::cuda {

float* CudaExecutable::sum_on_device(const Samples& samples, std::span<const ShardRange> shards) {
  DTRAIN_CHECK(std::has_single_bit(shards.size()), "not all shards of a step");
  if (shards.size() == 1 && shards.front().count > 0 && updates_from_copies()) {
    compute_shard(samples, shards.front(), false);
    gradients_in_copies_ = true;
    return at<float>(Part::contribution);
  }
  // A stack of complete subtrees, the larger ones first; levels[k] is the level of the one in slot k.
  std::vector<int> levels;
  auto* const leaf = at<float>(Part::contribution);
  const std::int64_t size = contribution_.size();
  for (const ShardRange& shard : shards) {
    compute_leaf(samples, shard);
    float* right = leaf;
    int level = 0;
    for (; !levels.empty() && levels.back() == level; ++level) {
      levels.pop_back();
      float* const left = slot(levels.size());
      run_once({{"sum of two shards", Accumulate{right, left, size}}});
      right = left;
    }
    if (right == leaf && shards.size() > 1) run_once({{"sum of shards", Copy{leaf, slot(levels.size()), size}}});
    levels.push_back(level);
  }
  return shards.size() > 1 ? slot(0) : leaf;
}

std::vector<FloatRange> CudaExecutable::device_parts() const {
  std::vector<FloatRange> ranges;
  for (const ContributionPart& part : parts_) ranges.push_back(part.floats);
  return ranges;
}

void CudaExecutable::compute_on_device(const Samples& samples, std::span<const ShardRange> shards, DeviceSink& sink) {
  sink.begin(device_->mark());
  for (const ShardRange& shard : shards) {
    // The shard before it lies where this one will. Behind the last one the GPU is free for the next work.
    if (shard.index != shards.front().index) device_->wait_for(sink.taken());
    hand_over(samples, shard, sink);
  }
}

void CudaExecutable::hand_over(const Samples& batch, const ShardRange& shard, DeviceSink& sink) {
  const Recording* const recording = shard.count > 0 ? &compute_shard(batch, shard) : nullptr;
  if (!recording) compute_leaf(batch, shard);
  const DeviceMark all = recording ? DeviceMark{} : device_->mark();
  for (int part = 0; part < static_cast<int>(parts_.size()); ++part) {
    const float* const values = at<float>(Part::contribution) + parts_[static_cast<std::size_t>(part)].floats.first;
    sink.take(shard, part, values, recording ? recording->mark(part) : all);
  }
}

void CudaExecutable::compute_leaf(const Samples& batch, const ShardRange& shard) {
  if (shard.count > 0) {
    compute_shard(batch, shard);
  } else {
    run_once({{"an empty shard", Fill{at<float>(Part::contribution), contribution_.size(), 0.0f}}});
  }
}

float* CudaExecutable::slot(std::size_t index) {
  const auto bytes = static_cast<std::uint64_t>(contribution_.size()) * sizeof(float);
  while (slots_.size() <= index) slots_.push_back(std::make_unique<DeviceMemory>(*device_, bytes));
  return reinterpret_cast<float*>(slots_[index]->data());
}

}  // namespace dtrain::backend::cuda
