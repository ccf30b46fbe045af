// Shards that meet at synchronized batch norms compute what one shard of all samples does, but for rounding.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <functional>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/nn/synchronized_norms.hpp>

#include "common/trace.hpp"

namespace dtrain::testing {
namespace {

using backend::CompileOptions;
using backend::ShardRange;

Problem synchronized(int n, const std::string& name = "resnet-v1") {
  nn::Graph graph = nn::build_network({.name = name, .num_layers = 8, .image = {3, 32, 32}, .classes = 10});
  nn::synchronize_norms(graph);
  return make_problem(std::move(graph), n);
}

std::unique_ptr<backend::Executable> compiled_for(const Problem& problem, const CompileOptions& options) {
  auto executable = backend::make_cpu_backend()->compile(problem.graph, options);
  executable->write_state(problem.state);
  return executable;
}

using Gather = std::function<std::vector<double>(std::span<const double>)>;

class Meeting final : public backend::MeetingSink {
 public:
  Meeting(const Problem& problem, std::span<const ShardRange> shards, Gather gather)
      : kept_(problem.graph, shards), taken_(shards.size()), gather_(std::move(gather)) {}
  std::span<float> buffer(const ShardRange& shard) override { return kept_.buffer(shard); }
  void ready(const ShardRange& shard, std::int64_t first, std::int64_t size, bool last) override {
    const std::vector<float>& values = kept_.of(shard.index);
    taken_[static_cast<std::size_t>(shard.index)].resize(values.size());
    std::copy_n(values.begin() + first, size, taken_[static_cast<std::size_t>(shard.index)].begin() + first);
    kept_.ready(shard, first, size, last);
  }
  std::vector<double> gather(std::span<const double> mine) override {
    ++meetings;
    return gather_(mine);
  }
  const CollectingSink& kept() const { return kept_; }
  // What was ready did not change.
  void expect_final() const {
    for (std::size_t shard = 0; shard < taken_.size(); ++shard)
      EXPECT_EQ(taken_[shard], kept_.of(static_cast<int>(shard))) << shard;
  }
  int meetings = 0;

 private:
  CollectingSink kept_;
  std::vector<std::vector<float>> taken_;  // [shard], what was ready when it was said to be
  Gather gather_;
};

std::vector<double> alone(std::span<const double> mine) { return {mine.begin(), mine.end()}; }

std::vector<float> sum_of(backend::Executable& executable, const Problem& problem,
                          const std::vector<ShardRange>& shards, const Gather& gather = alone) {
  Meeting sink(problem, shards, gather);
  executable.enqueue(problem.batch(), shards, problem.key, sink);
  executable.synchronize();
  sink.expect_final();
  return sink.kept().sum();
}

TEST(MeetingStep, ComputesWhatOneShardOfAllSamplesDoes) {
  for (const char* name : {"resnet-v1", "resnet"}) {
    const Problem problem = synchronized(9, name);
    CollectingSink whole(problem.graph, std::vector<ShardRange>{{0, 0, 9}});
    const auto one = compiled_for(problem, {.max_samples = 9});
    one->enqueue(problem.batch(), std::vector<ShardRange>{{0, 0, 9}}, problem.key, whole);
    one->synchronize();
    for (const CompileOptions& options :
         {CompileOptions{.max_samples = 9}, CompileOptions{.lanes = 2, .max_samples = 9},
          CompileOptions{.threads_per_lane = 2, .max_samples = 9}}) {
      const auto many = compiled_for(problem, options);
      const std::vector<float> sum = sum_of(*many, problem, {{0, 0, 3}, {1, 3, 1}, {2, 4, 5}});
      EXPECT_LT(relative_difference(sum, whole.sum()), 1e-4) << name << ", lanes " << options.lanes;
      EXPECT_EQ(sum_of(*many, problem, {{0, 0, 3}, {1, 3, 1}, {2, 4, 5}}), sum) << "again";
    }
  }
}

TEST(MeetingStep, LetsNormsOfAShardAlone) {
  const Problem problem = synchronized(8);
  const auto executable = compiled_for(problem, {.max_samples = 8});
  const std::vector<ShardRange> shards{{0, 0, 4}, {1, 4, 4}};
  CollectingSink apart(problem.graph, shards);
  executable->enqueue(problem.batch(), shards, problem.key, apart);
  executable->synchronize();
  EXPECT_GT(relative_difference(sum_of(*executable, problem, shards), apart.sum()), 1e-3);
}

TEST(MeetingStep, AnEmptyShardAddsNothing) {
  const Problem problem = synchronized(6);
  const auto executable = compiled_for(problem, {.lanes = 2, .max_samples = 6});
  const std::vector<float> two = sum_of(*executable, problem, {{0, 0, 4}, {1, 4, 2}});
  EXPECT_EQ(sum_of(*executable, problem, {{0, 0, 4}, {1, 4, 0}, {2, 4, 2}, {3, 6, 0}}), two);
}

// The rows of both ranks, in the order of the shards.
class TwoRanks {
 public:
  Gather of(std::size_t rank) {
    return [this, rank](std::span<const double> mine) {
      rows_[rank].assign(mine.begin(), mine.end());
      both_.arrive_and_wait();
      std::vector<double> all = rows_[0];
      all.insert(all.end(), rows_[1].begin(), rows_[1].end());
      both_.arrive_and_wait();
      return all;
    };
  }

 private:
  std::barrier<> both_{2};
  std::array<std::vector<double>, 2> rows_;
};

TEST(MeetingStep, GivesEachShardTheSameBitsOnAnyRank) {
  const Problem problem = synchronized(10);
  const std::vector<ShardRange> all{{0, 0, 3}, {1, 3, 2}, {2, 5, 3}, {3, 8, 2}};
  const auto one = compiled_for(problem, {.lanes = 2, .max_samples = 10});
  Meeting expected(problem, all, alone);
  one->enqueue(problem.batch(), all, problem.key, expected);
  TwoRanks ranks;
  const std::vector<ShardRange> mine{all[0]}, theirs{all[1], all[2], all[3]};
  // CollectingSink has a place for each index below the number of shards.
  const auto renumbered = [](std::vector<ShardRange> shards) {
    for (std::size_t k = 0; k < shards.size(); ++k) shards[k].index = static_cast<int>(k);
    return shards;
  };
  const std::vector<ShardRange> first = renumbered(mine), second = renumbered(theirs);
  Meeting left(problem, first, ranks.of(0)), right(problem, second, ranks.of(1));
  const auto a = compiled_for(problem, {.max_samples = 10}), b = compiled_for(problem, {.lanes = 3, .max_samples = 10});
  std::thread other([&] { b->enqueue(problem.batch(), second, problem.key, right); });
  a->enqueue(problem.batch(), first, problem.key, left);
  other.join();
  EXPECT_EQ(left.kept().of(0), expected.kept().of(0));
  for (int k = 0; k < 3; ++k) EXPECT_EQ(right.kept().of(k), expected.kept().of(k + 1)) << k;
  EXPECT_EQ(left.meetings, static_cast<int>(problem.graph.statistics.size()))
      << "each norm has two, and meets both ways";
}

TEST(MeetingStep, AFrozenNormMeetsNobody) {
  Problem problem = synchronized(4);
  for (nn::Node& node : problem.graph.nodes) {
    if (std::holds_alternative<nn::BatchNorm>(node.layer)) node.learns = false;
  }
  const auto executable = compiled_for(problem, {.max_samples = 4});
  Meeting sink(problem, std::vector<ShardRange>{{0, 0, 2}, {1, 2, 2}}, alone);
  executable->enqueue(problem.batch(), std::vector<ShardRange>{{0, 0, 2}, {1, 2, 2}}, problem.key, sink);
  EXPECT_EQ(sink.meetings, 0);
  EXPECT_FALSE(nn::has_synchronized_norms(problem.graph));
}

TEST(MeetingStep, ReportsALostRankAndGoesOn) {
  const Problem problem = synchronized(5);
  for (const int threads : {1, 2}) {
    const auto executable = compiled_for(problem, {.threads_per_lane = threads, .max_samples = 5});
    const std::vector<ShardRange> shards{{0, 0, 3}, {1, 3, 2}};
    const std::vector<float> expected = sum_of(*executable, problem, shards);
    int meetings = 0;
    const auto fails = [&](std::span<const double> mine) {
      if (++meetings == 3) throw PeerLost("gone");
      return alone(mine);
    };
    EXPECT_THROW(sum_of(*executable, problem, shards, fails), PeerLost);
    EXPECT_EQ(sum_of(*executable, problem, shards), expected);
  }
}

// In the second of the shards that a thread computes.
TEST(MeetingStep, ReportsAFailureInAShardAndGoesOn) {
  const Problem problem = synchronized(5);
  class NoRoom final : public backend::MeetingSink {
   public:
    std::span<float> buffer(const ShardRange& shard) override {
      if (shard.index == 1) throw Error("no room");
      return room_;
    }
    void ready(const ShardRange&, std::int64_t, std::int64_t, bool) override {}
    std::vector<double> gather(std::span<const double> mine) override { return alone(mine); }
    std::vector<float> room_ = std::vector<float>(1 << 20);
  } sink;
  for (const int threads : {1, 2}) {
    const auto executable = compiled_for(problem, {.threads_per_lane = threads, .max_samples = 5});
    const std::vector<ShardRange> shards{{0, 0, 3}, {1, 3, 2}};
    EXPECT_THROW(executable->enqueue(problem.batch(), shards, problem.key, sink), Error);
    EXPECT_GT(sum_of(*executable, problem, shards).back(), 0);
  }
}

}  // namespace
}  // namespace dtrain::testing
