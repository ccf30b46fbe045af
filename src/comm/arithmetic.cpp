#include "arithmetic.hpp"

namespace dtrain::comm {

void add(float* out, const float* left, const float* right, std::int64_t size, bool rounded) {
  if (rounded) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < size; ++i) out[i] = from_bfloat16(to_bfloat16(left[i] + right[i]));
  } else {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < size; ++i) out[i] = left[i] + right[i];
  }
}

void round_to_bfloat16(float* values, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) values[i] = from_bfloat16(to_bfloat16(values[i]));
}

void narrow(bfloat16_bits* out, const float* values, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) out[i] = to_bfloat16(values[i]);
}

void widen(float* out, const bfloat16_bits* values, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) out[i] = from_bfloat16(values[i]);
}

}  // namespace dtrain::comm
