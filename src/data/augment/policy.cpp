#include "policy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include <dtrain/base/random.hpp>

namespace dtrain::data {
namespace {

constexpr int kOperations = static_cast<int>(Operation::equalize) + 1;  // that trivial and rand draw from

// The amount of an operation at its greatest strength. Those of moves and colours grow from 0 and go both ways; what
// posterize and solarize do grows while their amount falls from 8 bits and from 255.
struct Strengths {
  double shear = 0, rotation = 0, color = 0;
  double translation_x = 0, translation_y = 0;  // pixels
  double bits = 0;                              // that posterize takes away
};

Strengths rand_strengths(const nn::Shape& shape) {
  constexpr double kShareOfSide = 150.0 / 331;
  return {.shear = 0.3,
          .rotation = 30,
          .color = 0.9,
          .translation_x = kShareOfSide * shape.w,
          .translation_y = kShareOfSide * shape.h,
          .bits = 4};
}

Strengths trivial_strengths() {
  return {.shear = 0.99, .rotation = 135, .color = 0.99, .translation_x = 32, .translation_y = 32, .bits = 6};
}

// `share`: of the greatest strength. `sign`: 1 or -1, for operations that go both ways.
double amount_of(Operation operation, const Strengths& most, double share, int sign) {
  switch (operation) {
    case Operation::shear_x:
    case Operation::shear_y:
      return sign * share * most.shear;
    case Operation::translate_x:
      return sign * std::trunc(share * most.translation_x);
    case Operation::translate_y:
      return sign * std::trunc(share * most.translation_y);
    case Operation::rotate:
      return sign * share * most.rotation;
    case Operation::brightness:
    case Operation::color:
    case Operation::contrast:
    case Operation::sharpness:
      return sign * share * most.color;
    case Operation::posterize:
      return 8 - std::nearbyint(share * most.bits);
    case Operation::solarize:
      return 255 * (1 - share);
    case Operation::identity:
    case Operation::auto_contrast:
    case Operation::equalize:
    case Operation::invert:
      break;
  }
  return 0;
}

Change draw_change(RandomStream& random, const Strengths& most, double strength) {
  const auto operation = static_cast<Operation>(random.below(kOperations));
  const int sign = random.below(2) == 0 ? 1 : -1;
  return {operation, amount_of(operation, most, strength / kStrongestAugment, sign)};
}

// One half of a pair: `level` of 9 is its strength.
struct Maybe {
  Operation operation;
  float probability;
  int level = 0;
};

using MaybePair = std::array<Maybe, 2>;

// In torchvision's order.
std::span<const MaybePair> imagenet_pairs() {
  using enum Operation;
  static constexpr MaybePair pairs[] = {
      {{{posterize, 0.4f, 8}, {rotate, 0.6f, 9}}}, {{{solarize, 0.6f, 5}, {auto_contrast, 0.6f}}},
      {{{equalize, 0.8f}, {equalize, 0.6f}}},      {{{posterize, 0.6f, 7}, {posterize, 0.6f, 6}}},
      {{{equalize, 0.4f}, {solarize, 0.2f, 4}}},   {{{equalize, 0.4f}, {rotate, 0.8f, 8}}},
      {{{solarize, 0.6f, 3}, {equalize, 0.6f}}},   {{{posterize, 0.8f, 5}, {equalize, 1.0f}}},
      {{{rotate, 0.2f, 3}, {solarize, 0.6f, 8}}},  {{{equalize, 0.6f}, {posterize, 0.4f, 6}}},
      {{{rotate, 0.8f, 8}, {color, 0.4f, 0}}},     {{{rotate, 0.4f, 9}, {equalize, 0.6f}}},
      {{{equalize, 0.0f}, {equalize, 0.8f}}},      {{{invert, 0.6f}, {equalize, 1.0f}}},
      {{{color, 0.6f, 4}, {contrast, 1.0f, 8}}},   {{{rotate, 0.8f, 8}, {color, 1.0f, 2}}},
      {{{color, 0.8f, 8}, {solarize, 0.8f, 7}}},   {{{sharpness, 0.4f, 7}, {invert, 0.6f}}},
      {{{shear_x, 0.6f, 5}, {equalize, 1.0f}}},    {{{color, 0.4f, 0}, {equalize, 0.6f}}},
      {{{equalize, 0.4f}, {solarize, 0.2f, 4}}},   {{{solarize, 0.6f, 5}, {auto_contrast, 0.6f}}},
      {{{invert, 0.6f}, {equalize, 1.0f}}},        {{{color, 0.6f, 4}, {contrast, 1.0f, 8}}},
      {{{equalize, 0.8f}, {equalize, 0.6f}}},
  };
  return pairs;
}

// The signs count even where the operation does not happen, so that one draw leaves the others as they were.
void draw_pair(RandomStream& random, const Strengths& most, std::vector<Change>& changes) {
  constexpr double kStrongestLevel = 9;
  const std::span<const MaybePair> pairs = imagenet_pairs();
  for (const Maybe& half : pairs[random.below(static_cast<std::uint32_t>(pairs.size()))]) {
    const bool happens = random.uniform() < half.probability;
    const int sign = random.below(2) == 0 ? 1 : -1;
    if (happens)
      changes.push_back({half.operation, amount_of(half.operation, most, half.level / kStrongestLevel, sign)});
  }
}

void draw_color_jitter(const Augment& options, const SampleKey& key, std::vector<Change>& changes) {
  RandomStream random = key.stream(RandomUse::color);
  const auto change = [&](Operation operation, float most) {
    return Change{operation, static_cast<double>(most * random.uniform(-1, 1))};
  };
  std::array<Change, 3> drawn;
  drawn[0] = change(Operation::brightness, options.brightness);
  drawn[1] = change(Operation::contrast, options.contrast);
  drawn[2] = change(Operation::color, options.saturation);
  for (std::uint32_t left = 3; left > 0; --left) {
    std::swap(drawn[left - 1], drawn[random.below(left)]);
    if (drawn[left - 1].amount != 0) changes.push_back(drawn[left - 1]);
  }
}

bool jitters_colors(const Augment& options) {
  return options.brightness != 0 || options.contrast != 0 || options.saturation != 0;
}

}  // namespace

bool has_policy(const Augment& options) { return jitters_colors(options) || options.auto_augment != AutoAugment::none; }

std::vector<Change> draw_policy(const Augment& options, const SampleKey& key, const nn::Shape& shape) {
  RandomStream random = key.stream(RandomUse::policy);
  std::vector<Change> changes;
  if (jitters_colors(options)) draw_color_jitter(options, key, changes);
  switch (options.auto_augment) {
    case AutoAugment::none:
      break;
    case AutoAugment::trivial: {
      const auto strength = random.below(kStrongestAugment + 1);
      changes.push_back(draw_change(random, trivial_strengths(), strength));
      break;
    }
    case AutoAugment::rand:
      for (int i = 0; i < options.rand_augment_ops; ++i) {
        changes.push_back(draw_change(random, rand_strengths(shape), options.rand_augment_magnitude));
      }
      break;
    case AutoAugment::imagenet:
      draw_pair(random, rand_strengths(shape), changes);
      break;
  }
  return changes;
}

void apply_policy(const Augment& options, const SampleKey& key, const nn::Shape& shape, float* planes) {
  thread_local PlanarPicture picture;
  thread_local std::vector<std::uint8_t> scratch;
  picture.c = shape.c;
  picture.h = shape.h;
  picture.w = shape.w;
  const auto size = static_cast<std::size_t>(shape.size());
  picture.pixels.resize(size);
  std::transform(planes, planes + size, picture.pixels.begin(),
                 [](float value) { return static_cast<std::uint8_t>(value); });
  for (const Change& change : draw_policy(options, key, shape)) {
    apply(change.operation, change.amount, static_cast<std::uint8_t>(options.fill_value), picture, scratch);
  }
  std::transform(picture.pixels.begin(), picture.pixels.end(), planes,
                 [](std::uint8_t value) { return static_cast<float>(value); });
}

}  // namespace dtrain::data
