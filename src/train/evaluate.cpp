#include <array>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/tree.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::train {
namespace {

using Leaf = std::array<float, backend::ContributionLayout::metrics>;

Leaf leaf_of(const backend::StepMetrics& metrics) {
  return {static_cast<float>(metrics.loss_sum), static_cast<float>(metrics.correct),
          static_cast<float>(metrics.top_k_correct), static_cast<float>(metrics.count)};
}

std::vector<Leaf> evaluate_mine(backend::Executable& executable, data::Loader& loader, int block,
                                const comm::Communicator& comm) {
  const std::vector<data::Slice> mine = evaluation_blocks(loader.size(), block, comm.rank(), comm.size());
  std::vector<Leaf> leaves;
  loader.start(0, mine);
  for (const data::Slice& slice : mine) {
    const std::optional<data::Batch> batch = loader.next();
    DTRAIN_CHECK(batch && batch->n == slice.count, "the loader gave another batch than asked for");
    leaves.push_back(leaf_of(executable.evaluate({batch->n, batch->images, batch->labels, batch->sample_ids})));
  }
  return leaves;
}

// By block: block i is number i / ranks of rank i mod ranks.
std::vector<Leaf> leaves_of_all(const std::vector<std::string>& gathered, std::size_t blocks) {
  std::vector<Leaf> leaves(blocks);
  for (std::size_t i = 0; i < blocks; ++i) {
    const std::string& bytes = gathered[i % gathered.size()];
    const std::size_t position = i / gathered.size() * sizeof(Leaf);
    if (position + sizeof(Leaf) > bytes.size()) throw PeerLost("a rank evaluated fewer blocks than the others expect");
    std::memcpy(leaves[i].data(), bytes.data() + position, sizeof(Leaf));
  }
  return leaves;
}

// By the same tree as gradients, so the loss does not depend on the number of ranks either.
std::vector<float> sum_of(const std::vector<Leaf>& leaves) {
  const int shards = comm::power_of_two_at_least(static_cast<int>(leaves.size()));
  const auto alone = comm::make_single();
  const auto reduction = alone->begin_reduction({.shards = shards, .size = std::tuple_size_v<Leaf>}, {});
  for (int shard = 0; shard < shards; ++shard) {
    const auto i = static_cast<std::size_t>(shard);
    const Leaf leaf = i < leaves.size() ? leaves[i] : Leaf{};
    std::memcpy(reduction->leaf(shard).data(), leaf.data(), sizeof(Leaf));
    reduction->ready(shard, 0, std::tuple_size_v<Leaf>);
  }
  return reduction->finish().sum;
}

}  // namespace

EvaluationReport evaluate(backend::Executable& executable, data::Loader& loader, int block, comm::Communicator& comm) {
  const std::vector<Leaf> mine = evaluate_mine(executable, loader, block, comm);
  const std::vector<std::string> gathered = comm.all_gather(std::as_bytes(std::span(mine)));
  const std::uint64_t blocks =
      (loader.size() + static_cast<std::uint64_t>(block) - 1) / static_cast<std::uint64_t>(block);
  const std::vector<float> sum = sum_of(leaves_of_all(gathered, blocks));
  const double count = sum[3];
  return {.epoch = 0,
          .samples = static_cast<std::uint64_t>(count),
          .loss = sum[0] / count,
          .accuracy = sum[1] / count,
          .top_k_accuracy = sum[2] / count};
}

}  // namespace dtrain::train
