#include "arithmetic.hpp"

namespace dtrain::comm {

namespace {

float rounded_sum(float left, float right) { return from_bfloat16(to_bfloat16(left + right)); }

}  // namespace

void add(float* out, const float* left, const float* right, std::int64_t size, bool rounded) {
  if (rounded) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < size; ++i) out[i] = rounded_sum(left[i], right[i]);
  } else {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < size; ++i) out[i] = left[i] + right[i];
  }
}

void add_pairs(float* out, const float* second, const float* third, const float* fourth, std::int64_t size,
               bool rounded) {
  if (rounded) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < size; ++i) {
      out[i] = rounded_sum(rounded_sum(out[i], second[i]), rounded_sum(third[i], fourth[i]));
    }
  } else {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < size; ++i) out[i] = (out[i] + second[i]) + (third[i] + fourth[i]);
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
