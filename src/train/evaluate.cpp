#include <dtrain/base/error.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::train {
namespace {

constexpr std::int64_t kMetrics = backend::ContributionLayout::metrics;

comm::TreePiece leaf(std::uint64_t block, const backend::StepMetrics& metrics) {
  return {{0, static_cast<int>(block)},
          {static_cast<float>(metrics.loss_sum), static_cast<float>(metrics.correct),
           static_cast<float>(metrics.top_k_correct), static_cast<float>(metrics.count)}};
}

}  // namespace

// Block by block, then by the same tree as gradients, so the loss does not depend on the number of ranks either.
EvaluationReport evaluate(backend::Executable& executable, data::Loader& loader, int block, comm::Communicator& comm) {
  const std::uint64_t samples = loader.size();
  const std::uint64_t blocks = (samples + static_cast<std::uint64_t>(block) - 1) / static_cast<std::uint64_t>(block);
  const int leaves = comm::power_of_two_at_least(static_cast<int>(blocks));

  std::vector<comm::TreePiece> pieces;
  const std::vector<data::Slice> mine = evaluation_blocks(samples, block, comm.rank(), comm.size());
  loader.start(0, mine);
  for (const data::Slice& slice : mine) {
    const std::optional<data::Batch> batch = loader.next();
    DTRAIN_CHECK(batch && batch->n == slice.count, "the loader gave another batch than asked for");
    const backend::StepMetrics metrics =
        executable.evaluate({batch->n, batch->images, batch->labels, batch->sample_ids});
    pieces.push_back(leaf(slice.first / static_cast<std::uint64_t>(block), metrics));
  }
  if (comm.rank() == 0) {
    for (std::uint64_t missing = blocks; missing < static_cast<std::uint64_t>(leaves); ++missing) {
      pieces.push_back(leaf(missing, {}));
    }
  }

  const std::vector<float> sum = comm.reduce_tree(std::move(pieces), leaves, kMetrics);
  const double count = sum[3];
  return {.epoch = 0,
          .samples = static_cast<std::uint64_t>(count),
          .loss = sum[0] / count,
          .accuracy = sum[1] / count,
          .top_k_accuracy = sum[2] / count};
}

}  // namespace dtrain::train
