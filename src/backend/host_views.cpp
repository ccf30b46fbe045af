#include "host_views.hpp"

#include <algorithm>

#include <dtrain/backend/aligned_room.hpp>
#include <dtrain/backend/softmax_loss.hpp>
#include <dtrain/base/error.hpp>

namespace dtrain::backend {

void view_image(const float* image, const nn::Shape& shape, const nn::ImageView& view, float* to) {
  for (int c = 0; c < shape.c; ++c, image += std::ptrdiff_t{shape.h} * shape.w) {
    for (int y = 0; y < shape.h; ++y) {
      const float* const row = image + std::ptrdiff_t{nn::view_row(view, y, shape.h)} * shape.w;
      for (int x = 0; x < shape.w; ++x) *to++ = row[nn::view_column(view, x, shape.w)];
    }
  }
}

StepMetrics evaluate_views(const nn::Graph& graph, int top_k, const HostBatch& batch,
                           std::span<const nn::ImageView> views, std::span<float> logits,
                           const EvaluateImages& evaluate_images) {
  if (views.size() == 1 && views[0] == nn::ImageView{}) return evaluate_images(batch, logits);
  DTRAIN_CHECK(!nn::detection_of(graph), "a detector sees the image as it is");
  DTRAIN_CHECK(batch.images || batch.n == 0, "this backend takes images of floats");
  const nn::Shape& shape = graph.input();
  const auto n = static_cast<std::size_t>(batch.n), size = n * static_cast<std::size_t>(graph.classes());
  DTRAIN_CHECK(logits.empty() || logits.size() == size, "logits are [n, classes]");
  std::vector<float> memory, of_view(size), mean(size, 0.0f);
  float* const seen = aligned_room(memory, n * static_cast<std::size_t>(shape.size()));
  for (const nn::ImageView& view : views) {
    for (std::int64_t i = 0; i < batch.n; ++i) {
      view_image(batch.images + i * shape.size(), shape, view, seen + i * shape.size());
    }
    evaluate_images({batch.n, seen, batch.labels, batch.sample_ids}, of_view);
    for (std::size_t k = 0; k < size; ++k) mean[k] += view.weight * of_view[k];
  }
  if (!logits.empty()) std::ranges::copy(mean, logits.begin());
  return metrics_of_logits(mean, graph.classes(), batch.labels, top_k);
}

}  // namespace dtrain::backend
