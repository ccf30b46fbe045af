#include "device_sums.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::comm::nccl {

DeviceSums::DeviceSums(Accelerator& device, const ReductionShape& shape, const std::vector<FloatRange>& ranges,
                       int rank, int ranks, bool any_order)
    : device_(device),
      shape_(shape),
      ranges_(ranges),
      span_(shape.span_of(rank, ranks)),
      rank_(rank),
      any_order_(any_order),
      merge_(shape.spans_of(ranks)),
      local_(plan_local_sums(span_)) {
  for (const Bucket& part : parts_of(shape, ranges)) plans_.push_back(plan_exchange(merge_, part, rank, ranks));
  const int slots = any_order ? std::max(1, local_.slots) : local_.slots;
  for (int index = 0; index < slots; ++index) slots_.push_back(allocate(0, shape.size, shape.rounded));
  sum_ = allocate(0, shape.size, shape.rounded);
  for (int part = 0; part < parts() && !any_order; ++part) {
    const Chunk& own = plan(part).own;
    for (int node = 0; node < merge_.pieces() && own.size > 0; ++node) {
      if (merge_[node].rank == rank) continue;
      received_.emplace(Key{part, node}, allocate(own.first, own.size, plan(part).part.rounded ? own.size : 0));
    }
  }
}

bool DeviceSums::is_for(const ReductionShape& shape, const std::vector<FloatRange>& ranges) const {
  return shape_ == shape && ranges_ == ranges;
}

DeviceSums::Row DeviceSums::allocate(std::int64_t first, std::int64_t size, std::int64_t rounded) {
  Row row;
  row.first = first;
  row.memory = std::make_unique<DeviceMemory>(device_, static_cast<std::uint64_t>(size) * sizeof(float));
  if (rounded > 0) {
    row.narrow_memory =
        std::make_unique<DeviceMemory>(device_, static_cast<std::uint64_t>(rounded) * sizeof(bfloat16_bits));
  }
  return row;
}

const DeviceSums::Row& DeviceSums::row(int part, int node) const {
  if (node < 0) return sum_;
  if (merge_[node].rank != rank_) return received_.at({part, node});
  int before = 0;  // pieces of lower ranks come first
  while (merge_[before].rank != rank_) ++before;
  return slot(node - before);
}

void DeviceSums::take(int shard, int index, const float* values) {
  const Bucket& part = plan(index).part;
  const LeafPlace& place = local_.leaves[static_cast<std::size_t>(shard - span_.first)];
  const Row& to = slot(place.slot);
  if (part.rounded) {
    device_.narrow(to.narrow_at(part.first), values, part.size);
    device_.widen(to.at(part.first), to.narrow_at(part.first), part.size);
  } else {
    device_.copy(to.at(part.first), values, part.size);
  }
  for (int k = 0; k < place.additions; ++k) add_slots(part, place.slot - k - 1, place.slot - k);
}

void DeviceSums::add_slots(const Bucket& part, int left, int right) {
  float* const sum = slot(left).at(part.first);
  device_.add(sum, sum, slot(right).at(part.first), part.size, part.rounded);
}

void DeviceSums::exchange(int part, Link& link, Clock::time_point deadline) {
  if (any_order_) return exchange_in_any_order(plan(part).part, link, deadline);
  exchange_by_tree(part, link, deadline);
}

void DeviceSums::exchange_by_tree(int part, Link& link, Clock::time_point deadline) {
  const ExchangePlan& plan = this->plan(part);
  transfer(part, link, plan.piece_sends, plan.piece_receptions, deadline);
  join(part);
  transfer(part, link, plan.sum_sends, plan.sum_receptions, deadline);
}

void DeviceSums::exchange_in_any_order(const Bucket& part, Link& link, Clock::time_point deadline) {
  for (int right = 1; right < local_.pieces; ++right) add_slots(part, 0, right);
  const Row& mine = slot(0);
  if (!has_leaves()) device_.clear(mine.at(part.first), part.size);
  if (!part.rounded) {
    return link.all_reduce(mine.at(part.first), sum_.at(part.first), part.size, DataType::float32, deadline);
  }
  device_.narrow(mine.narrow_at(part.first), mine.at(part.first), part.size);
  link.all_reduce(mine.narrow_at(part.first), sum_.narrow_at(part.first), part.size, DataType::bfloat16, deadline);
  device_.widen(sum_.at(part.first), sum_.narrow_at(part.first), part.size);
}

// A joined node takes the place of its left child.
void DeviceSums::join(int part) {
  const ExchangePlan& plan = this->plan(part);
  const Chunk& own = plan.own;
  if (own.size == 0) return;
  std::map<int, float*> found;
  for (int node = 0; node < merge_.pieces(); ++node) found[node] = row(part, node).at(own.first);
  for (const Join& join : plan.joins) {
    float* const left = found.at(join.left);
    device_.add(left, left, found.at(join.right), own.size, plan.part.rounded);
    found[join.node] = left;
  }
  device_.copy(sum_.at(own.first), found.at(plan.root), own.size);
}

void DeviceSums::transfer(int part, Link& link, const std::vector<Transfer>& sends,
                          const std::vector<Transfer>& receptions, Clock::time_point deadline) {
  if (sends.empty() && receptions.empty()) return;
  const bool rounded = plan(part).part.rounded;
  const auto place = [&](const Transfer& one) -> void* {
    const Row& where = row(part, one.node);
    return rounded ? static_cast<void*>(where.narrow_at(one.chunk.first)) : where.at(one.chunk.first);
  };
  const DataType type = rounded ? DataType::bfloat16 : DataType::float32;
  if (rounded) narrow_before(part, sends);
  link.group(
      [&] {
        for (const Transfer& one : sends) link.send(place(one), one.chunk.size, type, one.peer);
        for (const Transfer& one : receptions) link.receive(place(one), one.chunk.size, type, one.peer);
      },
      deadline);
  if (!rounded) return;
  for (const Transfer& one : receptions) {
    const Row& to = row(part, one.node);
    device_.widen(to.at(one.chunk.first), to.narrow_at(one.chunk.first), one.chunk.size);
  }
}

// The sum of a chunk goes to all peers, one after another.
void DeviceSums::narrow_before(int part, const std::vector<Transfer>& sends) {
  const Transfer* last = nullptr;
  for (const Transfer& one : sends) {
    const bool is_done = last && last->node == one.node && last->chunk.first == one.chunk.first;
    last = &one;
    if (is_done) continue;
    const Row& from = row(part, one.node);
    device_.narrow(from.narrow_at(one.chunk.first), from.at(one.chunk.first), one.chunk.size);
  }
}

}  // namespace dtrain::comm::nccl
