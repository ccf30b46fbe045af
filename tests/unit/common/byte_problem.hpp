// A problem whose images are bytes, with the floats that they stand for. For tests only.
#pragma once

#include <cstring>
#include <functional>
#include <memory>

#include <dtrain/base/random.hpp>

#include "problem.hpp"

namespace dtrain::testing {

struct ByteProblem {
  // The pictures are 2 rows and 3 columns larger than the images cut from them, and some cuts go over their edge,
  // as do some of the squares that are cut out.
  ByteProblem(const nn::Graph& graph, int n, std::uint64_t seed = 1) : floats(make_problem(graph, n, seed)) {
    const nn::Shape& shape = graph.input();
    RandomStream random(seed, RandomUse::drawing, 0, 0);
    pixels.rows = shape.h + 2;
    pixels.columns = shape.w + 3;
    bytes.resize(static_cast<std::size_t>(n * shape.c * pixels.rows * pixels.columns));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.below(256));
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(n); ++i) {
      const int top = static_cast<int>(random.below(7)) - 2, left = static_cast<int>(random.below(7)) - 2;
      places.push_back({top, left, static_cast<int>(i % 2), {left, top, static_cast<int>(i % 3) * 2}});
    }
    pixels.bytes = bytes.data();
    pixels.places = places.data();
    pixels.scale = {.mean = {120, 110.5f, 99}, .std = {57, 58, 59}, .fill = 127};
    float* image = floats.images.data();
    for (int i = 0; i < n; ++i) {
      for (int c = 0; c < shape.c; ++c) {
        for (int y = 0; y < shape.h; ++y) {
          for (int x = 0; x < shape.w; ++x) *image++ = nn::pixel_value(pixels, i, shape.c, shape.w, y, x, c);
        }
      }
    }
  }
  ByteProblem(const ByteProblem&) = delete;

  backend::HostBatch batch(std::uint64_t staged = 0) const {
    return {floats.n, nullptr, floats.labels.data(), floats.sample_ids.data(), pixels, staged};
  }

  Problem floats;
  std::vector<std::uint8_t> bytes;
  std::vector<nn::PixelPlace> places;
  nn::Pixels pixels;
};

}  // namespace dtrain::testing
