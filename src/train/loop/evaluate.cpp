#include <chrono>
#include <cstring>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/tree.hpp>
#include <dtrain/train/batch_feed.hpp>
#include <dtrain/train/image_sizes.hpp>

#include "detection/detection_score.hpp"
#include "evaluation.hpp"

namespace dtrain::train {
namespace {

// What one block counted, as it travels.
struct BlockSums {
  float loss = 0, correct = 0, top_k_correct = 0, count = 0;
};

std::vector<BlockSums> compute_blocks(const Evaluated& of, data::Loader& loader, const std::vector<data::Slice>& blocks,
                                      DetectionScore* found, const std::function<void()>& on_block) {
  std::vector<BlockSums> sums;
  std::vector<float> logits;
  const auto result = static_cast<std::size_t>(nn::result_size(of.graph));
  BatchFeed feed(loader, of.executable);
  feed.start(0, blocks);
  for (const data::Slice& slice : blocks) {
    const std::optional<FedBatch> fed = feed.next();
    // Fewer where records cannot be read: they count nowhere.
    DTRAIN_CHECK(fed && fed->batch.n <= slice.count, "the loader gave another batch than asked for");
    const backend::HostBatch samples = fed->host();
    if (of.grouped) of.grouped->use(fed->batch.shape);
    if (of.logits || found) logits.resize(static_cast<std::size_t>(samples.n) * result);
    const backend::StepMetrics metrics = of.executable.evaluate(samples, of.views, logits);
    if (of.logits) of.logits(samples, logits);
    if (found) found->add(samples, logits);
    sums.push_back({static_cast<float>(metrics.loss_sum), static_cast<float>(metrics.correct),
                    static_cast<float>(metrics.top_k_correct), static_cast<float>(metrics.count)});
    on_block();
  }
  return sums;
}

// Block i is the (i / ranks)-th of rank i mod ranks; past the last one there is nothing.
BlockSums block_of(const std::vector<std::string>& by_rank, int block, int blocks) {
  BlockSums sums;
  if (block >= blocks) return sums;
  const std::string& bytes = by_rank[static_cast<std::size_t>(block) % by_rank.size()];
  const std::size_t place = static_cast<std::size_t>(block) / by_rank.size() * sizeof sums;
  if (place + sizeof sums > bytes.size()) throw PeerLost("a rank evaluated other blocks than its own");
  std::memcpy(&sums, bytes.data() + place, sizeof sums);
  return sums;
}

// By the same tree as gradients, so the loss does not depend on the number of ranks either.
comm::FloatBuffer sum_in_order(const std::vector<std::string>& by_rank, int blocks) {
  constexpr std::int64_t kSums = sizeof(BlockSums) / sizeof(float);
  const int leaves = comm::power_of_two_at_least(blocks);
  const auto alone = comm::make_single();
  const auto reduction = alone->begin_reduction({.shards = leaves, .size = kSums}, {});
  for (int block = 0; block < leaves; ++block) {
    const BlockSums sums = block_of(by_rank, block, blocks);
    std::memcpy(reduction->leaf(block).data(), &sums, sizeof sums);
    reduction->ready(block, 0, kSums);
  }
  return reduction->finish().sum;
}

}  // namespace

EvaluationReport evaluate_blocks(const Evaluated& of, data::Loader& loader, int block, comm::Communicator& comm,
                                 const std::function<void()>& on_block) {
  const auto begin = std::chrono::steady_clock::now();
  const EpochPlan plan{.samples = loader.size(), .global_batch = block, .last = last_steps(loader.groups(), block)};
  std::optional<DetectionScore> found;
  if (nn::detection_of(of.graph)) found.emplace(of.graph);
  const std::vector<BlockSums> mine = compute_blocks(of, loader, evaluation_blocks(plan, comm.rank(), comm.size()),
                                                     found ? &*found : nullptr, on_block);
  const std::vector<std::string> all = comm.all_gather(std::as_bytes(std::span(mine)));
  const comm::FloatBuffer sum = sum_in_order(all, static_cast<int>(plan.steps_from(0)));
  const double count = sum[3];
  EvaluationReport report{.epoch = 0,
                          .samples = static_cast<std::uint64_t>(count),
                          .loss = sum[0] / count,
                          .accuracy = sum[1] / count,
                          .top_k_accuracy = sum[2] / count};
  if (found) found->finish(comm, report);
  report.time = std::chrono::steady_clock::now() - begin;
  return report;
}

EvaluationReport evaluate(const nn::Graph& graph, backend::Executable& executable, data::Loader& loader, int block,
                          int views, comm::Communicator& comm, const LogitsSink& logits) {
  auto* const grouped = dynamic_cast<GroupedExecutable*>(&executable);
  return evaluate_blocks({graph, executable, nn::image_views(views), logits, grouped}, loader, block, comm, [] {});
}

}  // namespace dtrain::train
