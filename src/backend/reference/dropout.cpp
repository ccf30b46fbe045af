#include <dtrain/backend/dropout.hpp>

#include <algorithm>

#include "layers.hpp"

namespace dtrain::backend::reference {
namespace {

// Calls kept(index of a value) for each element that survives.
template <typename Visit>
void each_kept(const nn::Dropout& layer, const DrawKey& key, const Samples& of, Visit kept) {
  const std::int64_t size = of.shape.size();
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(layer.whole_samples ? 1 : size));
  for (int i = 0; i < of.n; ++i) {
    dropout_mask(key.step, key.node, key.sample_ids[i], layer.p, mask);
    for (std::int64_t e = 0; e < size; ++e) {
      if (mask[static_cast<std::size_t>(layer.whole_samples ? 0 : e)]) kept(static_cast<std::size_t>(i * size + e));
    }
  }
}

}  // namespace

void drop(const nn::Dropout& layer, const DrawKey& key, const Samples& x, Samples& y) {
  std::fill(y.values.begin(), y.values.end(), 0.0f);
  each_kept(layer, key, x, [&](std::size_t k) { y.values[k] = x.values[k] * dropout_scale(layer.p); });
}

void drop_backward(const nn::Dropout& layer, const DrawKey& key, const Samples& dy, Samples& dx) {
  each_kept(layer, key, dy, [&](std::size_t k) { dx.values[k] += dy.values[k] * dropout_scale(layer.p); });
}

}  // namespace dtrain::backend::reference
