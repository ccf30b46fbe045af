// The only additions of a reduction: every transport uses these, so all give the same bits.
#pragma once

#include <cstdint>

#include <dtrain/base/bfloat16.hpp>

namespace dtrain::comm {

// out[i] = left[i] + right[i]; then, if `rounded`, to the nearest bfloat16. `out` may be `left` or `right`.
void add(float* out, const float* left, const float* right, std::int64_t size, bool rounded);
// out[i] = (out[i] + second[i]) + (third[i] + fourth[i]), each sum rounded as by add(): three calls of it in one pass.
void add_pairs(float* out, const float* second, const float* third, const float* fourth, std::int64_t size,
               bool rounded);
void round_to_bfloat16(float* values, std::int64_t size);

void narrow(bfloat16_bits* out, const float* values, std::int64_t size);
void widen(float* out, const bfloat16_bits* values, std::int64_t size);

}  // namespace dtrain::comm
