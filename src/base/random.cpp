#include <dtrain/base/random.hpp>

#include <dtrain/base/error.hpp>
#include <dtrain/base/math.hpp>

namespace dtrain {

RandomStream::RandomStream(std::uint64_t seed, RandomUse use, std::uint32_t a, std::uint32_t b)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32) ^ static_cast<std::uint32_t>(use)},
      counter_{0, 0, a, b} {}

std::uint32_t RandomStream::bits() {
  if (used_ == 4) {
    block_ = philox(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

float RandomStream::uniform() { return static_cast<float>(bits() >> 8) * 0x1p-24f; }

float RandomStream::uniform(float low, float high) { return low + (high - low) * uniform(); }

std::uint32_t RandomStream::below(std::uint32_t limit) {
  DTRAIN_CHECK(limit >= 1, "below(0) has no answer");
  // Lemire 2019: the product's high word is uniform once the low words that would come up too often are rejected.
  const std::uint32_t rejected = (0u - limit) % limit;
  for (;;) {
    const std::uint64_t product = std::uint64_t{bits()} * limit;
    if (static_cast<std::uint32_t>(product) >= rejected) return static_cast<std::uint32_t>(product >> 32);
  }
}

float RandomStream::normal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  // Box and Muller 1958 give two at once; 1 - uniform is never 0.
  const double radius = portable_sqrt(-2.0 * portable_log(1.0 - static_cast<double>(uniform())));
  const TurnPoint direction = portable_turn(static_cast<double>(uniform()));
  spare_normal_ = static_cast<float>(radius * direction.y);
  has_spare_normal_ = true;
  return static_cast<float>(radius * direction.x);
}

}  // namespace dtrain
