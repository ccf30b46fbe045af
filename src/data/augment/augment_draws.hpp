// What chance decides for one sample: ten words in this order, whatever options are on, so that turning one option on
// leaves the choices of all others as they were.
#pragma once

#include <cstdint>

#include <dtrain/base/random.hpp>
#include <dtrain/data/augment.hpp>

namespace dtrain::data {

class Draw {
 public:
  explicit Draw(std::uint32_t bits) : bits_(bits) {}
  float uniform() const { return static_cast<float>(bits_ >> 8) * 0x1p-24f; }  // [0, 1)
  float between(float low, float high) const { return low + (high - low) * uniform(); }
  // [0, limit). One word however large the limit is; the bias is below limit / 2^32.
  int below(int limit) const {
    return static_cast<int>((std::uint64_t{bits_} * static_cast<std::uint32_t>(limit)) >> 32);
  }
  // Whole number in [-max, max], cut towards zero as in MXNet, so the ends are rare and zero comes up twice as often.
  int jitter(int max) const { return static_cast<int>(between(static_cast<float>(-max), static_cast<float>(max))); }
  bool coin() const { return bits_ >> 31 != 0; }

 private:
  std::uint32_t bits_;
};

struct Draws {
  explicit Draws(const SampleKey& of) : Draws(of, of.stream(RandomUse::augment)) {}
  SampleKey key;
  Draw shear, angle, scale, aspect, crop_y, crop_x, hue, saturation, lightness, mirror;

  bool mirrors(const Augment& options) const {
    if (!options.random_mirror) return false;
    if (!options.alternate_mirror) return mirror.coin();
    const bool odd = key.epoch % 2 != 0;
    return Draws({key.seed, 0, key.sample, key.copy}).mirror.coin() != odd;
  }

 private:
  // Members are initialised in the order of their declaration, which is the order of the words.
  Draws(const SampleKey& of, RandomStream random)
      : key(of),
        shear(random.bits()),
        angle(random.bits()),
        scale(random.bits()),
        aspect(random.bits()),
        crop_y(random.bits()),
        crop_x(random.bits()),
        hue(random.bits()),
        saturation(random.bits()),
        lightness(random.bits()),
        mirror(random.bits()) {}
};

}  // namespace dtrain::data
