#include "pca_noise.hpp"

#include <algorithm>

#include <dtrain/base/math.hpp>

namespace dtrain::data {

std::array<float, 3> draw_pca_shift(const Augment& options, const SampleKey& key) {
  constexpr float kValues[3] = {55.46f, 4.794f, 1.148f};
  constexpr float kVectors[3][3] = {// of R, G and B
                                    {-0.5675f, 0.7192f, 0.4009f},
                                    {-0.5808f, -0.0045f, -0.8140f},
                                    {-0.5836f, -0.6948f, 0.4203f}};
  RandomStream random = key.stream(RandomUse::pca);
  std::array<float, 3> along{}, shift{};
  for (std::size_t i = 0; i < 3; ++i) along[i] = options.pca_noise * random.normal() * kValues[i];
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = 0; i < 3; ++i) shift[c] += kVectors[c][i] * along[i];
  }
  return shift;
}

void add_pca_noise(const Augment& options, const SampleKey& key, const nn::Shape& shape, float* planes) {
  if (options.pca_noise == 0 || shape.c != 3) return;
  const std::size_t plane = static_cast<std::size_t>(shape.h) * static_cast<std::size_t>(shape.w);
  for (const float by : draw_pca_shift(options, key)) {
    for (float* const end = planes + plane; planes < end; ++planes) {
      const double moved = std::clamp(double{*planes} + double{by}, 0.0, 255.0);
      *planes = static_cast<float>(math_parts::nearest(moved));
    }
  }
}

}  // namespace dtrain::data
