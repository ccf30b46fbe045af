#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/tree.hpp>
#include <dtrain/train/batch_feed.hpp>
#include <dtrain/train/image_sizes.hpp>

#include "evaluation.hpp"

namespace dtrain::train {

Evaluation::Evaluation(const Evaluated& of, data::Loader& loader, int block, comm::Communicator& comm)
    : of_(of),
      loader_(loader),
      comm_(comm),
      plan_{.samples = loader.size(), .global_batch = block, .last = last_steps(loader.groups(), block)} {
  if (nn::detection_of(of.graph)) found_.emplace(of.graph);
}

void Evaluation::compute(const std::function<void()>& on_block) {
  const std::vector<data::Slice> blocks = evaluation_blocks(plan_, comm_.rank(), comm_.size());
  std::vector<float> logits;
  const auto result = static_cast<std::size_t>(nn::result_size(of_.graph));
  BatchFeed feed(loader_, of_.executable);
  feed.start(0, blocks);
  for (const data::Slice& slice : blocks) {
    const std::optional<FedBatch> fed = feed.next();
    // Fewer where records cannot be read: they count nowhere.
    DTRAIN_CHECK(fed && fed->batch.n <= slice.count, "the loader gave another batch than asked for");
    const backend::HostBatch samples = fed->host();
    if (of_.grouped) of_.grouped->use(fed->batch.shape);
    if (of_.logits || found_) logits.resize(static_cast<std::size_t>(samples.n) * result);
    const backend::StepMetrics metrics = of_.executable.evaluate(samples, of_.views, logits);
    if (of_.logits) of_.logits(samples, logits);
    if (found_) found_->add(samples, logits);
    mine_.push_back({static_cast<float>(metrics.loss_sum), static_cast<float>(metrics.correct),
                     static_cast<float>(metrics.top_k_correct), static_cast<float>(metrics.count)});
    on_block();
  }
}

// Block i is the (i / ranks)-th of rank i mod ranks; past the last one there is nothing.
Evaluation::BlockSums Evaluation::block_of(const std::vector<std::string>& by_rank, int block, int blocks) {
  BlockSums sums;
  if (block >= blocks) return sums;
  const std::string& bytes = by_rank[static_cast<std::size_t>(block) % by_rank.size()];
  const std::size_t place = static_cast<std::size_t>(block) / by_rank.size() * sizeof sums;
  if (place + sizeof sums > bytes.size()) throw PeerLost("a rank evaluated other blocks than its own");
  std::memcpy(&sums, bytes.data() + place, sizeof sums);
  return sums;
}

// By the same tree as gradients, so the loss does not depend on the number of ranks either.
comm::FloatBuffer Evaluation::sum_in_order(const std::vector<std::string>& by_rank, int blocks) {
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

EvaluationReport Evaluation::finish() const {
  const std::vector<std::string> all = comm_.all_gather(std::as_bytes(std::span(mine_)));
  const comm::FloatBuffer sum = sum_in_order(all, static_cast<int>(plan_.steps_from(0)));
  const double count = sum[3];
  EvaluationReport report{.epoch = 0,
                          .samples = static_cast<std::uint64_t>(count),
                          .loss = sum[0] / count,
                          .accuracy = sum[1] / count,
                          .top_k_accuracy = sum[2] / count};
  if (found_) found_->finish(comm_, report);
  report.time = std::chrono::steady_clock::now() - begin_;
  return report;
}

EvaluationReport evaluate(const nn::Graph& graph, backend::Executable& executable, data::Loader& loader, int block,
                          int views, comm::Communicator& comm, const LogitsSink& logits) {
  auto* const grouped = dynamic_cast<GroupedExecutable*>(&executable);
  Evaluation evaluation({graph, executable, nn::image_views(views), logits, grouped}, loader, block, comm);
  evaluation.compute([] {});
  return evaluation.finish();
}

}  // namespace dtrain::train
