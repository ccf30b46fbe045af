// CpuExecutable::evaluate: blocks of samples, each by one thread.
#include <algorithm>
#include <utility>

#include <dtrain/backend/checks.hpp>
#include <dtrain/backend/softmax_loss.hpp>
#include <dtrain/base/error.hpp>

#include "../host_views.hpp"
#include "cpu_executable.hpp"
#include "layers.hpp"

namespace dtrain::backend::cpu {

// The number of threads must not change the bits, so the size of a block does not depend on it. Small blocks divide a
// batch that is no larger than a shard among all threads: four of them or more. But each block reads all weights. A
// detector's pictures are so large that one of them makes a block.
int CpuExecutable::evaluation_block() const {
  constexpr int kThumbnail = 64 * 64;
  if (nn::detection_of(graph_)) return 1;
  const nn::Shape image = graph_.input();
  return std::clamp(options_.max_samples / 4, 1, image.h * image.w <= kThumbnail ? 4 : 8);
}

StepMetrics CpuExecutable::evaluate(const HostBatch& batch, std::span<const nn::ImageView> views,
                                    std::span<float> logits) {
  return evaluate_views(graph_, options_.top_k, batch, views, logits,
                        [this](const HostBatch& images, std::span<float> of) { return evaluate_images(images, of); });
}

StepMetrics CpuExecutable::evaluate_images(const HostBatch& batch, std::span<float> logits) {
  threads_.wait();
  check_labels(batch, graph_.classes());
  const std::size_t size = static_cast<std::size_t>(batch.n) * static_cast<std::size_t>(nn::result_size(graph_));
  std::vector<float> own;
  if (logits.empty()) {
    own.resize(size);
    logits = own;
  }
  DTRAIN_CHECK(logits.size() == size, "logits are [n, result_size]");
  const int block = evaluation_block();
  prepare(evaluation_.program, std::min(batch.n, block));
  prepare(evaluation_.program, batch.n % block);
  pack_weights();
  if (std::exchange(running_stale_, false)) {
    for (const auto& norm : layers_.norms) {
      if (!norm) continue;
      use_running_statistics(*norm, state_.parameters.data(), state_.statistics.data(), running_coefficients_.data());
    }
  }
  threads_.run([&](int thread) {
    for (int k = thread; k * block < batch.n; k += threads_.size()) evaluate_block(batch, thread, k, logits);
  });
  if (nn::detection_of(graph_)) return {.count = static_cast<double>(batch.n)};
  return metrics_of_logits(logits, graph_.classes(), batch.labels, options_.top_k);
}

void CpuExecutable::evaluate_block(const HostBatch& batch, int thread, int block, std::span<float> logits) {
  const int size = evaluation_block();
  const int first = block * size;
  Context context;
  context.tensors = evaluation_.program.tensors();
  context.coefficients = running_coefficients_.data();
  context.worker = &workers_[static_cast<std::size_t>(thread)];
  context.shard = samples_of(batch, graph_, {block, first, std::min(size, batch.n - first)});
  context.parameters = state_.parameters.data();
  context.logits = logits.data() + first * nn::result_size(graph_);
  for (const Segment& segment : evaluation_.program.segments()) {
    run_segment(evaluation_.program, segment, context, 0, context.shard.n);
  }
}

}  // namespace dtrain::backend::cpu
