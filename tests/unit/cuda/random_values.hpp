// Random values of a type that kernels compute with.
#pragma once

#include <random>
#include <vector>

#include "call.hpp"

namespace dtrain::backend::cuda {

template <typename T>
std::vector<T> random_values(std::int64_t size, std::uint32_t seed, float low, float high) {
  std::minstd_rand random(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<T> values(static_cast<std::size_t>(size));
  for (T& value : values) narrow(distribution(random), value);
  return values;
}

}  // namespace dtrain::backend::cuda
