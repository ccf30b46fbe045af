// What an executable promises beyond the arithmetic: shards, errors, profile, memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/networks.hpp>

#include "common/thin_network.hpp"
#include "common/trace.hpp"

namespace dtrain::testing {
namespace {

using backend::CompileOptions;
using backend::ShardRange;

Problem resnet(int n, const std::string& name = "resnet-v1") {
  return make_problem(nn::build_network({.name = name, .num_layers = 8, .image = {3, 32, 32}, .classes = 10}), n);
}

std::unique_ptr<backend::Executable> compiled(const Problem& problem, CompileOptions options) {
  auto executable = backend::make_cpu_backend()->compile(problem.graph, options);
  executable->write_state(problem.state);
  return executable;
}

std::vector<float> contribution(backend::Executable& executable, const Problem& problem,
                                const std::vector<ShardRange>& shards) {
  CollectingSink sink(problem.graph, shards);
  executable.enqueue(problem.batch(), shards, problem.key, sink);
  executable.synchronize();
  return sink.sum();
}

// 4 samples of these networks go through a segment in several chunks.
TEST(CpuExecutable, TrainsResnetsAsTheReferenceDoes) {
  for (const char* name : {"resnet-v1", "resnet"}) {
    for (const int shards : {1, 2}) {
      TraceOptions options;
      options.shards = shards;
      options.lanes = 2;
      EXPECT_EQ(
          compare_backends(*backend::make_cpu_backend(), *backend::make_reference_backend(), resnet(4, name), options),
          "")
          << name << " in " << shards;
    }
  }
}

TEST(CpuExecutable, GivesTheSameBitsAgainForAFixedNumberOfThreads) {
  const Problem problem = resnet(9);
  const auto executable = compiled(problem, {.threads_per_lane = 2, .max_samples = 9});
  const std::vector<float> once = contribution(*executable, problem, {{0, 0, 9}});
  EXPECT_EQ(contribution(*executable, problem, {{0, 0, 9}}), once);
}

// Its pictures are large and few, so that each is the work of one thread.
TEST(CpuExecutable, EvaluatesADetectorPictureByPicture) {
  constexpr int kPictures = 5, kThinner = 16;
  const Problem problem = make_problem(
      thin_detector({.name = "retinanet", .image = {3, 64, 64}, .classes = 2, .backbone = "resnet-18"}, kThinner),
      kPictures);
  const auto with = [&](int threads, int samples) {
    return compiled(problem, {.threads_per_lane = threads, .max_samples = samples, .training = false});
  };
  EXPECT_EQ(with(1, kPictures)->planned_bytes(), with(1, 1)->planned_bytes()) << "it has room for one picture";
  const auto size = static_cast<std::size_t>(nn::result_size(problem.graph));
  std::vector<float> alone(size * kPictures), together(size * kPictures);
  for (int i = 0; i < kPictures; ++i) {
    backend::HostBatch picture = problem.batch();
    picture.n = 1;
    picture.images += i * problem.graph.input().size();
    picture.labels += i;
    picture.sample_ids += i;
    with(1, 1)->evaluate(picture, std::span(alone).subspan(static_cast<std::size_t>(i) * size, size));
  }
  with(2, kPictures)->evaluate(problem.batch(), together);
  EXPECT_EQ(together, alone);
}

TEST(CpuExecutable, AddsNothingForAnEmptyShard) {
  const Problem problem = resnet(4);
  const auto executable = compiled(problem, {.lanes = 2, .max_samples = 4});
  const std::vector<float> all = contribution(*executable, problem, {{0, 0, 4}});
  EXPECT_EQ(contribution(*executable, problem, {{0, 0, 4}, {1, 4, 0}}), all);
}

TEST(CpuExecutable, GivesAShardTheSameBitsAfterLargerOnes) {
  const Problem problem = resnet(11);
  const auto fresh = compiled(problem, {.max_samples = 11}), used = compiled(problem, {.max_samples = 11});
  contribution(*used, problem, {{0, 0, 11}});
  EXPECT_EQ(contribution(*used, problem, {{0, 3, 5}}), contribution(*fresh, problem, {{0, 3, 5}}));
}

TEST(CpuExecutable, MoreThreadsThanSamplesChangeNothingButRounding) {
  const Problem problem = resnet(1);
  const auto one = compiled(problem, {.max_samples = 1});
  const auto three = compiled(problem, {.threads_per_lane = 3, .max_samples = 1});
  const auto a = contribution(*one, problem, {{0, 0, 1}}), b = contribution(*three, problem, {{0, 0, 1}});
  EXPECT_LT(relative_difference(a, b), 1e-5);
}

// A thread without samples writes zeros over what its contribution held before.
TEST(CpuExecutable, GivesAShardOfFewerSamplesThanThreadsTheSameBitsAfterLargerOnes) {
  const Problem problem = resnet(3);
  for (const backend::DType type : {backend::DType::float32, backend::DType::bfloat16}) {
    const CompileOptions options{.dtype = type, .threads_per_lane = 3, .max_samples = 3};
    const auto fresh = compiled(problem, options), used = compiled(problem, options);
    contribution(*used, problem, {{0, 0, 3}});
    EXPECT_EQ(contribution(*used, problem, {{0, 1, 1}}), contribution(*fresh, problem, {{0, 1, 1}}));
  }
}

TEST(CpuExecutable, EvaluatesTheSameOnAnyNumberOfThreads) {
  const Problem problem = resnet(70);
  std::vector<float> one(700), two(700);
  compiled(problem, {.max_samples = 70, .training = false})->evaluate(problem.batch(), one);
  compiled(problem, {.lanes = 2, .max_samples = 70, .training = false})->evaluate(problem.batch(), two);
  EXPECT_EQ(one, two);
}

TEST(CpuExecutable, RefusesALabelOutOfRange) {
  Problem problem = resnet(3);
  problem.labels[2] = 10;
  const auto executable = compiled(problem, {.max_samples = 3});
  EXPECT_THROW(contribution(*executable, problem, {{0, 0, 3}}), DataError);
}

// Fails when it is asked for a buffer.
class BrokenSink final : public backend::ContributionSink {
 public:
  std::span<float> buffer(const ShardRange&) override { throw Error("no room"); }
  void ready(const ShardRange&, std::int64_t, std::int64_t, bool) override {}
};

TEST(CpuExecutable, ReportsAFailureOfTheSinkAndGoesOn) {
  const Problem problem = resnet(4);
  const auto executable = compiled(problem, {.threads_per_lane = 2, .max_samples = 4});
  BrokenSink broken;
  const std::vector<ShardRange> shards{{0, 0, 4}};
  executable->enqueue(problem.batch(), shards, problem.key, broken);
  EXPECT_THROW(executable->synchronize(), Error);
  EXPECT_EQ(contribution(*executable, problem, shards).back(), 4.0f);
}

// Takes every part away as soon as it is ready, as a reduction does that adds in place.
class GreedySink final : public backend::ContributionSink {
 public:
  explicit GreedySink(std::int64_t size) : buffer_(static_cast<std::size_t>(size)), taken_(buffer_.size()) {}
  std::span<float> buffer(const ShardRange&) override { return buffer_; }
  void ready(const ShardRange&, std::int64_t first, std::int64_t size, bool) override {
    const auto part = std::span(buffer_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(size));
    std::ranges::copy(part, taken_.begin() + first);
    std::ranges::fill(part, std::nanf(""));
    ++parts_;
  }
  const std::vector<float>& taken() const { return taken_; }
  int parts() const { return parts_; }

 private:
  std::vector<float> buffer_, taken_;
  int parts_ = 0;
};

TEST(CpuExecutable, GivesGradientsAwayBeforeTheShardIsDoneAndNeverLooksAtThemAgain) {
  const Problem problem = resnet(4);
  const auto executable = compiled(problem, {.max_samples = 4});
  const std::vector<ShardRange> shards{{0, 0, 4}};
  GreedySink greedy(backend::ContributionLayout(problem.graph).size());
  executable->enqueue(problem.batch(), shards, problem.key, greedy);
  executable->synchronize();
  EXPECT_EQ(greedy.taken(), contribution(*executable, problem, shards));
  EXPECT_GT(greedy.parts(), 10);
}

TEST(CpuExecutable, NamesEachConvolutionThreeTimesInItsProfile) {
  const Problem problem = resnet(2);
  const backend::Profile profile = compiled(problem, {.max_samples = 2})->profile(problem.batch(), 1);
  int forward = 0, measured = 0;
  for (const backend::OperationTime& operation : profile.of_shard) {
    if (operation.kind != "convolution") continue;
    forward += operation.name.ends_with(".forward");
    measured += operation.bare_seconds > 0 && operation.seconds > 0;
  }
  EXPECT_EQ(measured, 3 * forward - 1);  // the first has no gradient by the images
}

// The statistics read what the convolution before them has just written; the norm reads it again in a later segment.
TEST(CpuExecutable, CountsInItsProfileWhatMovesBetweenMemoryAndCaches) {
  nn::GraphBuilder b("moves", {8, 4, 4});
  const int convolution = b.add("conv", nn::Convolution{.out = 16, .kernel_h = 1, .kernel_w = 1}, {b.input()});
  const int norm = b.add("bn", nn::BatchNorm{}, {convolution});
  const Problem problem = make_problem(b.finish(b.add("fc", nn::Dense{.out = 3}, {norm})), 5);
  const backend::Profile profile = compiled(problem, {.max_samples = 5})->profile(problem.batch(), 1);
  std::map<std::string, std::uint64_t> bytes;
  for (const backend::OperationTime& operation : profile.of_shard) bytes[operation.name] = operation.bytes;
  constexpr std::uint64_t tensor = 5 * 16 * 16 * sizeof(float), weights = 8 * 16 * sizeof(float);
  EXPECT_EQ(bytes["bn.statistics"], 0u);
  EXPECT_GE(bytes["bn.forward"], tensor);
  EXPECT_GE(bytes["conv.forward"], tensor + weights);
  ASSERT_EQ(profile.of_step.size(), 1u);
  EXPECT_GE(profile.of_step[0].bytes, 2 * weights);
  EXPECT_GT(profile.bytes_per_second, 0);
}

TEST(CpuExecutable, NeedsLessMemoryForEvaluationOnly) {
  const Problem problem = resnet(64);
  const auto bytes = [&](bool training) {
    return compiled(problem, {.max_samples = 64, .training = training})->planned_bytes();
  };
  EXPECT_LT(4 * bytes(false), bytes(true));
}

TEST(CpuBackend, SaysInOneSentenceWhyFloat16IsNotForIt) {
  const auto cpu = backend::make_cpu_backend();
  EXPECT_EQ(cpu->why_not(backend::DType::float32), nullptr);
  ASSERT_NE(cpu->why_not(backend::DType::float16), nullptr);
  EXPECT_THROW(cpu->compile(resnet(1).graph, {.dtype = backend::DType::float16, .max_samples = 1}), UsageError);
}

}  // namespace
}  // namespace dtrain::testing
