// One pass from a decoded image to normalised floats. Random choices are a pure function of (seed, epoch, sample id).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <dtrain/data/image.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::data {

// MXNet's ImageRecordIter options with their names and meaning.
struct Augment {
  int pad_size = 0;  // pixels of fill_value added on each side before cropping
  int fill_value = 127;
  bool random_crop = false;  // else the centre
  bool random_mirror = false;
  int max_random_h = 0, max_random_s = 0, max_random_l = 0;  // HSL jitter; hue in degrees 0..180, the others 0..255
  float max_random_rotate_angle = 0;                         // degrees
  float max_random_aspect_ratio = 0, max_random_shear_ratio = 0;
  float max_random_scale = 1, min_random_scale = 1;
  std::array<float, 3> mean{};        // --rgb-mean; subtracted
  std::array<float, 3> std{1, 1, 1};  // divided by
};

struct SampleKey {
  std::uint64_t seed = 0;
  std::uint32_t epoch = 0;
  std::uint32_t sample = 0;  // position of the record in its file
};

// Writes shape.c * shape.h * shape.w floats, planes in RGB order. An image smaller than the crop after padding is
// resized up to it. Throws DataError when image.c != shape.c.
void augment(const Image& image, const Augment& options, const SampleKey& key, const nn::Shape& shape,
             std::span<float> out);

}  // namespace dtrain::data
