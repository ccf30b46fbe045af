#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "detection_ops.hpp"

namespace dtrain::backend::cpu {
namespace {

std::size_t pixel_bytes(const Context& c, TensorId id) {
  return static_cast<std::size_t>(c.shape(id).c) * bytes_of(c.tensors[static_cast<std::size_t>(id)].dtype);
}

std::byte* bytes_at(const Context& c, TensorId id, int sample) { return static_cast<std::byte*>(c.sample(id, sample)); }

// The one of `small` pixels in a row, or of as many rows, that is nearest to place `at` among `large`.
int nearest(int at, int small, int large) { return static_cast<int>(std::int64_t{at} * small / large); }

// Whether `at`, whose nearest one is `pixel`, is the first place that this is copied to.
bool is_first_copy(int at, int pixel, int small, int large) {
  return at == 0 || nearest(at - 1, small, large) != pixel;
}

class UpsampleOp final : public ChunkOp {
 public:
  UpsampleOp(TensorId input, TensorId output) : input_(input), output_(output) {
    kind = "upsample";
    reads = {input};
    writes = {output};
  }
  void run(Context& c) override {
    const nn::Shape small = c.shape(input_), large = c.shape(output_);
    const std::size_t bytes = pixel_bytes(c, input_);
    for (int i = 0; i < c.count; ++i) {
      const std::byte* const from = bytes_at(c, input_, i);
      std::byte* to = bytes_at(c, output_, i);
      for (int y = 0; y < large.h; ++y) {
        const std::byte* const row = from + static_cast<std::size_t>(nearest(y, small.h, large.h) * small.w) * bytes;
        for (int x = 0; x < large.w; ++x, to += bytes) {
          std::memcpy(to, row + static_cast<std::size_t>(nearest(x, small.w, large.w)) * bytes, bytes);
        }
      }
    }
  }

 private:
  TensorId input_, output_;
};

class UpsampleGradient final : public ChunkOp {
 public:
  UpsampleGradient(const TensorKernels& kernels, TensorId gradient, TensorId result)
      : kernels_(kernels), gradient_(gradient), result_(result) {
    kind = "upsample_gradient";
    reads = {gradient};
    writes = {result};
  }
  void run(Context& c) override {
    const nn::Shape small = c.shape(result_), large = c.shape(gradient_);
    const std::size_t bytes = pixel_bytes(c, result_);
    for (int i = 0; i < c.count; ++i) {
      const std::byte* from = bytes_at(c, gradient_, i);
      for (int y = 0; y < large.h; ++y) {
        const int row = nearest(y, small.h, large.h);
        const bool is_first_row = is_first_copy(y, row, small.h, large.h);
        for (int x = 0; x < large.w; ++x, from += bytes) {
          const int column = nearest(x, small.w, large.w);
          std::byte* const to = bytes_at(c, result_, i) + static_cast<std::size_t>(row * small.w + column) * bytes;
          if (is_first_row && is_first_copy(x, column, small.w, large.w)) {
            std::memcpy(to, from, bytes);
          } else {
            kernels_.add(to, from, to, small.c);
          }
        }
      }
    }
  }

 private:
  const TensorKernels& kernels_;
  TensorId gradient_, result_;
};

// Copies the rows of a level to its place in the whole, or back.
void copy_level(const nn::LevelPlace& place, int whole_width, std::size_t bytes, std::byte* whole, std::byte* level,
                bool back) {
  const std::size_t row = static_cast<std::size_t>(place.width) * bytes;
  for (int y = 0; y < place.height; ++y, level += row) {
    std::byte* const there = whole + static_cast<std::size_t>((place.top + y) * whole_width + place.left) * bytes;
    std::memcpy(back ? level : there, back ? there : level, row);
  }
}

class PyramidOp final : public ChunkOp {
 public:
  PyramidOp(const nn::Levels& levels, const std::vector<TensorId>& inputs, TensorId output)
      : places_(nn::level_places(levels)), output_(output) {
    kind = "pyramid";
    reads = inputs;
    writes = {output};
  }
  void run(Context& c) override {
    const nn::Shape& whole = c.shape(output_);
    const std::size_t bytes = pixel_bytes(c, output_);
    for (int i = 0; i < c.count; ++i) {
      std::memset(c.sample(output_, i), 0, static_cast<std::size_t>(whole.h * whole.w) * bytes);
      for (std::size_t level = 0; level < places_.size(); ++level) {
        copy_level(places_[level], whole.w, bytes, bytes_at(c, output_, i), bytes_at(c, reads[level], i), false);
      }
    }
  }

 private:
  std::vector<nn::LevelPlace> places_;
  TensorId output_;
};

class PyramidGradient final : public ChunkOp {
 public:
  PyramidGradient(const nn::LevelPlace& place, TensorId gradient, TensorId result)
      : place_(place), gradient_(gradient), result_(result) {
    kind = "pyramid_gradient";
    reads = {gradient};
    writes = {result};
  }
  void run(Context& c) override {
    const int width = c.shape(gradient_).w;
    for (int i = 0; i < c.count; ++i) {
      copy_level(place_, width, pixel_bytes(c, result_), bytes_at(c, gradient_, i), bytes_at(c, result_, i), true);
    }
  }

 private:
  nn::LevelPlace place_;
  TensorId gradient_, result_;
};

class ZeroGaps final : public ChunkOp {
 public:
  // A run of pixels.
  struct Gap {
    std::size_t first = 0, pixels = 0;
  };
  ZeroGaps(std::vector<Gap> gaps, const char* of, TensorId input, TensorId output)
      : input_(input), output_(output), gaps_(std::move(gaps)) {
    kind = of;
    reads = {input};
    writes = {output};
    in_place_read = input;
    in_place_write = output;
  }
  void run(Context& c) override {
    const nn::Shape& shape = c.shape(output_);
    const std::size_t bytes = pixel_bytes(c, output_), size = static_cast<std::size_t>(shape.h * shape.w) * bytes;
    for (int i = 0; i < c.count; ++i) {
      std::byte* const to = bytes_at(c, output_, i);
      const std::byte* const from = bytes_at(c, input_, i);
      if (from != to) std::memcpy(to, from, size);
      for (const Gap& gap : gaps_) std::memset(to + gap.first * bytes, 0, gap.pixels * bytes);
    }
  }

 private:
  TensorId input_, output_;
  std::vector<Gap> gaps_;
};

// The pixels of no level.
std::vector<ZeroGaps::Gap> gaps_between(const nn::Levels& levels) {
  const nn::Extent extent = nn::extent_of(levels);
  std::vector<bool> used(static_cast<std::size_t>(extent.height * extent.width), false);
  for (const nn::LevelPlace& place : nn::level_places(levels)) {
    for (int y = 0; y < place.height; ++y) {
      const auto row = used.begin() + (place.top + y) * extent.width + place.left;
      std::fill(row, row + place.width, true);
    }
  }
  std::vector<ZeroGaps::Gap> gaps;
  for (std::size_t pixel = 0; pixel < used.size(); ++pixel) {
    if (used[pixel]) continue;
    const bool goes_on = !gaps.empty() && gaps.back().first + gaps.back().pixels == pixel;
    if (!goes_on) gaps.push_back({pixel, 0});
    ++gaps.back().pixels;
  }
  return gaps;
}

// The rows between regions.
std::vector<ZeroGaps::Gap> gaps_between(const nn::KeepRegions& layer, const nn::Shape& shape) {
  std::vector<ZeroGaps::Gap> gaps;
  const auto row = static_cast<std::size_t>(shape.w);
  for (int y = layer.size; y < shape.h; y += layer.size + 1) gaps.push_back({static_cast<std::size_t>(y) * row, row});
  return gaps;
}

}  // namespace

std::unique_ptr<Op> make_upsample(TensorId input, TensorId output) {
  return std::make_unique<UpsampleOp>(input, output);
}
std::unique_ptr<Op> make_upsample_gradient(const TensorKernels& kernels, TensorId gradient, TensorId input_gradient) {
  return std::make_unique<UpsampleGradient>(kernels, gradient, input_gradient);
}
std::unique_ptr<Op> make_pyramid(const nn::Levels& levels, const std::vector<TensorId>& inputs, TensorId output) {
  return std::make_unique<PyramidOp>(levels, inputs, output);
}
std::unique_ptr<Op> make_pyramid_gradient(const nn::LevelPlace& place, TensorId gradient, TensorId input_gradient) {
  return std::make_unique<PyramidGradient>(place, gradient, input_gradient);
}
std::unique_ptr<Op> make_keep_levels(const nn::Levels& levels, TensorId input, TensorId output) {
  return std::make_unique<ZeroGaps>(gaps_between(levels), "keep_levels", input, output);
}
std::unique_ptr<Op> make_keep_regions(const nn::KeepRegions& layer, const nn::Shape& shape, TensorId input,
                                      TensorId output) {
  return std::make_unique<ZeroGaps>(gaps_between(layer, shape), "keep_regions", input, output);
}

}  // namespace dtrain::backend::cpu
