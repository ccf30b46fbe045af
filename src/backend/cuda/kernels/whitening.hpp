// A first layer whose weights do not move, with the GELU behind it: 12 multiplications an element, which cost less than
// writing and reading what is in between. So backward computes them again.
#pragma once

#include "../../curves.hpp"
#include "input.hpp"
#include "sums.hpp"

namespace dtrain::backend::cuda {

// What is there is loaded where it is used: a GPU's compiler would else keep what a loop reads in each round in more
// registers than there are.
template <typename T>
DTRAIN_KERNEL const T* loaded_anew(const T* from) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+l"(from));
#endif
  return from;
}

// A convolution of windows of 2 x 2 pixels of 3 channels, stride 1. Sums are float32 of the float32 weights, in the
// order in which these lie, and not rounded to T. The image is in memory: to make a pixel of its byte, for each of the
// windows that have it, takes longer than the whitening.
template <typename T>
struct Whitening {
  static constexpr std::int32_t side = 2, channels = 3, size = side * side * channels;
  const T* image;  // [n, h, w, channels]
  std::int32_t image_h, image_w;
  const float* weights;  // [out][channels][side][side], from a multiple of 16 bytes on
  const float* bias;     // [out]; null: none
  std::int32_t out;
  DTRAIN_KERNEL std::int32_t h() const { return image_h - side + 1; }
  DTRAIN_KERNEL std::int32_t w() const { return image_w - side + 1; }

  struct Window {
    float values[size];
  };
  // At place i < 2^32 of the result.
  DTRAIN_KERNEL Window window(std::int64_t i) const {
    const PlanePlace at = PlanePlace::of(i, h(), w());
    const T* const first = image + ((at.sample * image_h + at.y) * image_w + at.x) * channels;
    Window window;
    DTRAIN_UNROLL
    for (int y = 0; y < side; ++y) {
      DTRAIN_UNROLL
      for (int x = 0; x < side; ++x) {
        DTRAIN_UNROLL
        for (int k = 0; k < channels; ++k)
          window.values[(k * side + y) * side + x] = widen(first[(y * image_w + x) * channels + k]);
      }
    }
    return window;
  }
  DTRAIN_KERNEL float value(const Window& window, std::int32_t channel) const {
    float sum = 0;
    DTRAIN_UNROLL
    for (int first = 0; first < size; first += Pack<float>::size) {
      const auto some = *reinterpret_cast<const Pack<float>*>(weights + channel * size + first);
      DTRAIN_UNROLL
      for (int j = 0; j < Pack<float>::size; ++j) sum += window.values[first + j] * some.values[j];
    }
    return bias ? sum + bias[channel] : sum;
  }
};

// y = gelu(whitening), [n, h, w, out]; out is whole Packs. Thread = place of y.
template <typename T>
struct WhitenImages {
  Whitening<T> whitening;
  T* y;
  std::int64_t n;
  DTRAIN_KERNEL std::int64_t threads() const { return n * whitening.h() * whitening.w(); }  // below 2^32
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const typename Whitening<T>::Window window = whitening.window(i);
    for (std::int32_t first = 0; first < whitening.out; first += Pack<T>::size) {
      Pack<T> pack;
      DTRAIN_UNROLL
      for (int j = 0; j < Pack<T>::size; ++j) narrow(gelu(whitening.value(window, first + j)), pack.values[j]);
      store_whole(pack, y + i * whitening.out + first);
    }
  }
};

// The gradient of the whitening's bias, by what WhitenImages computed on the way: out[part][channel] = the sum over the
// part's places. Thread = part and Pack of channels.
template <typename T>
struct WhiteningSums {
  Whitening<T> whitening;
  const T* dy;
  float* out;
  RowParts cut;
  using Result = PartSums<T, 1>;
  DTRAIN_KERNEL std::int32_t channels() const { return whitening.out; }
  DTRAIN_KERNEL std::int64_t threads() const { return cut.parts * packs_of(channels(), Pack<T>::size); }
  DTRAIN_KERNEL Result sums_at(const ChannelsOfPart<T>& at) const {
    Result sums = {};
    for (std::int64_t row = at.part; row < cut.rows; row += cut.parts) {
      const Pack<T> pack = at.channels.load(dy, row);
      Whitening<T> here = whitening;
      here.weights = loaded_anew(here.weights);
      const typename Whitening<T>::Window window = whitening.window(row);
      DTRAIN_UNROLL
      for (int j = 0; j < Pack<T>::size; ++j) {
        const float value = here.value(window, static_cast<std::int32_t>(at.channels.first) + j);
        sums.values[0][j] += gelu_slope(value) * widen(pack.values[j]);
      }
    }
    return sums;
  }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, channels());
    sums_at(at).store(at, out);
  }
};
template <typename T>
using WhiteningTotals = FoldedSums<WhiteningSums<T>, StoreSums>;

}  // namespace dtrain::backend::cuda
