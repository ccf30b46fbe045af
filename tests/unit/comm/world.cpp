#include "world.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/error.hpp>

namespace dtrain::comm {
namespace {

constexpr std::size_t kLongestLeaf = 1'100'000;

// Leaves and sums that were asked for before: computing them anew takes longer than the tests.
struct Known {
  std::mutex mutex;
  std::map<int, std::vector<float>> leaves;
  std::map<std::tuple<int, std::int64_t, std::int64_t>, std::vector<float>> sums;
};
Known& known() {
  static Known k;
  return k;
}

const std::vector<float>& leaf_of(int shard) {
  const std::lock_guard lock(known().mutex);
  std::vector<float>& leaf = known().leaves[shard];
  if (leaf.empty()) {
    leaf.resize(kLongestLeaf);
    for (std::size_t i = 0; i < leaf.size(); ++i) leaf[i] = awkward(shard, static_cast<std::int64_t>(i));
  }
  return leaf;
}

void round_prefix(std::vector<float>& values, std::int64_t rounded) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(rounded); ++i) {
    values[i] = from_bfloat16(to_bfloat16(values[i]));
  }
}

std::vector<float> sum_of_tree(int first, int last, const ReductionShape& shape) {
  std::vector<float> sum;
  if (last - first == 1) {
    const std::vector<float>& leaf = leaf_of(first);
    sum.assign(leaf.begin(), leaf.begin() + shape.size);
  } else {
    const int middle = (first + last) / 2;
    sum = sum_of_tree(first, middle, shape);
    const std::vector<float> right = sum_of_tree(middle, last, shape);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  }
  round_prefix(sum, shape.rounded);
  return sum;
}

}  // namespace

float awkward(int shard, std::int64_t i) {
  return (shard % 2 ? 1e8f : 1.0f) / static_cast<float>(shard + 3) + static_cast<float>(i % 1013) * 0.37f;
}

const std::vector<float>& direct_tree(const ReductionShape& shape) {
  const auto key = std::tuple(shape.shards, shape.size, shape.rounded);
  {
    const std::lock_guard lock(known().mutex);
    if (const auto found = known().sums.find(key); found != known().sums.end()) return found->second;
  }
  std::vector<float> sum = sum_of_tree(0, shape.shards, shape);
  const std::lock_guard lock(known().mutex);
  return known().sums.try_emplace(key, std::move(sum)).first->second;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

std::shared_ptr<const DeferredFloats> deferred_leaf(int shard) {
  class Leaf final : public DeferredFloats {
   public:
    explicit Leaf(int shard) : values_(leaf_of(shard)) {}
    void add_up(std::span<const DeferredFloats* const> leaves, std::int64_t first,
                std::span<float> out) const override {
      if (leaves.size() == 1) {
        std::copy_n(dynamic_cast<const Leaf&>(*leaves.front()).values_.begin() + first, out.size(), out.begin());
        return;
      }
      std::vector<float> right(out.size());
      add_up(leaves.first(leaves.size() / 2), first, out);
      add_up(leaves.subspan(leaves.size() / 2), first, right);
      std::ranges::transform(out, right, out.begin(), std::plus());
    }

   private:
    const std::vector<float>& values_;
  };
  return std::make_shared<Leaf>(shard);
}

Reduced reduce(Communicator& comm, const ReductionShape& shape, int parts) {
  const auto reduction = comm.begin_reduction(shape, {{static_cast<std::uint64_t>(comm.rank()), 7, 0, 1}});
  const ShardSpan span = shape.span_of(comm.rank(), comm.size());
  for (int shard = span.first; shard < span.last; ++shard) {
    const std::span<float> leaf = reduction->leaf(shard);
    for (int part = parts - 1; part >= 0; --part) {
      const std::int64_t begin = shape.size * part / parts, size = shape.size * (part + 1) / parts - begin;
      if (part > 0 && shard % 8 != 5) {
        reduction->defer(shard, {begin, size}, deferred_leaf(shard));
        reduction->compute_deferred();
      } else {
        std::copy_n(leaf_of(shard).begin() + begin, size, leaf.begin() + begin);
        reduction->ready(shard, begin, size);
      }
    }
  }
  return reduction->finish();
}

Reduced reduce_on_device(Communicator& comm, Accelerator& device, const ReductionShape& shape,
                         const std::vector<FloatRange>& parts) {
  const std::size_t bytes = static_cast<std::size_t>(shape.size) * sizeof(float);
  const ShardSpan span = shape.span_of(comm.rank(), comm.size());
  const auto release = [&](std::byte* memory) { device.release(memory); };
  const std::unique_ptr<std::byte, decltype(release)> memory(device.allocate(bytes), release);
  Reduced reduced{FloatBuffer(shape.size), {}};
  const auto reduction = comm.begin_device_reduction(shape, parts, {{static_cast<std::uint64_t>(comm.rank())}});
  reduction->begin({});
  for (int shard = span.first; shard < span.last; ++shard) {
    device.upload(memory.get(), leaf_of(shard).data(), bytes);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      reduction->take(shard, static_cast<int>(part), reinterpret_cast<float*>(memory.get()) + parts[part].first, {});
    }
    device.wait_for(reduction->taken());
  }
  DeviceSum sum = reduction->finish();
  device.download(reduced.sum.data(), sum.values, bytes);
  reduced.notes = std::move(sum.notes);
  return reduced;
}

std::vector<std::string> run_ranks(const std::vector<std::unique_ptr<Communicator>>& world,
                                   const std::function<void(Communicator&)>& work) {
  std::vector<std::string> thrown(world.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(*world[rank]);
      } catch (const PeerLost& error) {
        thrown[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

}  // namespace dtrain::comm
