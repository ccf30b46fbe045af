#include "products/pixel_matrix.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "common/trace.hpp"
#include "products/primitive_call.hpp"
#include "products/product_layer.hpp"

namespace dtrain::backend::cpu {
namespace {

struct PixelCase {
  int in_channels, out_channels, height, width, stride_h, stride_w, n;
  bool dense = false;
};

Product product(const PixelCase& c, bool by_matrices) {
  Product p;
  p.n = c.n;
  p.in = {c.in_channels, c.height, c.width};
  p.out = {c.out_channels, (c.height - 1) / c.stride_h + 1, (c.width - 1) / c.stride_w + 1};
  p.convolution = {.out = c.out_channels, .stride_h = c.stride_h, .stride_w = c.stride_w};
  p.convolution.kernel_h = p.convolution.kernel_w = 1;
  p.convolution.pad_h = p.convolution.pad_w = 0;
  p.dtype = p.out_dtype = DType::bfloat16;
  p.dense = c.dense;
  p.by_matrices = by_matrices;
  return p;
}

using Half = std::uint16_t;

float widened(Half value) { return std::bit_cast<float>(std::uint32_t{value} << 16); }

// Small numbers of both signs that bfloat16 has.
Half number(std::size_t k) {
  const auto mixed = static_cast<std::uint32_t>(k) * 2654435761u;
  return static_cast<Half>((mixed >> 31) << 15 | 0x3f00u | (mixed >> 8 & 0xffu));
}

std::vector<Half> pixel_numbers(std::int64_t size, std::size_t seed) {
  std::vector<Half> values(static_cast<std::size_t>(size));
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = number(k + seed);
  return values;
}

struct Gradients {
  std::vector<float> source, weights;
};

// By the primitives, as product_ops.cpp runs them.
Gradients gradients(const Product& p) {
  const SingleThreaded alone;
  ProductLayer layer(p, 0, -1);
  const Compiled &data = layer.backward_data(p.n), &weights = layer.backward_weights(p.n);
  Worker worker;
  worker.stream = dnnl::stream(cpu_engine());
  worker.scratchpad.grow(std::max(data.scratchpad, weights.scratchpad));
  std::vector<float> parameters;
  for (const Half w : pixel_numbers(std::int64_t{p.in.c} * p.out.c, 5)) parameters.push_back(widened(w));
  for (const Direction d : {Direction::forward, Direction::backward}) layer.pack(d, parameters.data(), worker.stream);

  std::vector<Half> source = pixel_numbers(p.n * p.in.size(), 1), gradient = pixel_numbers(p.n * p.out.size(), 77);
  std::vector<Half> used(static_cast<std::size_t>(p.n) * static_cast<std::size_t>(p.out.h * p.out.w * p.in.c));
  std::vector<Half> by_source(source.size(), number(3));
  const bool copies = p.by_matrices && is_strided(p);
  Call(data, 0)(worker, gradient.data(), copies ? used.data() : by_source.data(), layer.backward_weights_packed());
  if (copies) scatter_pixels(p, p.n, used.data(), by_source.data());
  if (copies) gather_pixels(p, p.n, source.data(), used.data());
  Buffer sums(layer.gradient_layout().get_size());
  Call(weights, 0)(worker, copies ? used.data() : source.data(), gradient.data(), sums.data());

  Gradients result;
  for (const Half value : by_source) result.source.push_back(widened(value));
  result.weights.resize(parameters.size());
  dnnl::memory from(layer.gradient_layout(), cpu_engine(), sums.data());
  dnnl::memory to(p.plain_weights(), cpu_engine(), result.weights.data());
  dnnl::reorder(from, to).execute(worker.stream, from, to);
  return result;
}

// The definition, in double.
Gradients expected(const Product& p) {
  const auto source = pixel_numbers(p.n * p.in.size(), 1), gradient = pixel_numbers(p.n * p.out.size(), 77);
  const auto weights = pixel_numbers(std::int64_t{p.in.c} * p.out.c, 5);
  std::vector<double> by_source(source.size()), by_weights(weights.size());
  for (int sample = 0; sample < p.n; ++sample) {
    for (int y = 0; y < p.out.h; ++y) {
      for (int x = 0; x < p.out.w; ++x) {
        const auto from = static_cast<std::size_t>((sample * p.out.h + y) * p.out.w + x);
        const auto to = static_cast<std::size_t>((sample * p.in.h + y * p.convolution.stride_h) * p.in.w +
                                                 x * p.convolution.stride_w);
        const auto in = static_cast<std::size_t>(p.in.c), out = static_cast<std::size_t>(p.out.c);
        for (std::size_t o = 0; o < out; ++o) {
          for (std::size_t i = 0; i < in; ++i) {
            by_source[to * in + i] += double{widened(gradient[from * out + o])} * widened(weights[o * in + i]);
            by_weights[o * in + i] += double{widened(gradient[from * out + o])} * widened(source[to * in + i]);
          }
        }
      }
    }
  }
  return {{by_source.begin(), by_source.end()}, {by_weights.begin(), by_weights.end()}};
}

TEST(PixelMatrices, GiveTheGradientsOfTheConvolution) {
  if (make_cpu_backend()->why_not(DType::bfloat16)) GTEST_SKIP() << "this CPU lacks bfloat16";
  const PixelCase cases[] = {{64, 96, 7, 7, 1, 1, 1},      {5, 7, 9, 7, 1, 1, 3},    {1, 1, 1, 1, 1, 1, 1},
                             {64, 32, 7, 7, 2, 2, 1},      {48, 130, 9, 6, 2, 2, 3}, {3, 20, 8, 10, 3, 2, 2},
                             {80, 33, 1, 1, 1, 1, 6, true}};
  for (const PixelCase& c : cases) {
    const Product p = product(c, true);
    const Gradients ours = gradients(p), wanted = expected(p);
    EXPECT_LT(testing::relative_difference(ours.weights, wanted.weights), 1e-5) << p.shape_name();
    EXPECT_LT(testing::relative_difference(ours.source, wanted.source), 4e-3) << p.shape_name();  // rounded
    const Gradients by_convolution = gradients(product(c, false));
    EXPECT_LT(testing::relative_difference(by_convolution.weights, wanted.weights), 1e-5) << p.shape_name();
  }
}

TEST(PixelMatrices, ServeBfloat16OnMatrixUnitsOnly) {
  const CpuModel amx{.has_avx512_bf16 = true, .has_amx_bf16 = true}, vectors{.has_avx512_bf16 = true};
  Product p = product({64, 64, 8, 8, 1, 1, 1}, false);
  EXPECT_TRUE(multiplies_matrices(p, amx, 2));
  EXPECT_FALSE(multiplies_matrices(p, vectors, 2));
  p.dtype = DType::float32;
  EXPECT_FALSE(multiplies_matrices(p, amx, 2));
}

TEST(PixelMatrices, ServeTokensInFloat32) {
  const CpuModel vectors{.has_avx512 = true};
  Product p = product({64, 64, 1, 9, 1, 1, 1}, false);
  p.dtype = DType::float32;
  EXPECT_TRUE(multiplies_matrices(p, vectors, 2));
  EXPECT_FALSE(multiplies_matrices(p, {}, 2));
  p.in.h = p.out.h = 8;
  EXPECT_FALSE(multiplies_matrices(p, vectors, 2)) << "a picture";
}

// gather_pixels() and scatter_pixels() know elements of 2 bytes only.
TEST(PixelMatrices, ServeNoStridedConvolutionInFloat32) {
  const CpuModel vectors{.has_avx512 = true};
  for (const PixelCase& c : {PixelCase{64, 64, 1, 1, 2, 2, 1}, {64, 64, 1, 9, 2, 1, 1}, {64, 64, 9, 1, 1, 3, 1}}) {
    Product p = product(c, false);
    p.dtype = DType::float32;
    EXPECT_EQ(p.in, p.out);
    EXPECT_FALSE(multiplies_matrices(p, vectors, 2)) << p.shape_name();
  }
}

TEST(PixelMatrices, ServeStridedConvolutionsOnlyFromOneDnnThreeOn) {
  const CpuModel amx{.has_avx512_bf16 = true, .has_amx_bf16 = true};
  EXPECT_FALSE(multiplies_matrices(product({64, 64, 8, 8, 1, 1, 1}, false), amx, 3));
  EXPECT_TRUE(multiplies_matrices(product({64, 64, 8, 8, 2, 2, 1}, false), amx, 3));
}

TEST(PixelMatrices, ServeDenseLayersOfOnePixel) {
  const CpuModel amx{.has_avx512_bf16 = true, .has_amx_bf16 = true};
  const Product p = product({64, 64, 1, 1, 1, 1, 1, true}, false);
  EXPECT_TRUE(multiplies_matrices(p, amx, 2));
  EXPECT_FALSE(multiplies_matrices(p, amx, 3));
}

TEST(PixelMatrices, NeedAKernelOfOnePixelWithoutPaddingOrGroups) {
  const CpuModel amx{.has_avx512_bf16 = true, .has_amx_bf16 = true};
  for (const auto change : std::initializer_list<void (*)(Product&)>{
           [](Product& p) { p.convolution.kernel_h = 3; }, [](Product& p) { p.convolution.kernel_w = 3; },
           [](Product& p) { p.convolution.groups = 2; }, [](Product& p) { p.convolution.pad_w = 1; },
           [](Product& p) { p.dense = true; }}) {  // 8x8 pixels
    Product p = product({64, 64, 8, 8, 1, 1, 1}, false);
    change(p);
    EXPECT_FALSE(multiplies_matrices(p, amx, 2));
  }
}

}  // namespace
}  // namespace dtrain::backend::cpu
