#include "policy.hpp"

#include <algorithm>
#include <cmath>

#include <dtrain/base/random.hpp>

namespace dtrain::data {
namespace {

constexpr int kOperations = static_cast<int>(Operation::equalize) + 1;

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
      break;
  }
  return 0;
}

Change draw_change(RandomStream& random, const Strengths& most, double strength) {
  const auto operation = static_cast<Operation>(random.below(kOperations));
  const int sign = random.below(2) == 0 ? 1 : -1;
  return {operation, amount_of(operation, most, strength / kStrongestAugment, sign)};
}

}  // namespace

std::vector<Change> draw_policy(const Augment& options, const SampleKey& key, const nn::Shape& shape) {
  RandomStream random = key.stream(RandomUse::policy);
  std::vector<Change> changes;
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
