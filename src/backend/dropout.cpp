#include <dtrain/backend/dropout.hpp>
#include <dtrain/base/random.hpp>

namespace dtrain::backend {

void dropout_mask(const StepKey& key, int node, std::uint32_t sample_id, float p, std::span<std::uint8_t> keep) {
  const PhiloxKey philox_key{static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32) ^
                                                                       static_cast<std::uint32_t>(RandomUse::dropout)};
  const double threshold = static_cast<double>(p) * 0x1p32;
  PhiloxCounter words{};
  for (std::size_t e = 0; e < keep.size(); ++e) {
    if (e % 4 == 0) {
      words = philox({static_cast<std::uint32_t>(e / 4), static_cast<std::uint32_t>(node), sample_id, key.epoch},
                     philox_key);
    }
    keep[e] = static_cast<double>(words[e % 4]) >= threshold ? 1 : 0;
  }
}

}  // namespace dtrain::backend
