#include "nccl/device_sums.hpp"

#include <algorithm>

namespace dtrain::comm::nccl {

DeviceSums::DeviceSums(Accelerator& device, const MergePlan& merge, const ExchangePlan& plan, int rank)
    : device_(device), plan_(plan) {
  for (int index = 0; index < static_cast<int>(plan.parts.size()); ++index) {
    const Chunk whole{part(index).first, part(index).size};
    for (int node = 0; node < merge.pieces(); ++node) {
      const Chunk& needed = merge[node].rank == rank ? whole : own(index);
      if (needed.size > 0) nodes_.emplace(Key{index, node}, allocate(part(index), needed));
    }
    sums_.push_back(allocate(part(index), whole));
  }
}

DeviceSums::Values DeviceSums::allocate(const Bucket& part, Chunk chunk) {
  Values values;
  const auto size = static_cast<std::uint64_t>(chunk.size);
  values.floats = std::make_unique<DeviceFloats>(device_, size * sizeof(float));
  if (part.rounded) values.narrow = std::make_unique<DeviceFloats>(device_, size * sizeof(bfloat16_bits));
  values.first = chunk.first;
  return values;
}

// A bucket has no float of two parts.
void DeviceSums::upload(int node, std::int64_t first, const float* values, std::int64_t size) {
  const auto holder = std::ranges::find_if(
      plan_.parts, [&](const Bucket& part) { return first >= part.first && first < part.first + part.size; });
  const Key key{static_cast<int>(holder - plan_.parts.begin()), node};
  device_.upload(nodes_.at(key).at(first), values, static_cast<std::size_t>(size) * sizeof(float));
}

void DeviceSums::exchange_pieces(Link& link, Clock::time_point deadline) {
  transfer(link, plan_.piece_sends, plan_.piece_receptions, deadline);
}

void DeviceSums::exchange_sums(Link& link, Clock::time_point deadline) {
  transfer(link, plan_.sum_sends, plan_.sum_receptions, deadline);
}

// A joined node takes the place of its left child.
void DeviceSums::add_up() {
  std::map<Key, float*> found;
  for (auto& [key, values] : nodes_) {
    if (own(key.part).size > 0) found[key] = values.at(own(key.part).first);
  }
  for (const Join& join : plan_.joins) {
    float* const left = found.at({join.part, join.left});
    device_.add(left, left, found.at({join.part, join.right}), own(join.part).size, part(join.part).rounded);
    found[{join.part, join.node}] = left;
  }
  for (int index = 0; index < static_cast<int>(plan_.parts.size()); ++index) {
    const Chunk& chunk = own(index);
    if (chunk.size == 0) continue;
    device_.copy(sums_[static_cast<std::size_t>(index)].at(chunk.first), found.at({index, plan_.root}), chunk.size);
  }
}

void DeviceSums::download(float* sum) {
  for (const Values& values : sums_) {
    const Bucket& bucket = part(static_cast<int>(&values - sums_.data()));
    device_.download(sum + bucket.first, values.floats->floats(),
                     static_cast<std::size_t>(bucket.size) * sizeof(float));
  }
}

void DeviceSums::transfer(Link& link, const std::vector<Transfer>& sends, const std::vector<Transfer>& receptions,
                          Clock::time_point deadline) {
  if (sends.empty() && receptions.empty()) return;
  narrow_before(sends);
  link.group(
      [&] {
        for (const Transfer& one : sends) {
          const Values& from = values(one);
          if (part(one.part).rounded) {
            link.send(from.narrow_at(one.chunk.first), one.chunk.size, DataType::bfloat16, one.peer);
          } else {
            link.send(from.at(one.chunk.first), one.chunk.size, DataType::float32, one.peer);
          }
        }
        for (const Transfer& one : receptions) {
          const Values& to = values(one);
          if (part(one.part).rounded) {
            link.receive(to.narrow_at(one.chunk.first), one.chunk.size, DataType::bfloat16, one.peer);
          } else {
            link.receive(to.at(one.chunk.first), one.chunk.size, DataType::float32, one.peer);
          }
        }
      },
      deadline);
  widen_after(receptions);
}

// The sum of a chunk goes to all peers, one after another.
void DeviceSums::narrow_before(const std::vector<Transfer>& sends) {
  const Transfer* last = nullptr;
  for (const Transfer& one : sends) {
    const std::int64_t first = one.chunk.first;
    const bool is_done = last && last->part == one.part && last->node == one.node && last->chunk.first == first;
    last = &one;
    if (is_done || !part(one.part).rounded) continue;
    device_.narrow(values(one).narrow_at(first), values(one).at(first), one.chunk.size);
  }
}

void DeviceSums::widen_after(const std::vector<Transfer>& receptions) {
  for (const Transfer& one : receptions) {
    const std::int64_t first = one.chunk.first;
    if (part(one.part).rounded) device_.widen(values(one).at(first), values(one).narrow_at(first), one.chunk.size);
  }
}

}  // namespace dtrain::comm::nccl
