#include <gtest/gtest.h>

#include <algorithm>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/progressive_sizes.hpp>

#include "common/trace.hpp"

namespace dtrain::train {
namespace {

constexpr nn::Shape kWhole{3, 224, 192};

// Composer's: round(scale * size / increment) * increment.
TEST(ProgressiveSizes, GrowBetweenTheDelayAndTheFinetuning) {
  const ProgressiveSizes sizes{.enabled = true};
  for (const double done : {0.0, 0.3, 0.5}) EXPECT_EQ(sizes.at(done, kWhole), (nn::Shape{3, 112, 96}));
  EXPECT_EQ(sizes.at(0.65, kWhole), (nn::Shape{3, 168, 144}));
  EXPECT_EQ(sizes.at(0.7, kWhole), (nn::Shape{3, 188, 160}));  // of 186.7 and 160
  for (const double done : {0.8, 0.9, 1.0, 1.5}) EXPECT_EQ(sizes.at(done, kWhole), kWhole);
  int before = 0;
  for (double done = 0; done < 1; done += 0.01) {
    const nn::Shape now = sizes.at(done, {3, 50, 50});
    EXPECT_TRUE(now.h % 4 == 0 || now.h == 50);
    EXPECT_GE(now.h, before);
    before = now.h;
  }
}

TEST(ProgressiveSizes, ReachTheirEndsWithoutAWayBetween) {
  const ProgressiveSizes jump{.enabled = true, .initial_scale = 0.01, .delay = 0.5, .finetune = 0.5};
  EXPECT_EQ(jump.at(0.49, {3, 32, 32}), (nn::Shape{3, 4, 4})) << "an increment at least";
  EXPECT_EQ(jump.at(0.5, {3, 32, 32}), (nn::Shape{3, 32, 32}));
  const ProgressiveSizes small{.enabled = true, .increment = 64};
  EXPECT_EQ(small.at(0, {3, 32, 32}), (nn::Shape{3, 32, 32})) << "no increment is larger than the images";
}

TEST(ProgressiveSizes, AreAllKnownBeforeTheRun) {
  const ProgressiveSizes jump{.enabled = true, .initial_scale = 0.5, .delay = 0.5, .finetune = 0.5};
  EXPECT_EQ(jump.all({3, 32, 32}), (std::vector<nn::Shape>{{3, 16, 16}, {3, 32, 32}}));
  const ProgressiveSizes rising{.enabled = true};
  const std::vector<nn::Shape> all = rising.all(kWhole);
  EXPECT_EQ(all.front(), rising.at(0, kWhole));
  EXPECT_EQ(all.back(), kWhole);
  for (double done = 0; done < 1; done += 0.001) {
    EXPECT_EQ(std::ranges::count(all, rising.at(done, kWhole)), 1) << done;
  }
}

// torch.nn.functional.interpolate(x, (3, 4), mode="bilinear"), x the squares of 1 to 24 divided by 8.
TEST(ProgressiveSizes, ResizeAsPyTorchInterpolates) {
  std::vector<float> image(2 * 24), small(2 * 12);
  for (int i = 0; i < 48; ++i) image[static_cast<std::size_t>(i)] = static_cast<float>((i % 24 + 1) * (i % 24 + 1)) / 8;
  resize_images(image.data(), 1, {2, 4, 6}, {2, 3, 4}, small.data());
  const std::vector<float> expected = {1.28125012f, 2.40625024f, 4.09375048f, 6.34375048f, 14.281251f,  18.4062519f,
                                       23.0937519f, 28.3437519f, 42.28125f,   49.40625f,   57.0937538f, 65.34375f};
  for (std::size_t i = 0; i < small.size(); ++i) EXPECT_FLOAT_EQ(small[i], expected[i % 12]) << i;
}

TEST(ProgressiveSizes, OnlyANetworkWhoseWeightsFitAllSizesIsResized) {
  nn::GraphBuilder builder("flat", {3, 8, 8});
  const nn::Graph flat = builder.finish(builder.add("fc", nn::Dense{4}, {0}));
  EXPECT_THROW(with_image(flat, {3, 4, 4}), UsageError);
  nn::GraphBuilder other("pooled", {3, 8, 8});
  int x = other.add("conv", nn::Convolution{.out = 4, .kernel_h = 3, .kernel_w = 3}, {0});
  x = other.add("pool", nn::Pooling{.kind = nn::PoolingKind::average, .global = true}, {x});
  const nn::Graph pooled = other.finish(other.add("fc", nn::Dense{4}, {x}));
  EXPECT_EQ(with_image(pooled, {3, 4, 4}).nodes[1].output, (nn::Shape{4, 2, 2}));
  EXPECT_THROW(with_image(pooled, {3, 2, 2}), UsageError) << "the window does not fit";
}

TEST(ImageSizes, OfADetectorAreThoseOfOneMadeForThem) {
  for (const char* name : {"mask-rcnn", "retinanet"}) {
    const auto made = [&](int h, int w) {
      return nn::graph_to_json(
          nn::build_network({.name = name, .image = {3, h, w}, .classes = 4, .backbone = "resnet-18"}));
    };
    const nn::Graph square = nn::graph_from_json(made(160, 160), name);
    for (const auto& [h, w] : {std::pair{96, 160}, {160, 128}, {64, 224}}) {
      EXPECT_EQ(nn::graph_to_json(with_image(square, {3, h, w})).dump(), made(h, w).dump()) << name << ' ' << h;
    }
  }
}

TEST(ResizingExecutable, HandsItsStateFromSizeToSizeAndJudgesWholeImages) {
  nn::GraphBuilder builder("pooled", {3, 8, 8});
  int x = builder.add("conv", nn::Convolution{.out = 4, .kernel_h = 3, .kernel_w = 3}, {0});
  x = builder.add("pool", nn::Pooling{.kind = nn::PoolingKind::average, .global = true}, {x});
  const testing::Problem problem = testing::make_problem(builder.finish(builder.add("fc", nn::Dense{4}, {x})), 5);
  const auto backend = backend::make_reference_backend();
  const backend::CompileOptions options{.max_samples = 5, .top_k = 1};
  const auto executable = compile_resizing(*backend, problem.graph, options, {.enabled = true});
  const auto plain = backend->compile(problem.graph, options);
  executable->write_state(problem.state);
  plain->write_state(problem.state);
  std::vector<float> expected(20), found(20);
  plain->evaluate(problem.batch(), expected);
  EXPECT_EQ(executable->image(), (nn::Shape{3, 4, 4}));
  executable->evaluate(problem.batch(), found);
  EXPECT_EQ(found, expected);
  executable->begin_step(0.65);
  EXPECT_EQ(executable->image(), (nn::Shape{3, 8, 8}));
  EXPECT_EQ(executable->state().parameters, problem.state.parameters);
  executable->evaluate(problem.batch(), found);
  EXPECT_EQ(found, expected);
}

nn::Graph pooled_network(const nn::Shape& image) {
  nn::GraphBuilder builder("pooled", image);
  int x = builder.add("conv", nn::Convolution{.out = 4, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1}, {0});
  x = builder.add("norm", nn::BatchNorm{}, {x});
  x = builder.add("pool", nn::Pooling{.kind = nn::PoolingKind::average, .global = true}, {x});
  return builder.finish(builder.add("fc", nn::Dense{4}, {x}));
}

// Steps on one size and the other, each held against an executable for that size alone.
TEST(GroupedExecutable, EachSizeComputesWithTheSameWeights) {
  constexpr nn::Shape kWide{3, 4, 8}, kHigh{3, 8, 4};
  const testing::Problem wide = testing::make_problem(pooled_network(kWide), 5);
  const testing::Problem high = testing::make_problem(pooled_network(kHigh), 5);
  for (const auto& backend : {backend::make_reference_backend(), backend::make_cpu_backend()}) {
    const backend::CompileOptions options{.max_samples = 5, .top_k = 1};
    const auto grouped = compile_grouped(*backend, pooled_network({3, 8, 8}), options, {kWide, kHigh});
    grouped->write_state(wide.state);
    backend::ModelState state = wide.state;
    const nn::Optimizer rule{.kind = nn::OptimizerKind::sgd, .momentum = 0.9f};
    for (const bool is_wide : {true, false, false, true}) {
      const testing::Problem& problem = is_wide ? wide : high;
      const auto alone = backend->compile(pooled_network(is_wide ? kWide : kHigh), options);
      alone->write_state(state);
      grouped->use(is_wide ? kWide : kHigh);
      grouped->use({});
      for (backend::Executable* each : {alone.get(), static_cast<backend::Executable*>(grouped.get())}) {
        const std::vector<backend::ShardRange> shards = testing::split_samples(problem.n, 2);
        testing::CollectingSink sink(problem.graph, shards);
        each->enqueue(problem.batch(), shards, problem.key, sink);
        each->synchronize();
        each->apply(sink.sum(), {rule, 0.1f});
      }
      state = alone->read_state();
      EXPECT_EQ(grouped->state().parameters, state.parameters);
      EXPECT_EQ(grouped->state().statistics, state.statistics);
      EXPECT_EQ(grouped->state().optimizer, state.optimizer);
      std::vector<float> expected(20), found(20);
      alone->evaluate(problem.batch(), expected);
      grouped->evaluate(problem.batch(), found);
      EXPECT_EQ(found, expected);
    }
  }
}

}  // namespace
}  // namespace dtrain::train
