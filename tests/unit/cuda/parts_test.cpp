// Contributions that stay on the device: in which parts they become final, and that they are those of the host.
#include "parts.hpp"

#include <gtest/gtest.h>

#include <map>

#include <dtrain/nn/networks.hpp>

#include "common/problem.hpp"
#include "common/replay_device.hpp"
#include "common/trace.hpp"

namespace dtrain::testing {
namespace {

using namespace backend::cuda;
using backend::DType;
using backend::ShardRange;

nn::Graph network(const char* name, int layers, int classes = 10) {
  return nn::build_network({.name = name, .num_layers = layers, .image = {3, 32, 32}, .classes = classes});
}

TEST(CudaParts, CoverAContributionFromBehind) {
  for (const nn::Graph& graph :
       {network("resnet", 20), network("lenet", 0), network("mlp", 0), network("resnet", 50)}) {
    const Model model(graph, DType::float32, 1);
    for (const std::int64_t least : {std::int64_t{1}, std::int64_t{1000}, std::int64_t{2} << 20}) {
      const std::vector<ContributionPart> parts = parts_of(model, least);
      std::int64_t end = backend::ContributionLayout(graph).gradients, copies_end = model.copied;
      EXPECT_EQ(parts[0].floats.first, end);
      EXPECT_EQ(parts[0].floats.size, backend::ContributionLayout(graph).size() - end);
      for (std::size_t k = 1; k < parts.size(); ++k) {
        EXPECT_EQ(parts[k].floats.first + parts[k].floats.size, end);
        EXPECT_LT(parts[k].node, parts[k - 1].node);
        EXPECT_TRUE(parts[k].floats.first == 0 || parts[k].floats.size >= least);
        EXPECT_LE(parts[k].copies.first + parts[k].copies.size, copies_end);
        end = parts[k].floats.first;
        if (parts[k].copies.size > 0) copies_end = parts[k].copies.first;
      }
      EXPECT_EQ(end, 0);
      EXPECT_EQ(copies_end, 0);
    }
  }
}

// 25 million gradients of which the last ones are on their way soon, in pieces that are worth a message.
TEST(CudaParts, AreAFewOfALargeNetwork) {
  const nn::Graph graph =
      nn::build_network({.name = "resnet", .num_layers = 50, .image = {3, 224, 224}, .classes = 1000});
  const std::vector<ContributionPart> parts = parts_of(Model(graph, DType::bfloat16, 1));
  EXPECT_GE(parts.size(), 6u);
  EXPECT_LE(parts.size(), 12u);
}

// Keeps what it is given, and where that was.
class Taker final : public backend::DeviceSink {
 public:
  explicit Taker(std::vector<FloatRange> parts) : parts_(std::move(parts)) {}
  void begin(DeviceMark) override { ++begins; }
  void take(const ShardRange& shard, int part, const float* values, DeviceMark) override {
    const FloatRange& range = parts_[static_cast<std::size_t>(part)];
    std::vector<float>& leaf = leaves[shard.index];
    leaf.resize(static_cast<std::size_t>(std::max(static_cast<std::int64_t>(leaf.size()), range.first + range.size)));
    std::copy_n(values, range.size, leaf.begin() + range.first);
    places[part] = values;
  }
  DeviceMark taken() override { return {}; }

  int begins = 0;
  std::map<int, std::vector<float>> leaves;  // by shard
  std::map<int, const float*> places;        // by part

 private:
  const std::vector<FloatRange> parts_;
};

class CudaPartsOf : public ::testing::TestWithParam<Problem> {};

TEST_P(CudaPartsOf, AreTheContributionThatTheHostGets) {
  const Problem& problem = GetParam();
  const std::vector<ShardRange> shards = {{0, 0, 1}, {1, 1, 0}, {2, 1, problem.n - 1}};
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const auto executable = make_replay_backend()->compile(problem.graph, {.dtype = dtype, .max_samples = problem.n});
    executable->write_state(problem.state);
    CollectingSink host(problem.graph, shards);
    executable->enqueue(problem.batch(), shards, problem.key, host);
    Taker there(executable->device_parts());
    executable->enqueue(problem.batch(), shards, problem.key, there);
    EXPECT_EQ(there.begins, 1);
    for (const ShardRange& shard : shards) {
      const auto expected = host.of(shard.index);
      EXPECT_EQ(there.leaves[shard.index], std::vector<float>(expected.begin(), expected.end())) << shard.index;
    }
  }
}

// Runs two steps, and compares each part as it was at its marker in the second one with what became of it.
void expect_final_parts(const Problem& problem, DType dtype) {
  std::map<int, std::vector<float>> early;
  std::map<int, const float*> places;
  std::vector<FloatRange> parts;
  const auto keep = [&](int part) {
    if (places.empty()) return;  // the first time, nobody knows yet where they are
    const float* const values = places.at(part);
    early[part].assign(values, values + parts[static_cast<std::size_t>(part)].size);
  };
  const auto executable = make_replay_backend(std::uint64_t{8} << 30, {.at_marker = keep})
                              ->compile(problem.graph, {.dtype = dtype, .max_samples = problem.n});
  executable->write_state(problem.state);
  parts = executable->device_parts();
  const std::vector<ShardRange> all = {{0, 0, problem.n}};
  Taker taker(parts);
  executable->enqueue(problem.batch(), all, problem.key, taker);
  places = taker.places;
  executable->enqueue(problem.batch(), all, problem.key, taker);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const float* const leaf = taker.leaves[0].data() + parts[part].first;
    const std::vector<float> late(leaf, leaf + parts[part].size);
    EXPECT_TRUE(early[static_cast<int>(part)] == late) << "part " << part << " of " << parts.size();
  }
}

TEST_P(CudaPartsOf, AreFinalAtTheirMarkers) { expect_final_parts(GetParam(), DType::float16); }

INSTANTIATE_TEST_SUITE_P(All, CudaPartsOf, ::testing::ValuesIn(layer_problems()),
                         [](const auto& of) { return of.param.name; });

TEST(CudaParts, OfALargerNetworkAreFinalAtTheirMarkers) {
  const nn::Graph graph = nn::build_network({.name = "resnet", .num_layers = 18, .image = {3, 48, 48}, .classes = 100});
  EXPECT_GE(parts_of(Model(graph, DType::float32, 1)).size(), 5u);
  expect_final_parts(make_problem(graph, 1), DType::float32);
}

// What set_sum() is given moves the state as what apply() is given.
TEST(CudaParts, ASumOfThePeersIsAppliedWhereItIs) {
  const Problem problem = make_problem(network("resnet", 8), 4);
  const std::vector<ShardRange> all = {{0, 0, problem.n}};
  const backend::Update update{.rule = {.kind = nn::OptimizerKind::sgd}, .learning_rate = 0.1f};
  const auto at_host = make_replay_backend()->compile(problem.graph, {.max_samples = problem.n});
  const auto there = make_replay_backend()->compile(problem.graph, {.max_samples = problem.n});
  at_host->write_state(problem.state);
  there->write_state(problem.state);
  CollectingSink host(problem.graph, all);
  at_host->enqueue(problem.batch(), all, problem.key, host);
  std::vector<float> sum = host.sum();
  const backend::StepMetrics metrics = there->set_sum(sum.data());
  EXPECT_EQ(metrics.count, problem.n);
  EXPECT_EQ(metrics.loss_sum, backend::metrics_of(backend::ContributionLayout(problem.graph), sum).loss_sum);
  there->apply(update);
  at_host->apply(host.sum(), update);
  EXPECT_EQ(there->state().parameters, at_host->state().parameters);
  EXPECT_EQ(there->state().statistics, at_host->state().statistics);
}

}  // namespace
}  // namespace dtrain::testing
