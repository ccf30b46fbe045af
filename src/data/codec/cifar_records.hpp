// Records of CIFAR's binary versions (cs.toronto.edu/~kriz/cifar.html): one label byte, or two, the second of which is
// the finer one, and three 32 x 32 planes R, G, B.
#pragma once

#include <dtrain/data/image.hpp>

namespace dtrain::data {

inline constexpr int kCifarSide = 32;
inline constexpr std::size_t kCifarPlane = kCifarSide * kCifarSide;
inline constexpr std::size_t cifar_record(std::size_t label_bytes) { return label_bytes + 3 * kCifarPlane; }

// `planes` holds 3 * kCifarPlane bytes. Reuses the memory of `image`.
inline void cifar_image(ByteView planes, Image& image) {
  image.c = 3;
  image.h = image.w = kCifarSide;
  image.pixels.resize(3 * kCifarPlane);
  for (std::size_t i = 0; i < kCifarPlane; ++i) {
    for (std::size_t c = 0; c < 3; ++c)
      image.pixels[3 * i + c] = static_cast<std::uint8_t>(planes[c * kCifarPlane + i]);
  }
}

}  // namespace dtrain::data
