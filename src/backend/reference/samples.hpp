// The values of one node for n samples: [n, c, h, w] without gaps.
#pragma once

#include <vector>

#include <dtrain/nn/graph.hpp>

namespace dtrain::backend::reference {

struct Samples {
  int n = 0;
  nn::Shape shape;
  std::vector<float> values;

  Samples() = default;
  Samples(int count, const nn::Shape& of)
      : n(count), shape(of), values(static_cast<std::size_t>(count * of.size()), 0.0f) {}

  std::int64_t pixels() const { return std::int64_t{shape.h} * shape.w; }  // of a sample
  float* sample(int i) { return values.data() + i * shape.size(); }
  const float* sample(int i) const { return values.data() + i * shape.size(); }
  float& at(int i, int c, int h, int w) { return values[index(i, c, h, w)]; }
  float at(int i, int c, int h, int w) const { return values[index(i, c, h, w)]; }

 private:
  std::size_t index(int i, int c, int h, int w) const {
    return ((static_cast<std::size_t>(i) * shape.c + c) * shape.h + h) * shape.w + w;
  }
};

}  // namespace dtrain::backend::reference
