#include "spec/train_start.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/freeze.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>

#include "common/recording_reporter.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::job {
namespace {

class TrainStart : public ::testing::Test {
 protected:
  TrainStart() {
    bind(set_, options_);
    start_.job.optimizer.kind = nn::OptimizerKind::sgd;
    start_.state.optimizer.assign(start_.state.parameters.size(), 1.0f);
    start_.state.average.clear();
    start_.state.updates = 500;
  }
  void choose(const char* name, const char* text) {
    config::Option& option = *set_.find(name);
    option.set(text);
    option.source = config::Source::flag;
  }
  bool noted(std::string_view words) const {
    return std::ranges::any_of(reporter_.notes, [&](const std::string& note) { return note.ends_with(words); });
  }

  config::TrainOptions options_;
  config::OptionSet set_;
  train::Checkpoint start_ = train::small_checkpoint();
  RecordingReporter reporter_;
};

TEST_F(TrainStart, CountsUpdatesFromWhereMomentsBegin) {
  options_.optimizer.kind = nn::OptimizerKind::sgd;
  EXPECT_FALSE(complete_optimizer_state(start_, options_));
  EXPECT_EQ(start_.state.updates, 500u);
  options_.optimizer.kind = nn::OptimizerKind::adamw;
  EXPECT_TRUE(complete_optimizer_state(start_, options_));
  EXPECT_EQ(start_.state.updates, 0u);
  EXPECT_EQ(start_.state.optimizer, std::vector<float>(2 * start_.state.parameters.size(), 0.0f));
}

TEST_F(TrainStart, KeepsAnAverageFromWarmingUpAgainWithNewMoments) {
  options_.optimizer.kind = nn::OptimizerKind::adamw;
  options_.optimizer.average = 0.99f;
  options_.optimizer.average_warms_up = true;
  train::Checkpoint fresh = start_;
  fit_optimizer_state(fresh, options_, reporter_);
  EXPECT_TRUE(options_.optimizer.average_warms_up) << "the average begins as the moments do";
  start_.state.average.assign(start_.state.parameters.size() + start_.state.statistics.size(), 0.5f);
  fit_optimizer_state(start_, options_, reporter_);
  EXPECT_FALSE(options_.optimizer.average_warms_up);
  EXPECT_TRUE(noted("The checkpoint's average of weights goes on without --ema-warmup"));
}

TEST_F(TrainStart, TakesTheWarmUpOfTheAverageThoughItsDecayIsChosen) {
  options_.resume = true;
  start_.job.optimizer.average = 0.9f;
  start_.job.optimizer.average_warms_up = true;
  choose("ema", "0.99");
  agree_with_checkpoint(start_, set_, options_);
  EXPECT_FLOAT_EQ(options_.optimizer.average, 0.99f);
  EXPECT_TRUE(options_.optimizer.average_warms_up);
}

TEST_F(TrainStart, SaysThatLayersStayFrozenAsTheyWere) {
  graph_of_run(start_, set_, options_, reporter_);
  EXPECT_TRUE(reporter_.notes.empty());
  nn::freeze(start_.graph, "backbone");
  graph_of_run(start_, set_, options_, reporter_);
  EXPECT_TRUE(noted("stay as they are, as the checkpoint says; --freeze 0 lets all learn"));
}

// As MXNet's scripts are called to go on: the symbol knows neither the network's name nor how its weights began.
TEST_F(TrainStart, TakesASymbolOfTheNetworkThatIsChosen) {
  options_.data.image = {3, 32, 32};
  for (const char* name : {"lenet", "speednet", "resnet-v1"}) {
    const nn::Graph built = nn::build_network({.name = name, .image = options_.data.image});
    start_.graph = nn::graph_from_json(nn::graph_to_mxnet_symbol(built), "m/x-symbol.json", built.input());
    choose("network", name);
    EXPECT_EQ(graph_of_run(start_, set_, options_, reporter_).name, start_.graph.name) << name;
  }
  choose("network", "mlp");
  EXPECT_THROW(graph_of_run(start_, set_, options_, reporter_), UsageError);
}

TEST_F(TrainStart, TakesNoDropPathThatTheCheckpointsNetworkHasNot) {
  choose("drop-path", "0.25");
  EXPECT_THROW(graph_of_run(start_, set_, options_, reporter_), UsageError);
  choose("drop-path", "0");
  EXPECT_NO_THROW(graph_of_run(start_, set_, options_, reporter_));
}

}  // namespace
}  // namespace dtrain::job
