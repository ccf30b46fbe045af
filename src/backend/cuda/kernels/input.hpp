// The first kernel of a step: samples as they were uploaded become a tensor.
#pragma once

#include <dtrain/nn/pixels.hpp>
#include <dtrain/nn/views.hpp>

#include "../kernel.hpp"

namespace dtrain::backend::cuda {

// Where the samples of a shard lie on the device. It changes from step to step while recorded work does not, so kernels
// read it there.
struct Samples {
  const float* images = nullptr;  // [n, c, h, w]; null: pixels
  nn::Pixels pixels;
  const std::int32_t* labels = nullptr;
  const std::uint32_t* sample_ids = nullptr;
  nn::ImageView view = {};
  bool begins_mean = true;  // of the views' logits
};

// Pads, crops, mirrors, normalises and cuts pixels out, or takes images of floats; y is the view of that, [n, h, w, c].
// Labels and sample ids get places of their own. Thread = pixel of y.
template <typename T>
struct LoadSamples {
  const Samples* from;
  T* y;
  std::int32_t* labels;
  std::uint32_t* sample_ids;
  std::int64_t n;
  std::int32_t c, h, w;
  DTRAIN_KERNEL std::int64_t threads() const { return n * h * w; }  // below 2^32
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    // In 32 bits, which a GPU divides several times as fast: see threads().
    const std::int32_t plane = h * w;
    const std::int64_t sample = static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(plane);
    const auto pixel = static_cast<std::int32_t>(i - sample * plane);
    const std::int32_t row = nn::view_row(from->view, pixel / w, h);
    const std::int32_t column = nn::view_column(from->view, pixel % w, w);
    for (std::int32_t k = 0; k < c; ++k) {
      narrow(from->images ? from->images[(sample * c + k) * plane + row * w + column]
                          : nn::pixel_value(from->pixels, sample, c, w, row, column, k),
             y[i * c + k]);
    }
    if (pixel > 0) return;
    labels[sample] = from->labels[sample];
    sample_ids[sample] = from->sample_ids[sample];
  }
};

}  // namespace dtrain::backend::cuda
