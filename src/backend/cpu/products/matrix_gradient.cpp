#include "matrix_gradient.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include <dtrain/base/bfloat16.hpp>

#include "../kernels/fused_kernels.hpp"
#include "../thread_clock.hpp"
#include "pixel_matrix.hpp"

namespace dtrain::backend::cpu {
namespace {

// A panel of so many pixels of the source, and kRows channels of their gradients, lie in the first cache together; the
// panels of kColumns channels of the source lie in the second one (256 KiB).
constexpr int kPixels = 128, kRows = 24, kColumns = 512;
constexpr int kVector = 16;

// The pixels of a tensor, channels-last.
struct Pixels {
  const void* numbers = nullptr;
  DType dtype = DType::float32;

  // `count` numbers from the place `first` on, as float32.
  void copy(std::int64_t first, int count, float* to) const {
    if (dtype == DType::bfloat16) {
      select_kernels().bfloat16.to_float(static_cast<const bfloat16_bits*>(numbers) + first, to, count);
    } else {
      std::memcpy(to, static_cast<const float*>(numbers) + first, sizeof(float) * static_cast<std::size_t>(count));
    }
  }
};

// `width` channels from `first` on of pixels to [pixels][pitch]. `pixel_at(k)`: where the channels of pixel k begin.
template <typename PixelAt>
void copy_channels(const Pixels& from, PixelAt pixel_at, int pixels, int first, int width, float* to, int pitch) {
  for (int pixel = 0; pixel < pixels; ++pixel) from.copy(pixel_at(pixel) + first, width, to + pixel * pitch);
}

class MatrixGradient final : public Op {
 public:
  MatrixGradient(const ProductLayer& layer, TensorId source, TensorId gradient)
      : layer_(layer), rows_(layer.shape().out.c), columns_(layer.shape().in.c), source_(source), gradient_(gradient) {
    kind = "convolution";
    reads = {source, gradient};
    gradients = {{layer.weight_offset(), std::int64_t{rows_} * columns_}};
  }

  void prepare(int, int) override {}
  std::size_t scratchpad_bytes() const override {
    return sizeof(float) *
           static_cast<std::size_t>(panels(std::min(kColumns, columns_)) * panel_size() + kPixels * kRows);
  }
  std::size_t weight_bytes() const override { return layer_.shape().plain_weights().get_size(); }
  std::size_t packed_bytes() const override { return weight_bytes(); }
  std::string shape_name(int count) const override { return layer_.shape_name(count); }
  std::size_t workspace_bytes() const override { return 0; }
  void begin(Context&) override {}
  void run(Context& c) override {
    compute(*c.worker, c.count, pixels_of(c, source_), pixels_of(c, gradient_), sums_of(c), !c.is_first_chunk());
  }
  void finish(Context& c) override {
    if (c.chunks == 0) std::memset(sums_of(c), 0, weight_bytes());
  }
  bool meets() const override { return false; }
  void meet(std::span<Context>) override {}

  double bare_seconds(Worker& worker, int count, int repeats) override {
    const Product& p = layer_.shape();
    const auto numbers = [](std::int64_t size) { return std::vector<float>(static_cast<std::size_t>(size), 0.5f); };
    const std::vector<float> source = numbers(count * p.in.size()), gradient = numbers(count * p.out.size());
    std::vector<float> sums = numbers(std::int64_t{rows_} * columns_);
    return median_seconds(repeats, [&] {
      compute(worker, count, {source.data(), DType::float32}, {gradient.data(), DType::float32}, sums.data(), false);
    });
  }

 private:
  float* sums_of(const Context& c) const { return c.contribution + layer_.weight_offset(); }
  static Pixels pixels_of(const Context& c, TensorId id) {
    return {c.data(id), c.tensors[static_cast<std::size_t>(id)].dtype};
  }

  // `adds`: to what is there; the first pixels take its place otherwise.
  void compute(Worker& worker, int count, const Pixels& x, const Pixels& gradient, float* sums, bool adds) const {
    const int pixels = count * layer_.shape().out.h * layer_.shape().out.w;
    for (int first = 0; first < pixels; first += kPixels) {
      for (int column = 0; column < columns_; column += kColumns) {
        add_pixels(worker, x, gradient, {first, std::min(kPixels, pixels - first)},
                   {column, std::min(kColumns, columns_ - column)}, sums, adds || first > 0);
      }
    }
  }

  struct Some {
    int first = 0, count = 0;
  };
  // In its tensor, the pixel of the source that becomes this pixel of the result.
  std::int64_t source_pixel(int pixel) const {
    const Product& p = layer_.shape();
    if (!is_strided(p)) return pixel;
    const int x = pixel % p.out.w, y = pixel / p.out.w % p.out.h, sample = pixel / p.out.w / p.out.h;
    return (std::int64_t{sample} * p.in.h + y * p.convolution.stride_h) * p.in.w + x * p.convolution.stride_w;
  }
  int panels(int columns) const { return (columns + kernels_.widest_panel - 1) / kernels_.widest_panel; }
  int panel_size() const { return kPixels * kernels_.widest_panel; }

  // Adds the products of these pixels to the sums of these columns, which are channels of the source. They are copied
  // into panels once; kRows channels of the gradient at a time then go past all panels.
  void add_pixels(Worker& worker, const Pixels& x, const Pixels& gradient, Some pixels, Some columns, float* sums,
                  bool adds) const {
    const int width = kernels_.widest_panel, number_of_panels = panels(columns.count);
    float* const source = worker.scratchpad.as<float>();
    float* const rows = source + number_of_panels * panel_size();
    const auto width_of = [&](int panel) { return std::min(width, columns.count - panel * width); };
    const auto source_at = [&](int k) { return source_pixel(pixels.first + k) * columns_; };
    const auto gradient_at = [&](int k) { return std::int64_t{pixels.first + k} * rows_; };
    for (int panel = 0; panel < number_of_panels; ++panel) {
      const int first = columns.first + panel * width;
      copy_channels(x, source_at, pixels.count, first, width_of(panel), source + panel * panel_size(), width);
    }
    for (int row = 0; row < rows_; row += kRows) {
      const int number = std::min(kRows, rows_ - row);
      copy_channels(gradient, gradient_at, pixels.count, row, number, rows, kRows);
      for (int panel = 0; panel < number_of_panels; ++panel) {
        kernels_.product({.rows = number,
                          .inner = pixels.count,
                          .columns = width_of(panel),
                          .left = rows,
                          .left_row = 1,
                          .left_inner = kRows,
                          .right = source + panel * panel_size(),
                          .right_inner = width,
                          .out = sums + std::int64_t{row} * columns_ + columns.first + panel * width,
                          .out_row = columns_,
                          .adds = adds});
      }
    }
  }

  const FusedKernels& kernels_ = fused_kernels();
  const ProductLayer& layer_;
  const int rows_, columns_;
  const TensorId source_, gradient_;
};

}  // namespace

bool has_matrix_gradient(const Product& p, const CpuModel& cpu) {
  constexpr std::int64_t kLargeWeights = 1 << 18;
  if (p.dense || p.arithmetic() != DType::float32 || !cpu.has_fused_kernels()) return false;
  const nn::Convolution& c = p.convolution;
  if (!c.is_plain() || p.in.c % kVector != 0 || c.groups != 1 || c.kernel_h != 1 || c.kernel_w != 1) return false;
  if (has_tokens(p)) return true;
  return cpu.has_avx512 && c.pad_h == 0 && c.pad_w == 0 && std::int64_t{p.in.c} * p.out.c >= kLargeWeights;
}

std::unique_ptr<Op> make_matrix_gradient(const ProductLayer& layer, TensorId source, TensorId gradient) {
  return std::make_unique<MatrixGradient>(layer, source, gradient);
}

}  // namespace dtrain::backend::cpu
