// What all operations promise that write a weights' gradient by own kernels: they write all of it and nothing beside
// it, whatever the contribution held, and neither chunks nor its place in memory show in the bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <ostream>
#include <vector>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/random.hpp>

#include "common/layer_cases.hpp"
#include "products/dense_gradient.hpp"
#include "products/matrix_gradient.hpp"
#include "products/tile_gradient_op.hpp"
#include "products/tile_stem_op.hpp"
#include "products/winograd.hpp"

namespace dtrain::backend::cpu {
namespace {

using testing::square;

constexpr TensorId kSourceTensor = 0, kGradientTensor = 1;
constexpr std::int64_t kBeside = 16;  // floats of a contribution before and behind the gradient: a line of the cache

struct GradientCase {
  const char* name;
  Product product;
  int samples;
  bool (*fits)(const Product& p, const CpuModel& cpu);
  std::unique_ptr<Op> (*make)(ProductLayer& layer);
};
void PrintTo(const GradientCase& c, std::ostream* out) { *out << c.name; }

Product convolution_of(const nn::Shape& in, const nn::Convolution& c, DType type) {
  Product p;
  p.in = in;
  p.out = {c.out, (in.h + 2 * c.pad_h - c.kernel_h) / c.stride_h + 1,
           (in.w + 2 * c.pad_w - c.kernel_w) / c.stride_w + 1};
  p.convolution = c;
  p.dtype = p.out_dtype = type;
  return p;
}

Product dense_of(const nn::Shape& in, int out) {
  Product p;
  p.in = in;
  p.out = {out, 1, 1};
  p.dense = true;
  return p;
}

Product widened(Product p) {
  p.widened = true;
  return p;
}

std::unique_ptr<Op> winograd_gradient(ProductLayer& layer) {
  return make_winograd_backward_weights(layer, kSourceTensor, kGradientTensor, {});
}
std::unique_ptr<Op> matrix_gradient(ProductLayer& layer) {
  return make_matrix_gradient(layer, kSourceTensor, kGradientTensor);
}
std::unique_ptr<Op> dense_gradient(ProductLayer& layer) {
  return make_dense_gradient(layer, kSourceTensor, kGradientTensor);
}
std::unique_ptr<Op> tiles_gradient(ProductLayer& layer) {
  return make_tile_gradient(layer, kSourceTensor, kGradientTensor);
}
std::unique_ptr<Op> stem_gradient(ProductLayer& layer) { return make_tile_stem(layer, kSourceTensor, kGradientTensor); }

// The operation on one thread, whose memory is full of garbage.
class OneThread {
 public:
  explicit OneThread(const GradientCase& c) : samples_(c.samples), layer_(c.product, kBeside, -1), op_(c.make(layer_)) {
    for (const nn::Shape& shape : {c.product.in, c.product.out}) {
      tensors_.push_back({.shape = shape, .dtype = c.product.dtype, .offset = arena_.size()});
      arena_.grow(arena_.size() + static_cast<std::size_t>(samples_) * tensors_.back().sample_bytes());
    }
    for (const Tensor& tensor : tensors_) fill(tensor);
  }

  // The gradient by the first `samples`. The contribution begins `shift` floats behind the begin of a line.
  std::vector<float> gradient(int samples, int most_of_chunk, std::int64_t shift) {
    const Chunks chunks{samples, most_of_chunk};
    const std::int64_t size = op_->gradients.at(0).size;
    const Buffer memory(sizeof(float) * static_cast<std::size_t>(shift + kBeside + size + kBeside));
    fill_with_garbage(memory);
    prepare(chunks);
    Context c;
    c.tensors = tensors_;
    c.arena = arena_.data();
    c.worker = &worker_;
    c.contribution = memory.as<float>() + shift;
    c.chunks = chunks.number();
    op_->begin(c);
    for (int chunk = 0; chunk < chunks.number(); ++chunk) {
      c.chunk = chunk;
      c.first = chunks.first(chunk);
      c.count = chunks.size(chunk);
      op_->run(c);
    }
    op_->finish(c);
    const float* const first = c.contribution + kBeside;
    for (std::int64_t k = 0; k < kBeside; ++k) {
      EXPECT_TRUE(std::isnan(first[k - kBeside]) && std::isnan(first[size + k])) << "written beside the gradient";
    }
    return {first, first + size};
  }

 private:
  static void fill_with_garbage(const Buffer& buffer) {  // NaNs of both types
    std::fill_n(buffer.data(), buffer.size(), std::byte{0xff});
  }

  void fill(const Tensor& tensor) {
    RandomStream random(1, RandomUse::drawing, static_cast<std::uint32_t>(tensor.offset), 0);
    const std::int64_t count = samples_ * tensor.shape.size();
    for (std::int64_t k = 0; k < count; ++k) {
      const float value = random.uniform(-1, 1);
      if (tensor.dtype == DType::float32) {
        arena_.as<float>(tensor.offset)[k] = value;
      } else {
        arena_.as<std::uint16_t>(tensor.offset)[k] = to_bfloat16(value);
      }
    }
  }

  void prepare(const Chunks& chunks) {
    if (chunks.number() > 0) {
      op_->prepare(chunks.size(0), 1);
      op_->prepare(chunks.size(chunks.number() - 1), 1);
    }
    worker_.scratchpad = Buffer(op_->scratchpad_bytes());
    worker_.workspace = Buffer(op_->workspace_bytes());
    fill_with_garbage(worker_.scratchpad);
    fill_with_garbage(worker_.workspace);
  }

  const int samples_;
  ProductLayer layer_;
  std::unique_ptr<Op> op_;
  std::vector<Tensor> tensors_;
  Buffer arena_;
  Worker worker_;
};

class WeightsGradients : public ::testing::TestWithParam<GradientCase> {
 protected:
  void SetUp() override {
    if (!GetParam().fits(GetParam().product, this_cpu())) GTEST_SKIP() << "this CPU computes it in another way";
  }
};

// Gradients that pass the caches and that do not. With minimal filtering more tiles than a block has, parts of 48
// channels and of fewer; with matrices more pixels than a block has.
INSTANTIATE_TEST_SUITE_P(
    Operations, WeightsGradients,
    ::testing::Values(GradientCase{"winograd", convolution_of({128, 8, 8}, square(256, 3, 1, 1), DType::float32), 7,
                                   filters_minimally, winograd_gradient},
                      GradientCase{"small winograd", convolution_of({64, 9, 14}, square(32, 3, 1, 1), DType::float32),
                                   3, filters_minimally, winograd_gradient},
                      GradientCase{"winograd of bfloat16",
                                   convolution_of({64, 9, 14}, square(48, 3, 1, 1), DType::bfloat16), 3,
                                   filters_minimally, winograd_gradient},
                      GradientCase{"matrix", convolution_of({512, 7, 7}, square(520, 1, 1, 0), DType::float32), 5,
                                   has_matrix_gradient, matrix_gradient},
                      GradientCase{"matrix of bfloat16",
                                   widened(convolution_of({512, 7, 7}, square(520, 1, 1, 0), DType::bfloat16)), 5,
                                   has_matrix_gradient, matrix_gradient},
                      GradientCase{"dense", dense_of({64, 8, 8}, 256), 3, has_dense_gradient, dense_gradient},
                      GradientCase{"tiles", convolution_of({96, 5, 5}, square(320, 3, 1, 1), DType::bfloat16), 3,
                                   has_tile_gradient, tiles_gradient},
                      GradientCase{"small tiles", convolution_of({48, 6, 5}, square(64, 3, 2, 1), DType::bfloat16), 3,
                                   has_tile_gradient, tiles_gradient},
                      GradientCase{"stem", convolution_of({3, 20, 22}, square(64, 7, 2, 3), DType::bfloat16), 3,
                                   has_tile_stem, stem_gradient}));

// A number that is left out is a NaN, and equals nothing.
TEST_P(WeightsGradients, AreTheSameHoweverSamplesAreDivided) {
  const int samples = GetParam().samples;
  OneThread thread(GetParam());
  const std::vector<float> together = thread.gradient(samples, samples, 0);
  EXPECT_EQ(thread.gradient(samples, 1, 0), together);
  EXPECT_EQ(thread.gradient(samples, 2, 0), together) << "chunks of two sizes";
}

TEST_P(WeightsGradients, AreTheSameInAnyPlace) {
  const int samples = GetParam().samples;
  OneThread thread(GetParam());
  const std::vector<float> at_a_line = thread.gradient(samples, samples, 0);
  EXPECT_EQ(thread.gradient(samples, samples, 1), at_a_line);
  EXPECT_EQ(thread.gradient(samples, 2, 3), at_a_line);
}

TEST_P(WeightsGradients, AreZeroWithoutSamples) {
  OneThread thread(GetParam());
  EXPECT_TRUE(std::ranges::all_of(thread.gradient(0, 1, 0), [](float each) { return each == 0; }));
}

}  // namespace
}  // namespace dtrain::backend::cpu
