// How a channels-last tensor looks to the kernels: see kernels.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include <dtrain/nn/graph.hpp>

#include "kernels/kernels.hpp"

namespace dtrain::backend::cpu {

// Channels repeated until they fill whole vectors, and at least four of them, so that sums run in independent
// registers. channels >= 1.
inline int row_width(int channels) {
  const int whole = std::lcm(std::max(channels, 1), 16);
  const int repeat = (64 + whole - 1) / whole;
  return whole * repeat;
}

inline Rows rows_of(std::int64_t pixels, int channels) {
  const int width = row_width(channels);
  const std::int64_t elements = pixels * channels;
  return {elements / width, width, static_cast<int>(elements % width)};
}

inline Rows rows_of(const nn::Shape& shape, int samples) {
  return rows_of(std::int64_t{samples} * shape.h * shape.w, shape.c);
}

// Where the numbers of one channel stand in a row of the kernels: once in each repetition of the channels.
struct RepeatedChannels {
  explicit RepeatedChannels(int number) : channels(number), width(row_width(number)) {}

  void write(float* row, int channel, double value) const {
    for (int k = channel; k < width; k += channels) row[k] = static_cast<float>(value);
  }
  // Adds them to `total` in their order: several rows, one behind the other, give the bits of one long sum.
  void add(const double* row, int channel, double& total) const {
    for (int k = channel; k < width; k += channels) total += row[k];
  }
  double sum(const double* row, int channel) const {
    double total = 0;
    add(row, channel, total);
    return total;
  }

  int channels, width;
};

}  // namespace dtrain::backend::cpu
