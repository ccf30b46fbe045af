// What stands around the layers of a vision transformer.
#include "layers.hpp"

namespace dtrain::backend::reference {
namespace {

std::int64_t tokens_of(const Samples& x) { return std::int64_t{x.shape.h} * x.shape.w; }

// Calls visit(sample, channel) for each.
template <typename Visit>
void each_plane(const Samples& x, Visit visit) {
  for (int i = 0; i < x.n; ++i) {
    for (int c = 0; c < x.shape.c; ++c) visit(i, c);
  }
}

}  // namespace

void class_token(const Samples& x, const float* token, Samples& y) {
  const std::int64_t tokens = tokens_of(x);
  each_plane(x, [&](int i, int c) {
    float* const to = y.sample(i) + c * (tokens + 1);
    to[0] = token[c];
    for (std::int64_t t = 0; t < tokens; ++t) to[t + 1] = x.sample(i)[c * tokens + t];
  });
}

void class_token_backward(const Samples& dy, Samples& dx, float* dtoken) {
  const std::int64_t tokens = tokens_of(dx);
  std::vector<double> sums(static_cast<std::size_t>(dx.shape.c));
  each_plane(dx, [&](int i, int c) {
    const float* const from = dy.sample(i) + c * (tokens + 1);
    sums[static_cast<std::size_t>(c)] += from[0];
    for (std::int64_t t = 0; t < tokens; ++t) dx.sample(i)[c * tokens + t] += from[t + 1];
  });
  for (std::size_t c = 0; c < sums.size(); ++c) dtoken[c] += static_cast<float>(sums[c]);
}

void add_position(const Samples& x, const float* position, Samples& y) {
  const std::int64_t tokens = tokens_of(x);
  each_plane(x, [&](int i, int c) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      y.sample(i)[c * tokens + t] = x.sample(i)[c * tokens + t] + position[t * x.shape.c + c];
    }
  });
}

void add_position_backward(const Samples& dy, Samples& dx, float* dposition) {
  const std::int64_t tokens = tokens_of(dy);
  std::vector<double> sums(static_cast<std::size_t>(dy.shape.size()));
  each_plane(dy, [&](int i, int c) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      const float gradient = dy.sample(i)[c * tokens + t];
      dx.sample(i)[c * tokens + t] += gradient;
      sums[static_cast<std::size_t>(t * dy.shape.c + c)] += gradient;
    }
  });
  for (std::size_t k = 0; k < sums.size(); ++k) dposition[k] += static_cast<float>(sums[k]);
}

void first_token(const Samples& x, Samples& y) {
  each_plane(x, [&](int i, int c) { y.sample(i)[c] = x.sample(i)[c * tokens_of(x)]; });
}

void first_token_backward(const Samples& dy, Samples& dx) {
  each_plane(dx, [&](int i, int c) { dx.sample(i)[c * tokens_of(dx)] += dy.sample(i)[c]; });
}

}  // namespace dtrain::backend::reference
