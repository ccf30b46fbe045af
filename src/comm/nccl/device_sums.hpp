// Memory of a reduction on a rank's GPU, and the additions there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <dtrain/base/accelerator.hpp>

#include "exchange_plan.hpp"
#include "link.hpp"
#include "local_sums.hpp"

namespace dtrain::comm::nccl {

class DeviceMemory {
 public:
  DeviceMemory(Accelerator& device, std::uint64_t bytes) : device_(device), data_(device.allocate(bytes)) {}
  ~DeviceMemory() { device_.release(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  std::byte* data() const { return data_; }

 private:
  Accelerator& device_;
  std::byte* data_;
};

// The memory of one shape of reductions, used again by each of them. All work is queued; no call waits for it.
class DeviceSums {
 public:
  // Rank `rank` of `ranks`. `any_order`: NCCL adds the ranks' sums up as it likes, not by the tree.
  DeviceSums(Accelerator& device, const ReductionShape& shape, const std::vector<FloatRange>& ranges, int rank,
             int ranks, bool any_order);
  bool is_for(const ReductionShape& shape, const std::vector<FloatRange>& ranges) const;
  int parts() const { return static_cast<int>(plans_.size()); }
  // Whether this shard is the rank's last one.
  bool is_last(int shard) const { return shard + 1 == span_.last; }
  bool has_leaves() const { return span_.first < span_.last; }

  // Part `part` of the leaf of `shard`, which lies at `values`, is added to what there is of the rank's.
  void take(int shard, int part, const float* values);
  // After the last take() of that part. All ranks, in the same order of parts.
  void exchange(int part, Link& link, Clock::time_point deadline);
  float* sum() const { return sum_.floats(); }

 private:
  // Floats, from position `first` of the leaf on, and what travels in their place where they are rounded.
  struct Row {
    std::unique_ptr<DeviceMemory> memory, narrow_memory;
    std::int64_t first = 0;
    float* floats() const { return reinterpret_cast<float*>(memory->data()); }
    float* at(std::int64_t position) const { return floats() + (position - first); }
    bfloat16_bits* narrow_at(std::int64_t position) const {
      return reinterpret_cast<bfloat16_bits*>(narrow_memory->data()) + (position - first);
    }
  };
  using Key = std::pair<int, int>;  // part, node

  Row allocate(std::int64_t first, std::int64_t size, std::int64_t rounded);
  const ExchangePlan& plan(int part) const { return plans_[static_cast<std::size_t>(part)]; }
  const Row& slot(int index) const { return slots_[static_cast<std::size_t>(index)]; }
  // Where a node's floats are: of this rank's pieces in its slots, of others' in what came from them.
  const Row& row(int part, int node) const;
  void add_slots(const Bucket& part, int left, int right);
  void exchange_by_tree(int part, Link& link, Clock::time_point deadline);
  void exchange_in_any_order(const Bucket& part, Link& link, Clock::time_point deadline);
  void transfer(int part, Link& link, const std::vector<Transfer>& sends, const std::vector<Transfer>& receptions,
                Clock::time_point deadline);
  void narrow_before(int part, const std::vector<Transfer>& sends);
  void join(int part);

  Accelerator& device_;
  const ReductionShape shape_;
  const std::vector<FloatRange> ranges_;
  const ShardSpan span_;
  const int rank_;
  const bool any_order_;
  const MergePlan merge_;
  const LocalSums local_;
  std::vector<ExchangePlan> plans_;  // [part]
  std::vector<Row> slots_;           // whole leaves
  std::map<Key, Row> received_;      // chunks
  Row sum_;
};

}  // namespace dtrain::comm::nccl
