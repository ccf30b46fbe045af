// What operations on bfloat16 are measured on where they run without the rest of a step.
#pragma once

#include <algorithm>
#include <cstdint>

#include <dtrain/base/bfloat16.hpp>

#include "../buffer.hpp"

namespace dtrain::backend::cpu {

// So many numbers in bfloat16. They are no zeros, with which the processor would run cooler and faster.
inline Buffer half_numbers(std::int64_t size) {
  Buffer numbers(sizeof(bfloat16_bits) * static_cast<std::size_t>(size));
  std::fill_n(numbers.as<bfloat16_bits>(), size, to_bfloat16(0.5f));
  return numbers;
}

}  // namespace dtrain::backend::cpu
