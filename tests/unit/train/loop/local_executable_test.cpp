#include <atomic>
#include <numeric>

#include "../elastic_run.hpp"

#include <dtrain/nn/initialize.hpp>

namespace dtrain::train {
namespace {

using backend::ShardRange;

TEST(InnerSteps, AreAsManyAsTheRoundHasSamplesFor) {
  const LocalSteps local{.steps = 4};
  for (const auto& [samples, steps] : {std::pair(1, 1), {10, 1}, {11, 2}, {30, 3}, {39, 4}, {40, 4}})
    EXPECT_EQ(inner_steps(local, 40, samples), steps) << samples;
  EXPECT_EQ(inner_steps({}, 40, 3), 1) << "without rounds a step is one step";
}

TEST(InnerParts, CutAShardWithoutLosingASample) {
  for (const int count : {0, 1, 2, 7, 12}) {
    const std::vector<ShardRange> parts = inner_parts({.index = 3, .first = 5, .count = count}, 4);
    ASSERT_EQ(parts.size(), 4u);
    int next = 5, least = count, most = 0;
    for (const ShardRange& part : parts) {
      EXPECT_EQ(part.index, 3);
      EXPECT_EQ(part.first, next);
      next += part.count;
      least = std::min(least, part.count), most = std::max(most, part.count);
    }
    EXPECT_EQ(next, 5 + count);
    EXPECT_LE(most - least, 1) << "parts are as equal as they can be";
  }
}

TEST(LocalSteps, SurviveJsonAndRefuseWhatMakesNoSense) {
  const LocalSteps local{.steps = 50, .outer = OuterOptimizer::sgd, .rate = 0.1f, .momentum = 0.3f};
  EXPECT_EQ(local_steps_from_json(Json::parse(to_json(local).dump(), "test")), local);
  Json json = to_json(local);
  json["outer_lr"] = 0.0;
  EXPECT_THROW(local_steps_from_json(json), UsageError);
  json = to_json(local);
  json["outer_optimizer"] = "adam";
  EXPECT_THROW(local_steps_from_json(json), DataError);
}

// Gives memory for contributions and keeps them.
class Contributions : public backend::ContributionSink {
 public:
  explicit Contributions(const LocalExecutable& executable) : size_(executable.contribution_size()) {}
  std::span<float> buffer(const ShardRange& shard) override {
    const std::lock_guard lock(mutex_);
    std::vector<float>& memory = kept_[shard.index];
    memory.assign(static_cast<std::size_t>(size_), -1.0f);
    return memory;
  }
  void ready(const ShardRange&, std::int64_t first, std::int64_t size, bool last) override {
    EXPECT_TRUE(first == 0 && size == size_ && last);
  }
  // In the order of the shards.
  std::vector<float> sum() const {
    std::vector<float> sum(static_cast<std::size_t>(size_));
    for (const auto& [index, values] : kept_) std::ranges::transform(sum, values, sum.begin(), std::plus<>());
    return sum;
  }
  const std::map<int, std::vector<float>>& kept() const { return kept_; }

 private:
  const std::int64_t size_;
  std::mutex mutex_;  // guards kept_
  std::map<int, std::vector<float>> kept_;
};

// Gives no memory before `may_begin`.
class LateContributions final : public Contributions {
 public:
  LateContributions(const LocalExecutable& executable, const std::atomic<bool>& may_begin)
      : Contributions(executable), may_begin_(may_begin) {}
  std::span<float> buffer(const ShardRange& shard) override {
    may_begin_.wait(false);
    return Contributions::buffer(shard);
  }

 private:
  const std::atomic<bool>& may_begin_;
};

// 12 samples, as three shards of 5, 4 and 3 or as one of 12.
class LocalExecutableTest : public testing::Test {
 protected:
  LocalExecutableTest() {
    for (std::size_t i = 0; i < images_.size(); ++i) images_[i] = static_cast<float>(i * 7919 % 255) / 128.0f - 1.0f;
    for (std::size_t i = 0; i < labels_.size(); ++i) labels_[i] = static_cast<int>(i % kTinyClasses);
    std::iota(ids_.begin(), ids_.end(), 0u);
    state_.parameters.resize(static_cast<std::size_t>(graph_.parameter_count));
    state_.statistics.resize(static_cast<std::size_t>(graph_.statistic_count));
    nn::initialize_parameters(graph_, 1, state_.parameters);
    nn::initialize_statistics(graph_, state_.statistics);
  }

  std::unique_ptr<LocalExecutable> make(const LocalSteps& local, int lanes = 1) const {
    auto made = compile_local(*backend_, graph_, {.lanes = lanes, .max_samples = kSamples, .top_k = 2}, local, kKind);
    backend::ModelState state = state_;
    state.optimizer = made->state().optimizer;
    made->write_state(std::move(state));
    return made;
  }
  backend::HostBatch batch() const { return {kSamples, images_.data(), labels_.data(), ids_.data()}; }
  static Round round(int steps) {
    return {.updates = std::vector<backend::Update>(static_cast<std::size_t>(steps),
                                                    {.rule = {.kind = kKind}, .learning_rate = 0.1f})};
  }
  std::vector<float> contributed(LocalExecutable& executable, std::vector<ShardRange> shards, int steps) const {
    Contributions to(executable);
    executable.begin_round(round(steps));
    executable.enqueue(batch(), shards, {.seed = 3}, to);
    return to.sum();
  }

  static constexpr int kSamples = 12;
  static constexpr nn::OptimizerKind kKind = nn::OptimizerKind::adam;
  const nn::Graph graph_ = tiny_network();
  const std::unique_ptr<backend::Backend> backend_ = backend::make_reference_backend();
  std::vector<float> images_ = std::vector<float>(kSamples * static_cast<std::size_t>(kTinyImage.size()));
  std::vector<std::int32_t> labels_ = std::vector<std::int32_t>(kSamples);
  std::vector<std::uint32_t> ids_ = std::vector<std::uint32_t>(kSamples);
  backend::ModelState state_;
  const std::vector<ShardRange> shards_{{0, 0, 5}, {1, 5, 4}, {2, 9, 3}};
};

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5 + 1e-5 * std::abs(b[i])) << i;
}

// One replica whose weights become the state is a plain run of the inner steps.
TEST_F(LocalExecutableTest, OneReplicaThatIsAveragedTrainsAsWithoutRounds) {
  const auto plain = backend_->compile(graph_, {.max_samples = kSamples, .top_k = 2});
  plain->write_state(state_);
  for (const ShardRange& part : inner_parts({0, 0, kSamples}, 3)) {
    std::vector<float> sum(static_cast<std::size_t>(backend::ContributionLayout(graph_).size()));
    struct Sink final : backend::ContributionSink {
      std::span<float> room;
      std::span<float> buffer(const ShardRange&) override { return room; }
      void ready(const ShardRange&, std::int64_t, std::int64_t, bool) override {}
    } sink;
    sink.room = sum;
    plain->enqueue(batch(), {&part, 1}, {.seed = 3}, sink);
    plain->synchronize();
    plain->apply(sum, round(1).updates[0]);
  }

  const auto local = make({.steps = 3, .outer = OuterOptimizer::average});
  local->apply(contributed(*local, {{0, 0, kSamples}}, 3), {});
  expect_near(local->state().parameters, plain->state().parameters);
  expect_near(local->state().statistics, plain->state().statistics);
  expect_near(local->state().optimizer, plain->state().optimizer);
  EXPECT_EQ(local->state().updates, 3u);
}

TEST_F(LocalExecutableTest, HowManyReplicasAreComputedSideBySideChangesNoBit) {
  const auto one = make({.steps = 2}, 1), three = make({.steps = 2}, 3);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::vector<float> sum = contributed(*one, shards_, 2);
    EXPECT_EQ(sum, contributed(*three, shards_, 2));
    one->apply(sum, {});
    three->apply(sum, {});
  }
  expect_same_bits(one->state(), three->state());
}

// A replica begins with the state of the round, whatever was computed in its place before.
TEST_F(LocalExecutableTest, AReplicaKnowsNothingOfTheOthers) {
  const auto local = make({.steps = 2});
  Contributions together(*local), alone(*local);
  local->begin_round(round(2));
  local->enqueue(batch(), shards_, {.seed = 3}, together);
  local->enqueue(batch(), std::span(shards_).subspan(2), {.seed = 3}, alone);
  EXPECT_EQ(together.kept().at(2), alone.kept().at(2));
}

TEST_F(LocalExecutableTest, AnEmptyShardAddsNothing) {
  const auto local = make({.steps = 2});
  for (const float value : contributed(*local, {{7, 12, 0}}, 2)) ASSERT_EQ(value, 0.0f);
}

TEST_F(LocalExecutableTest, MetricsAreThoseOfAllInnerSteps) {
  const auto local = make({.steps = 2});
  const std::vector<float> sum = contributed(*local, shards_, 2);
  const backend::StepMetrics metrics = local->set_sum(std::span<const float>(sum));
  EXPECT_EQ(metrics.count, kSamples);
  EXPECT_GT(metrics.loss_sum, 0);
}

// Warns, as an executable on a GPU does.
class Complaining final : public Around {
 public:
  Complaining(std::unique_ptr<backend::Executable> inner, std::vector<std::string> complaints)
      : Around(std::move(inner)), complaints_(std::move(complaints)) {}
  std::vector<std::string> take_warnings() override { return std::exchange(complaints_, {}); }

 private:
  std::vector<std::string> complaints_;
};

TEST_F(LocalExecutableTest, PassesOnEachWarningOfItsPartsOnce) {
  const auto complaining = [&](std::vector<std::string> complaints) {
    auto computes = backend_->compile(graph_, {.max_samples = kSamples, .top_k = 2});
    return std::make_unique<Complaining>(std::move(computes), std::move(complaints));
  };
  std::vector<std::unique_ptr<backend::Executable>> replicas;
  for (int replica = 0; replica < 2; ++replica) replicas.push_back(complaining({"slow"}));
  LocalExecutable local(graph_, {.steps = 2}, kKind, std::move(replicas), complaining({"slow", "slower"}));
  EXPECT_EQ(local.take_warnings(), (std::vector<std::string>{"slow", "slower"}));
  EXPECT_TRUE(local.take_warnings().empty());
}

// By hand: the sum of a round of 2 samples in which every weight moved by 0.5, twice.
TEST_F(LocalExecutableTest, OuterOptimizersMoveAsTheirFormulasSay) {
  const std::map<OuterOptimizer, float> moved = {
      {OuterOptimizer::average, 0.5f + 0.5f},
      {OuterOptimizer::sgd, 0.25f * (0.5f + 0.5f)},
      // m = 0.5, then 0.75 * 0.5 + 0.5 = 0.875
      {OuterOptimizer::nesterov, 0.25f * ((0.5f + 0.75f * 0.5f) + (0.5f + 0.75f * 0.875f))}};
  for (const auto& [outer, expected] : moved) {
    const auto local = make({.steps = 2, .outer = outer, .rate = 0.25f, .momentum = 0.75f});
    std::vector<float> sum(static_cast<std::size_t>(local->contribution_size()), 1.0f);
    sum.back() = 2;  // the count
    for (int repeat = 0; repeat < 2; ++repeat) {
      local->begin_round(round(2));
      local->apply(sum, {});
    }
    for (std::size_t i = 0; i < state_.parameters.size(); ++i)
      ASSERT_NEAR(state_.parameters[i] - local->state().parameters[i], expected, 1e-6) << int(outer);
    EXPECT_EQ(local->state().statistics.front(), 0.5f) << "the mean of the replicas";
    EXPECT_EQ(local->state().optimizer.front(), 0.5f) << "the mean of the replicas";
    EXPECT_EQ(local->state().updates, 4u);
  }
}

TEST_F(LocalExecutableTest, SaysThatItLivesWhileARoundIsComputed) {
  const auto local = make({.steps = 4});
  int signs = 0;
  Round with_signs = round(4);
  with_signs.between = [&] { ++signs; };
  Contributions to(*local);
  local->begin_round(with_signs);
  local->enqueue(batch(), shards_, {}, to);
  EXPECT_EQ(signs, 4 + 4 + 3) << "after each inner step that has samples";
}

// The other threads hand nothing in before the round is given up: one replica is left for the thread that reports.
TEST_F(LocalExecutableTest, ARoundThatIsGivenUpEndsSoon) {
  for (const int lanes : {1, 3}) {
    const auto local = make({.steps = 1000}, lanes);
    Round given_up = round(1000);
    int steps = 0;
    std::atomic<bool> is_given_up{false};
    given_up.between = [&] {
      if (++steps < 2) return;
      is_given_up = true;
      is_given_up.notify_all();
      throw PeerLost("frozen");
    };
    LateContributions to(*local, is_given_up);
    local->begin_round(given_up);
    EXPECT_THROW(local->enqueue(batch(), shards_, {}, to), PeerLost);
    EXPECT_LE(steps, 2);
    if (lanes == 1) {
      EXPECT_TRUE(to.kept().empty()) << "no replica came to its end";
    }
  }
}

TEST_F(LocalExecutableTest, EvaluatesTheStateBetweenRounds) {
  const auto local = make({.steps = 2});
  const auto plain = backend_->compile(graph_, {.max_samples = kSamples, .top_k = 2});
  for (int repeat = 0; repeat < 2; ++repeat) {
    backend::ModelState state = local->state();
    state.optimizer.clear();
    plain->write_state(std::move(state));
    EXPECT_EQ(local->evaluate(batch()).loss_sum, plain->evaluate(batch()).loss_sum);
    local->apply(contributed(*local, shards_, 2), {});
  }
}

}  // namespace
}  // namespace dtrain::train
