// First layers that are computed in another way than as a convolution of the image: the same products, the same
// gradients of the same weights.
#include "first_layer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include <dtrain/nn/networks.hpp>

#include "call.hpp"
#include "common/problem.hpp"
#include "common/replay_device.hpp"
#include "common/trace.hpp"
#include "random_values.hpp"
#include "training_calls.hpp"

namespace dtrain::backend::cuda {
namespace {

ConvolutionShape shape_of(std::int32_t c, std::int32_t size, std::int32_t kernel, std::int32_t stride,
                          std::int32_t pad) {
  const std::int32_t out = (size + 2 * pad - kernel) / stride + 1;
  return {2, c, size, size, 8, out, out, kernel, kernel, stride, stride, pad, pad, 1};
}

TEST(CudaFirstLayer, IsComputedOnBlocksWhereThatTakesNoMoreArithmeticAndFewerBytes) {
  const auto pays = [](const ConvolutionShape& s) { return pixel_blocks(s, DType::bfloat16).has_value(); };
  EXPECT_TRUE(pays(shape_of(3, 224, 7, 2, 3)));  // ResNet: 16 places of 16 channels for 49 places of 8
  EXPECT_TRUE(pays(shape_of(3, 224, 3, 2, 1)));  // MobileNet: 4 places of 16 channels for 9 places of 8
  EXPECT_TRUE(pays(shape_of(1, 28, 5, 2, 2)));
  EXPECT_TRUE(pays(shape_of(3, 225, 4, 2, 1)));
  EXPECT_FALSE(pays(shape_of(3, 224, 1, 2, 0)));  // three of four pixels are read in vain
  EXPECT_FALSE(pays(shape_of(3, 32, 3, 1, 1)));
  EXPECT_FALSE(pays(shape_of(3, 224, 11, 4, 2)));
  EXPECT_FALSE(pays(shape_of(8, 56, 7, 2, 3)));                           // whole vectors as they are
  EXPECT_FALSE(pixel_blocks(shape_of(3, 224, 7, 2, 3), DType::float32));  // nothing is filled up
  const PixelBlocks resnet = *pixel_blocks(shape_of(3, 224, 7, 2, 3), DType::float16);
  EXPECT_EQ(resnet, (PixelBlocks{3, 224, 224, 3, 3, 16, 115, 115}));
}

TEST(CudaFirstLayer, IsThatOfTheGraph) {
  const auto layer_of = [](const nn::NetworkOptions& options) {
    return first_layer_of(nn::build_network(options), DType::bfloat16);
  };
  EXPECT_TRUE(layer_of({.name = "resnet-v1", .num_layers = 50, .image = {3, 224, 224}}).blocks);
  EXPECT_TRUE(layer_of({.name = "mobilenet", .image = {3, 64, 64}}).blocks);
  EXPECT_EQ(layer_of({.name = "resnet-v1", .num_layers = 20, .image = {3, 32, 32}}).convolution, -1);
  EXPECT_EQ(layer_of({.name = "lenet", .image = {1, 28, 28}}).convolution, -1);
  const FirstLayer speednet = layer_of({.name = "speednet", .image = {3, 32, 32}});
  EXPECT_EQ(speednet.activation, speednet.convolution + 1);
  EXPECT_FALSE(speednet.blocks);
  EXPECT_EQ(layer_of({.name = "speednet", .image = {1, 32, 32}}).convolution, -1);
}

// What two readers of the image, or an image that goes elsewhere, see is the image.
TEST(CudaFirstLayer, IsAPlainOneWhereTheImageHasOtherReaders) {
  nn::GraphBuilder b("two", {3, 16, 16});
  const int left =
      b.add("left", nn::Convolution{.out = 8, .kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2}, {b.input()});
  const int right = b.add(
      "right", nn::Convolution{.out = 8, .kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2}, {b.input()});
  const int sum = b.add("sum", nn::Add{}, {left, right});
  const nn::Graph graph = b.finish(b.add("logits", nn::Dense{.out = 4}, {sum}));
  EXPECT_EQ(first_layer_of(graph, DType::bfloat16).convolution, -1);
}

template <typename Kernel>
void run_first_layer(const Kernel& kernel) {
  for (std::int64_t i = kernel.threads() - 1; i >= 0; --i) kernel(i);
}

// Whole numbers so small that no sum is rounded: what differs is not an order of additions.
template <typename T>
std::vector<T> whole_numbers(std::int64_t size, std::uint32_t seed) {
  std::minstd_rand random(seed);
  std::uniform_int_distribution<int> distribution(-7, 7);
  std::vector<T> values(static_cast<std::size_t>(size));
  for (T& value : values) narrow(static_cast<float>(distribution(random)), value);
  return values;
}

template <typename T>
std::vector<float> widened(const std::vector<T>& values) {
  std::vector<float> wide;
  for (const T value : values) wide.push_back(widen(value));
  return wide;
}

template <typename T>
std::vector<T> filled(std::int64_t size, float value) {
  T one{};
  narrow(value, one);
  return std::vector<T>(static_cast<std::size_t>(size), one);
}

// The first layer in one of its two ways, on the same images, weights and gradients.
template <typename T>
struct Layer {
  ConvolutionShape shape;
  PackedWeight weight;
  std::vector<float> results, gradients;
};

template <typename T>
void compute(Layer<T>& layer, const ConvolutionShape& plain, const std::vector<T>& x) {
  const ConvolutionShape& s = layer.shape;
  const std::vector<float> parameters = whole_numbers<float>(layer.weight.flat_size, 2);
  const std::vector<T> dy = whole_numbers<T>(s.outputs(), 3);
  const PackedWeights table{&layer.weight, 1, layer.weight.size};
  std::vector<T> copies = filled<T>(s.weights(), std::nanf("")), y = filled<T>(s.outputs(), std::nanf(""));
  run_first_layer(PackWeights<T>{table, parameters.data(), copies.data()});
  run_first_layer(Convolve<T>{x.data(), copies.data(), y.data(), s});
  layer.results = widened(y);

  const RowParts cut = cut_weight_rows(s);
  std::vector<float> sums(static_cast<std::size_t>(cut.parts * s.weights()), std::nanf(""));
  // float32, so that the gradients are whole, too.
  std::vector<float> gradients(static_cast<std::size_t>(s.weights()), std::nanf(""));
  run_first_layer(ConvolveBackwardWeights<T>{x.data(), dy.data(), sums.data(), s, cut});
  run_first_layer(FinishWeights<float>{sums.data(), gradients.data(), s.weights(), cut.parts});
  layer.gradients.assign(static_cast<std::size_t>(plain.weights()), std::nanf(""));
  run_first_layer(UnpackGradients<float>{table, gradients.data(), layer.gradients.data(), 0, layer.weight.size});
}

template <typename T>
void expect_same_products(const ConvolutionShape& plain, const PixelBlocks& blocks) {
  const std::vector<float> images = whole_numbers<float>(plain.inputs(), 1);
  const std::vector<std::int32_t> labels = {5, 6};
  const std::vector<std::uint32_t> ids = {7, 8};
  const Samples samples{.images = images.data(), .pixels = {}, .labels = labels.data(), .sample_ids = ids.data()};
  const Images of{&samples, plain.in, plain.in_h, plain.in_w};
  std::vector<std::int32_t> loaded_labels(2);
  std::vector<std::uint32_t> loaded_ids(2);
  const SampleNames names{loaded_labels.data(), loaded_ids.data()};

  const ConvolutionShape on_blocks = shape_on_blocks(plain, blocks);
  std::vector<T> pixels = filled<T>(plain.inputs(), std::nanf("")),
                 filled_blocks = filled<T>(on_blocks.inputs(), std::nanf(""));
  run_first_layer(LoadSamples<T>{of, names, pixels.data(), plain.n});
  loaded_labels = {}, loaded_ids = {};
  loaded_labels.resize(2), loaded_ids.resize(2);
  const SampleNames other_names{loaded_labels.data(), loaded_ids.data()};
  if (plain.in == 1) {
    run_first_layer(LoadBlocks<T, 1>{of, other_names, filled_blocks.data(), blocks, plain.n});
  } else {
    run_first_layer(LoadBlocks<T, 3>{of, other_names, filled_blocks.data(), blocks, plain.n});
  }
  EXPECT_EQ(loaded_labels, labels);
  EXPECT_EQ(loaded_ids, ids);

  Layer<T> as_it_is{plain, packed_weight(0, 0, plain, nullptr), {}, {}};
  Layer<T> by_blocks{on_blocks, packed_weight(0, 0, plain, &blocks), {}, {}};
  compute(as_it_is, plain, pixels);
  compute(by_blocks, plain, filled_blocks);
  EXPECT_EQ(as_it_is.results, by_blocks.results);
  EXPECT_EQ(as_it_is.gradients, by_blocks.gradients);
}

TEST(CudaFirstLayer, OnBlocksHasTheSameProductsAndTheSameGradients) {
  struct Case {
    std::int32_t c, h, w, kernel_h, kernel_w, pad_h, pad_w;
  };
  for (const auto& [c, h, w, kernel_h, kernel_w, pad_h, pad_w] :
       {Case{3, 20, 18, 7, 7, 3, 3}, Case{3, 15, 16, 3, 3, 1, 1}, Case{1, 17, 14, 5, 7, 2, 3},
        Case{3, 9, 13, 4, 4, 1, 1}, Case{1, 12, 11, 2, 3, 0, 1}, Case{3, 13, 13, 7, 7, 0, 0}}) {
    const ConvolutionShape plain{2,
                                 c,
                                 h,
                                 w,
                                 5,
                                 (h + 2 * pad_h - kernel_h) / 2 + 1,
                                 (w + 2 * pad_w - kernel_w) / 2 + 1,
                                 kernel_h,
                                 kernel_w,
                                 2,
                                 2,
                                 pad_h,
                                 pad_w,
                                 1};
    const auto blocks = pixel_blocks(plain, DType::bfloat16);
    ASSERT_TRUE(blocks);
    SCOPED_TRACE(::testing::Message() << kernel_h << "x" << kernel_w << " of " << c << "x" << h << "x" << w);
    expect_same_products<float>(plain, *blocks);
    expect_same_products<Bf16>(plain, *blocks);
    expect_same_products<Half>(plain, *blocks);
  }
}

nn::Graph stem_network() {
  nn::GraphBuilder b("stem", {3, 21, 19});
  int x = b.add(
      "conv0",
      nn::Convolution{.out = 8, .kernel_h = 7, .kernel_w = 7, .stride_h = 2, .stride_w = 2, .pad_h = 3, .pad_w = 3},
      {b.input()});
  x = b.add("bn0", nn::BatchNorm{}, {x});
  x = b.add("relu0", nn::Activation{.kind = nn::ActivationKind::relu}, {x});
  return b.finish(b.add("logits", nn::Dense{.out = 4}, {x}));
}

TEST(CudaFirstLayer, OnBlocksTrainsAsTheReferenceDoes) {
  ASSERT_TRUE(first_layer_of(stem_network(), DType::bfloat16).blocks);
  testing::TraceOptions options;
  options.updates = 3;
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    options.dtype = dtype;
    const testing::Tolerance tolerance{
        .loss = 0.02, .gradients = 0.3, .statistics = 0.02, .logits = 0.04, .parameters = 0.04};
    EXPECT_EQ(testing::compare_backends(*make_replay_backend(), *make_reference_backend(),
                                        testing::make_problem(stem_network(), 7), options, tolerance),
              "")
        << dtype_name(dtype);
  }
}

// An optimizer that reads gradients beside the copies of weights, and one that reads them in the sum.
TEST(CudaFirstLayer, OnBlocksMovesItsWeightsWhereverTheirGradientsAre) {
  const testing::Problem problem = testing::make_problem(stem_network(), 5);
  const auto trained = [&](std::optional<nn::OptimizerKind> announced) {
    const auto executable = make_replay_backend()->compile(
        problem.graph, {.dtype = DType::bfloat16, .max_samples = problem.n, .optimizer = announced});
    executable->write_state(problem.state);
    for (int step = 0; step < 3; ++step) {
      executable->enqueue(problem.batch(), testing::split_samples(problem.n, 1), problem.key, OwnSum{});
      executable->set_sum(OwnSum{});
      executable->apply({{}, 0.05f});
    }
    return executable->state().parameters;
  };
  const std::vector<float> in_copies = trained(nn::OptimizerKind::sgd);
  EXPECT_EQ(in_copies, trained(std::nullopt));
  EXPECT_NE(in_copies, problem.state.parameters);
}

template <typename T>
class WhiteningOn : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, Bf16, Half>;
TYPED_TEST_SUITE(WhiteningOn, ValueTypes);

// Against a convolution, its bias and GELU one after the other, in float32, and their gradients.
TYPED_TEST(WhiteningOn, ComputesWhatItsLayersComputeOneByOne) {
  using T = TypeParam;
  constexpr std::int32_t kOut = 24, kSamples = 3;
  const ConvolutionShape shape{kSamples, 3, 9, 8, kOut, 8, 7, 2, 2, 1, 1, 0, 0, 1};
  const std::vector<T> image = random_values<T>(shape.inputs(), 4, -2, 2);
  const std::vector<float> weights = random_values<float>(shape.weights(), 1, -1, 1);
  const std::vector<float> bias = random_values<float>(kOut, 2, -1, 1);
  const Whitening<T> whitening{image.data(), 9, 8, weights.data(), bias.data(), kOut};

  const PackedWeight weight = packed_weight(0, 0, shape, nullptr);
  const std::vector<float> wide_image = widened(image);
  std::vector<float> copies(weights.size()), z(static_cast<std::size_t>(shape.outputs())), expected(z.size());
  run_first_layer(PackWeights<float>{{&weight, 1, weight.size}, weights.data(), copies.data()});
  run_first_layer(Convolve<float>{wide_image.data(), copies.data(), z.data(), shape});
  const ChannelBias late{bias.data(), kOut};
  run_first_layer(Activate<float>{z.data(), late, expected.data(), shape.outputs(), nn::ActivationKind::gelu});

  std::vector<T> y = filled<T>(shape.outputs(), std::nanf(""));
  run_first_layer(WhitenImages<T>{whitening, y.data(), kSamples});
  constexpr float kShare = std::is_same_v<T, float> ? 2e-6f : std::is_same_v<T, Half> ? 6e-4f : 5e-3f;
  for (std::size_t k = 0; k < y.size(); ++k) {
    ASSERT_NEAR(widen(y[k]), expected[k], kShare * (std::abs(expected[k]) + 1)) << k;
  }

  const std::vector<T> dy = random_values<T>(shape.outputs(), 3, -1, 1);
  const std::vector<float> wide = widened(dy);
  std::vector<float> dz(z.size());
  run_first_layer(
      ActivateGradient<float>{wide.data(), z.data(), late, dz.data(), shape.outputs(), nn::ActivationKind::gelu});
  const RowParts cut = cut_rows(shape.outputs() / kOut, packs_of(kOut, Pack<T>::size));
  std::vector<float> parts(static_cast<std::size_t>(cut.parts * kOut), std::nanf(""));
  run_first_layer(WhiteningSums<T>{whitening, dy.data(), parts.data(), cut});
  for (std::int32_t channel = 0; channel < kOut; ++channel) {
    double sum = 0;
    for (std::size_t k = static_cast<std::size_t>(channel); k < dz.size(); k += kOut) sum += dz[k];
    ASSERT_NEAR(sum_of_parts(parts.data(), cut.parts, kOut, channel), sum, 1e-4) << channel;
  }
}

// What the convolution makes of the image, and the gradient of that, are never written.
TEST(CudaFirstLayer, WhitensInOneLaunchInEachDirection) {
  const auto calls = training_calls(nn::build_network({.name = "speednet", .image = {3, 32, 32}}), DType::bfloat16, 4);
  std::vector<std::string> whitening;
  for (const Call& call : calls) {
    const bool is_final = call.work.holds<UnpackGradients<Bf16>>() || call.work.holds<EventMarker>();
    if (!is_final && (call.name.starts_with("whiten") || call.name.starts_with("gelu0")))
      whitening.push_back(call.name);
  }
  EXPECT_EQ(whitening, (std::vector<std::string>{"gelu0.forward", "whiten.backward_bias"}));
}

}  // namespace
}  // namespace dtrain::backend::cuda
