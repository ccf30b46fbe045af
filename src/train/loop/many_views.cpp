#include "many_views.hpp"

#include <memory>

#include <dtrain/backend/softmax_loss.hpp>
#include <dtrain/base/error.hpp>

#include "export/float_images.hpp"

namespace dtrain::train {
namespace {

constexpr std::size_t kAlignment = 64, kSlack = kAlignment / sizeof(float);  // as backends want images

struct View {
  int dy = 0, dx = 0;
  bool mirror = false;
  float weight = 1;
};

std::vector<View> views_of(int number) {
  switch (number) {
    case 2:
      return {{0, 0, false, 0.5f}, {0, 0, true, 0.5f}};
    case 6:
      return {{0, 0, false, 0.25f},   {0, 0, true, 0.25f},   {-1, -1, false, 0.125f},
              {-1, -1, true, 0.125f}, {1, 1, false, 0.125f}, {1, 1, true, 0.125f}};
    default:
      DTRAIN_CHECK(false, "1, 2 or 6 views");
  }
}

int reflected(int at, int size) {
  if (size == 1) return 0;
  return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
}

float* aligned_room(std::vector<float>& memory, std::size_t floats) {
  memory.resize(floats + kSlack);
  void* first = memory.data();
  std::size_t space = memory.size() * sizeof(float);
  return static_cast<float*>(std::align(kAlignment, floats * sizeof(float), first, space));
}

}  // namespace

void view_image(const float* image, const nn::Shape& shape, int dy, int dx, bool mirror, float* view) {
  for (int c = 0; c < shape.c; ++c, image += std::ptrdiff_t{shape.h} * shape.w) {
    for (int y = 0; y < shape.h; ++y) {
      const float* const row = image + std::ptrdiff_t{reflected(y + dy, shape.h)} * shape.w;
      for (int x = 0; x < shape.w; ++x) *view++ = row[reflected((mirror ? shape.w - 1 - x : x) + dx, shape.w)];
    }
  }
}

backend::StepMetrics ManyViews::evaluate(const backend::HostBatch& batch) {
  const nn::Shape& shape = of_.graph.input();
  const auto classes = static_cast<std::size_t>(of_.graph.classes()), n = static_cast<std::size_t>(batch.n);
  const float* const images = float_images(batch, shape, floats_);
  float* const seen = aligned_room(memory_, n * static_cast<std::size_t>(shape.size()));
  logits_.resize(n * classes);
  mean_.assign(n * classes, 0.0f);
  for (const View& view : views_of(of_.views.number)) {
    for (std::int64_t i = 0; i < batch.n; ++i) {
      view_image(images + i * shape.size(), shape, view.dy, view.dx, view.mirror, seen + i * shape.size());
    }
    of_.executable.evaluate({batch.n, seen, batch.labels, batch.sample_ids}, logits_);
    for (std::size_t k = 0; k < mean_.size(); ++k) mean_[k] += view.weight * logits_[k];
  }
  return backend::metrics_of_logits(mean_, of_.graph.classes(), batch.labels, of_.views.top_k);
}

}  // namespace dtrain::train
