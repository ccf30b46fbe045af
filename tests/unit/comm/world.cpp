#include "world.hpp"

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/error.hpp>

namespace dtrain::comm {
namespace {

void round_prefix(std::vector<float>& values, std::int64_t rounded) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(rounded); ++i) {
    values[i] = from_bfloat16(to_bfloat16(values[i]));
  }
}

void fill(std::span<float> leaf, int shard) {
  for (std::size_t i = 0; i < leaf.size(); ++i) leaf[i] = awkward(shard, static_cast<std::int64_t>(i));
}

}  // namespace

std::vector<float> direct_tree(int first, int last, const ReductionShape& shape) {
  std::vector<float> sum(static_cast<std::size_t>(shape.size));
  if (last - first == 1) {
    fill(sum, first);
  } else {
    const int middle = (first + last) / 2;
    sum = direct_tree(first, middle, shape);
    const std::vector<float> right = direct_tree(middle, last, shape);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  }
  round_prefix(sum, shape.rounded);
  return sum;
}

Reduced reduce(Communicator& comm, const ReductionShape& shape, int parts) {
  const auto reduction = comm.begin_reduction(shape, {{static_cast<std::uint64_t>(comm.rank()), 7, 0, 1}});
  const ShardSpan span = shards_of_rank(comm.rank(), comm.size(), shape.shards);
  for (int shard = span.first; shard < span.last; ++shard) {
    fill(reduction->leaf(shard), shard);
    for (int part = parts - 1; part >= 0; --part) {
      const std::int64_t begin = shape.size * part / parts, end = shape.size * (part + 1) / parts;
      reduction->ready(shard, begin, end - begin);
    }
  }
  return reduction->finish();
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
