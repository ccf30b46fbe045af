// Counter-based random numbers: Philox 4x32-10 (Salmon et al., SC'11). A number is a pure function of its key and
// counter, so it does not depend on which thread or worker asks, nor in which order.
#pragma once

#include <array>
#include <cstdint>

namespace dtrain {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;
// In the header for the sake of backends that compute it elsewhere than on this CPU.
constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t right = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(left)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// What a stream of numbers is for. Values are part of the job's bits: never reuse or renumber one.
enum class RandomUse : std::uint32_t {
  order = 1,
  augment = 2,
  dropout = 3,
  initial_weights = 4,
  drawing = 5,
  cutout = 6,
  policy = 7,
  mix = 9,
  copy = 20,
  balance = 21,
  erasing = 22,
  color = 23,
  pca = 24,
  regions = 25
};

// Numbers for one (seed, use, a, b); number i is the same however many were drawn before it by others.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, RandomUse use, std::uint32_t a, std::uint32_t b);
  std::uint32_t bits();
  float uniform();                           // [0, 1), 24 bits
  float uniform(float low, float high);      // [low, high)
  std::uint32_t below(std::uint32_t limit);  // [0, limit), unbiased; limit >= 1
  float normal();                            // mean 0, variance 1; own log and cos, no libm

 private:
  PhiloxKey key_;
  PhiloxCounter counter_;
  PhiloxCounter block_{};
  int used_ = 4;
  bool has_spare_normal_ = false;
  float spare_normal_ = 0;
};

}  // namespace dtrain
