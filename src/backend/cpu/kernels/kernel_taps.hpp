// Points between pixels: weighted sums of the channels of some pixels, and the same way back.
#pragma once

#include "kernel_vector.hpp"

namespace dtrain::backend::cpu::DTRAIN_ISA {
namespace {

// `vectors` of channels at once stay in registers while the taps go by.
template <int vectors, typename V, typename T>
inline void gather_columns(const T* x, int channels, const Tap* taps, int count, float* out) {
  V sums[vectors] = {};
  for (int t = 0; t < count; ++t) {
    const T* const from = x + (int64_t)taps[t].pixel * channels;
    for (int v = 0; v < vectors; ++v) sums[v] += taps[t].weight * load<V>(from + v * (int)(sizeof(V) / sizeof(float)));
  }
  for (int v = 0; v < vectors; ++v) store(out + v * (int)(sizeof(V) / sizeof(float)), sums[v]);
}

template <typename T>
void gather(const void* x, int channels, const Tap* taps, int count, float* out) {
  constexpr int kVectors = 4;
  const T* const pixels = (const T*)x;
  int k = 0;
  for (; k + kVectors * kLanes <= channels; k += kVectors * kLanes)
    gather_columns<kVectors, Vector>(pixels + k, channels, taps, count, out + k);
  for (; k + kLanes <= channels; k += kLanes) gather_columns<1, Vector>(pixels + k, channels, taps, count, out + k);
  for (; k < channels; ++k) gather_columns<1, float>(pixels + k, channels, taps, count, out + k);
}

void scatter(const float* x, int channels, const Tap* taps, int count, float* sums) {
  for (int t = 0; t < count; ++t) {
    float* const to = sums + (int64_t)taps[t].pixel * channels;
    const float weight = taps[t].weight;
    int k = 0;
    for (; k + kLanes <= channels; k += kLanes) store(to + k, load<Vector>(to + k) + weight * load<Vector>(x + k));
    for (; k < channels; ++k) to[k] += weight * x[k];
  }
}

}  // namespace
}  // namespace dtrain::backend::cpu::DTRAIN_ISA
