// Images of training mixed with each other: mixup (Zhang et al. 2018) and cutmix (Yun et al. 2019), as timm's Mixup
// does in its mode "batch". Sample i of a group of n is mixed with sample n - 1 - i, and all of the group by one draw.
// timm's group is the batch of a process; here it is a logical shard, so that the number of processes changes no pixel.
// Random choices are a pure function of the key, and only IEEE arithmetic is used.
#pragma once

#include <cstdint>

#include <dtrain/base/value_range.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::data {

// A share is drawn from Beta(alpha, alpha). With both, a coin decides for each group.
struct MixOptions {
  float mixup = 0, cutmix = 0;  // alpha; 0: not this one
  bool any() const { return mixup > 0 || cutmix > 0; }
};
inline constexpr ValueRange kMixRange = between(0, 100);

struct MixKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint32_t position = 0;  // of the group's first sample in the order of the epoch
};

// What a group does: mixup, or cutmix where there is a box.
struct MixDraw {
  float share = 1;  // that a sample keeps of itself, and its label's share; with a box, the share of pixels outside it
  bool cuts = false;
  int top = 0, left = 0, bottom = 0, right = 0;  // of the box, which comes from the other sample
};
MixDraw draw_mix(const MixOptions& options, const MixKey& key, const nn::Shape& image);

// images: [n, c, h, w], changed in place.
void mix_images(const MixDraw& draw, const nn::Shape& image, int n, float* images);

}  // namespace dtrain::data
