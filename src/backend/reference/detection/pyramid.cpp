// The levels of a feature pyramid.
#include "../layers.hpp"

namespace dtrain::backend::reference {
namespace {

// Calls visit(sample, channel, y, x) for each value.
template <typename Visit>
void each_value(int n, const nn::Shape& shape, Visit visit) {
  for (int i = 0; i < n; ++i) {
    for (int c = 0; c < shape.c; ++c) {
      for (int y = 0; y < shape.h; ++y) {
        for (int x = 0; x < shape.w; ++x) visit(i, c, y, x);
      }
    }
  }
}

// Adds a level to its place in `whole`.
void add_level(const nn::LevelPlace& place, const Samples& level, Samples& whole) {
  each_value(level.n, level.shape, [&](int i, int c, int y, int x) {
    whole.at(i, c, place.top + y, place.left + x) += level.at(i, c, y, x);
  });
}

}  // namespace

void upsample(const Samples& x, Samples& y) {
  const nn::Shape &in = x.shape, &out = y.shape;
  each_value(y.n, out, [&](int i, int c, int row, int column) {
    y.at(i, c, row, column) = x.at(i, c, row * in.h / out.h, column * in.w / out.w);
  });
}

void upsample_backward(const Samples& dy, Samples& dx) {
  const nn::Shape &in = dx.shape, &out = dy.shape;
  each_value(dy.n, out, [&](int i, int c, int row, int column) {
    dx.at(i, c, row * in.h / out.h, column * in.w / out.w) += dy.at(i, c, row, column);
  });
}

void pyramid(std::span<const Samples* const> levels, Samples& y) {
  std::fill(y.values.begin(), y.values.end(), 0.0f);
  const nn::Shape& first = levels[0]->shape;
  const auto places = nn::level_places({static_cast<int>(levels.size()), first.h, first.w});
  for (std::size_t level = 0; level < levels.size(); ++level) add_level(places[level], *levels[level], y);
}

void pyramid_backward(const nn::LevelPlace& place, const Samples& dy, Samples& dx) {
  each_value(dx.n, dx.shape,
             [&](int i, int c, int y, int x) { dx.at(i, c, y, x) += dy.at(i, c, place.top + y, place.left + x); });
}

void keep_levels(const nn::KeepLevels& layer, const Samples& x, Samples& y) {
  std::fill(y.values.begin(), y.values.end(), 0.0f);
  keep_levels_backward(layer, x, y);
}

void keep_levels_backward(const nn::KeepLevels& layer, const Samples& dy, Samples& dx) {
  for (const nn::LevelPlace& place : nn::level_places(layer.levels)) {
    each_value(dy.n, {dy.shape.c, place.height, place.width}, [&](int i, int c, int y, int x) {
      dx.at(i, c, place.top + y, place.left + x) += dy.at(i, c, place.top + y, place.left + x);
    });
  }
}

}  // namespace dtrain::backend::reference
