// Shards whose updates, put together, are those of the whole network.
#include <future>
#include <limits>
#include <numeric>

#include <dtrain/net/loop_thread.hpp>

#include "../tiny_training.hpp"
#include "servers/parameter_shard.hpp"
#include "servers/shard_server.hpp"

namespace dtrain::train {
namespace {

using nn::OptimizerKind;

constexpr OptimizerKind kAllKinds[] = {
    OptimizerKind::sgd,     OptimizerKind::nag,      OptimizerKind::adam,   OptimizerKind::adamw, OptimizerKind::muon,
    OptimizerKind::rmsprop, OptimizerKind::adagrad,  OptimizerKind::lamb,   OptimizerKind::lars,  OptimizerKind::adamax,
    OptimizerKind::nadam,   OptimizerKind::adadelta, OptimizerKind::signum, OptimizerKind::ftml};

nn::Graph three_layers() {
  nn::GraphBuilder builder("three", kTinyImage);
  int x = builder.add("conv0", nn::Convolution{.out = 8, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1}, {0});
  x = builder.add("bn0", nn::BatchNorm{}, {x});
  x = builder.add("relu0", nn::Activation{}, {x});
  x = builder.add("conv1", nn::Convolution{.out = 8, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1}, {x});
  x = builder.add("bn1", nn::BatchNorm{}, {x});
  x = builder.add("pool0", nn::Pooling{.kind = nn::PoolingKind::average, .global = true}, {x});
  return builder.finish(builder.add("fc1", nn::Dense{kTinyClasses}, {x}));
}

std::vector<float> noise(std::size_t size, std::uint32_t key) {
  std::vector<float> values;
  RandomStream random(5, RandomUse::drawing, key, 0);
  for (std::size_t i = 0; i < size; ++i) values.push_back(static_cast<float>(random.below(1000)) / 500 - 1);
  return values;
}

// Of 16 samples.
std::vector<float> contribution(const nn::Graph& graph, std::uint32_t key) {
  const backend::ContributionLayout layout(graph);
  std::vector<float> values = noise(static_cast<std::size_t>(layout.size()), key);
  for (std::int64_t k = layout.gradients; k < layout.size(); ++k) {
    values[static_cast<std::size_t>(k)] = std::abs(values[static_cast<std::size_t>(k)]) * 16;
  }
  values[static_cast<std::size_t>(layout.gradients + layout.statistics + 3)] = 16;
  return values;
}

backend::ModelState start(const nn::Graph& graph, const nn::Optimizer& rule) {
  backend::ModelState state;
  state.parameters = noise(static_cast<std::size_t>(graph.parameter_count), 99);
  state.statistics.assign(static_cast<std::size_t>(graph.statistic_count), 1);
  state.optimizer.assign(state.parameters.size() * static_cast<std::size_t>(nn::optimizer_slots(rule.kind)), 0);
  if (rule.average > 0) {
    state.average = state.parameters;
    state.average.insert(state.average.end(), state.statistics.begin(), state.statistics.end());
  }
  return state;
}

TEST(ShardLayout, GivesEachParameterToOneShard) {
  const nn::Graph graph = three_layers();
  for (int servers = 1; servers <= 7; ++servers) {
    std::vector<int> owners(static_cast<std::size_t>(graph.parameter_count));
    std::int64_t statistics = 0;
    for (const ShardLayout& shard : cut_into_shards(graph, servers)) {
      for (const FloatRange& range : shard.parameters) {
        for (std::int64_t k = range.first; k < range.first + range.size; ++k) ++owners[static_cast<std::size_t>(k)];
      }
      statistics += shard.statistic_count;
    }
    EXPECT_EQ(std::ranges::count(owners, 1), graph.parameter_count) << servers;
    EXPECT_EQ(statistics, graph.statistic_count) << servers;
  }
}

TEST(ShardLayout, SharesAboutEvenly) {
  for (const ShardLayout& shard : cut_into_shards(three_layers(), 2)) EXPECT_GT(shard.parameter_count, 200);
}

// Each rule, with all that may happen to gradients and weights, on one to four servers.
class EachRule : public testing::TestWithParam<OptimizerKind> {
 protected:
  EachRule() : rule_(nn::with_kind({}, GetParam())) {
    rule_.clip_gradient = 0.05f;
    rule_.average = 0.8f;
    rule_.bias_lr_factor = 2;
    rule_.head_lr_factor = 0.5f;
  }

  backend::ModelState whole(const backend::Backend& backend) const {
    const auto executable = backend.compile(graph_, {.max_samples = 1});
    executable->write_state(start(graph_, rule_));
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      const std::vector<float> sum = contribution(graph_, step);
      executable->apply(sum, {rule_, rate(step)});
    }
    return executable->read_state();
  }

  backend::ModelState in_shards(const backend::Backend& backend, int count) const {
    const std::vector<ShardLayout> layouts = cut_into_shards(graph_, count);
    ParameterServers servers{.servers = count};
    servers.backend = &backend;
    backend::ModelState state = start(graph_, rule_);
    for (const ShardLayout& layout : layouts) {
      ParameterShard shard(layout, servers, rule_, 1, start(graph_, rule_));
      for (std::uint32_t step = 0; step < kSteps; ++step) {
        std::vector<float> packed(static_cast<std::size_t>(layout.contribution_size()));
        layout.pack(contribution(graph_, step), packed);
        const std::size_t half = packed.size() / 2;
        EXPECT_FALSE(shard.take({step, 0, 0, rate(step)}, std::span(packed).first(half)));
        const auto metrics =
            shard.take({step, 0, static_cast<std::int64_t>(half), rate(step)}, std::span(packed).subspan(half));
        EXPECT_TRUE(metrics && metrics->count == 16);
      }
      put_shard(layout, shard.floats(), state);
      state.updates = shard.state().updates;
    }
    return state;
  }

  static constexpr std::uint32_t kSteps = 3;
  static float rate(std::uint32_t step) { return 0.01f * static_cast<float>(step + 1); }

  const nn::Graph graph_ = three_layers();
  nn::Optimizer rule_;
};

TEST_P(EachRule, MovesShardsAsTheWhole) {
  for (const auto& backend : {backend::make_reference_backend(), backend::make_cpu_backend()}) {
    const backend::ModelState expected = whole(*backend);
    for (const int count : {1, 2, 4}) {
      SCOPED_TRACE(testing::Message() << backend->name() << ", servers: " << count);
      expect_same_bits(expected, in_shards(*backend, count));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ParameterShard, EachRule, testing::ValuesIn(kAllKinds),
                         [](const auto& which) { return std::string(nn::optimizer_name(which.param)); });

class ShardOfSgd : public testing::Test {
 protected:
  ParameterShard shard(int leaves) { return {layout_, servers_, rule_, leaves, start(layout_.graph, rule_)}; }
  std::vector<float> packed(std::uint32_t key) const {
    std::vector<float> values(static_cast<std::size_t>(layout_.contribution_size()));
    layout_.pack(contribution(layout_.graph, key), values);
    return values;
  }

  const nn::Optimizer rule_{};
  const std::unique_ptr<backend::Backend> backend_ = backend::make_reference_backend();
  const ShardLayout layout_ = cut_into_shards(three_layers(), 2).back();
  ParameterServers servers_{.servers = 2, .backend = backend_.get()};
};

TEST_F(ShardOfSgd, AddsLeavesInTheOrderOfTheTreeWhenAllAreThere) {
  ParameterShard forwards = shard(4), backwards = shard(4);
  for (const int leaf : {0, 1, 2, 3}) EXPECT_EQ(forwards.take({0, leaf, 0, 0.1f}, packed(leaf)).has_value(), leaf == 3);
  for (const int leaf : {3, 2, 1, 0})
    EXPECT_EQ(backwards.take({0, leaf, 0, 0.1f}, packed(leaf)).has_value(), leaf == 0);
  EXPECT_EQ(forwards.floats(), backwards.floats());
  EXPECT_EQ(forwards.version(), 1u);
}

TEST_F(ShardOfSgd, KnowsWhatItWasBeforeTheLastUpdate) {
  ParameterShard mine = shard(1);
  mine.keep_previous();
  (void)mine.take({0, 0, 0, 0.1f}, packed(0));
  const std::vector<float> before = mine.floats();
  (void)mine.take({1, 0, 0, 0.1f}, packed(1));
  EXPECT_EQ(mine.previous(), before);
  EXPECT_NE(mine.floats(), before);
}

TEST_F(ShardOfSgd, AReplicaIsMovedByTheSums) {
  ParameterShard mine = shard(2), replica = shard(2);
  for (const int leaf : {0, 1}) (void)mine.take({0, leaf, 0, 0.1f}, packed(leaf));
  replica.apply(mine.last_sum(), 0.1f);
  EXPECT_EQ(mine.floats(), replica.floats());
}

TEST_F(ShardOfSgd, RefusesGradientsThatCannotBe) {
  ParameterShard mine = shard(2);
  const std::vector<float> values = packed(0);
  EXPECT_THROW((void)mine.take({0, 2, 0, 0.1f}, values), DataError);
  EXPECT_THROW((void)mine.take({0, 0, 1, 0.1f}, values), DataError);
  (void)mine.take({0, 0, 0, 0.1f}, values);
  EXPECT_THROW((void)mine.take({0, 0, 0, 0.1f}, values), DataError);
}

// A peer that knows the job's token, but is no worker of it.
TEST_F(ShardOfSgd, ItsServerHangsUpOnAPeerThatAsksWhatNoWorkerAsks) {
  using namespace std::chrono_literals;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  servers_.secret = "s";
  ShardServer server(servers_, "test");
  server.serve(shard(1), 0, BookPlan{.epoch = {.samples = 64, .global_batch = 16}, .ranks = 2});
  server.start();
  net::LoopThread peer;
  for (const MessageHead& head :
       std::initializer_list<MessageHead>{{.kind = MessageKind::pull, .count = -1},
                                          {.kind = MessageKind::pull, .count = kMost},
                                          {.kind = MessageKind::pull, .first = -1, .count = 1},
                                          {.kind = MessageKind::pull, .first = kMost, .count = 1},
                                          {.kind = MessageKind::push, .first = kMost},
                                          {.kind = MessageKind::next, .rank = 2},
                                          {.kind = MessageKind::begin, .rank = -1},
                                          {.kind = MessageKind::done, .rank = 1'000'000},
                                          {.kind = MessageKind::finish, .rank = -1}}) {
    std::promise<void> closed;
    const auto channel = net::connect_channel(peer.loop(), server.address().address, server.address().port, "s", 10s,
                                              {.purpose = "test"});
    channel->listen(
        {.on_frame = [](const std::string&) {}, .on_close = [&](const std::string&) { closed.set_value(); }});
    channel->send(frame_of(head, std::vector<float>(1)));
    EXPECT_EQ(closed.get_future().wait_for(60s), std::future_status::ready) << static_cast<std::uint32_t>(head.kind);
  }
  EXPECT_EQ(server.failure(), "");
}

}  // namespace
}  // namespace dtrain::train
