#include "step_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtrain::bench {
namespace {

StepPart part(const std::vector<StepPart>& parts, const std::string& name) {
  const auto found = std::ranges::find(parts, name, &StepPart::name);
  EXPECT_NE(found, parts.end()) << name;
  return found == parts.end() ? StepPart{} : *found;
}

backend::Profile profile() {
  return {.of_shard = {{.name = "a", .kind = "convolution", .seconds = 3, .bare_seconds = 2, .bytes = 100},
                       {.name = "b", .kind = "convolution", .seconds = 1, .bare_seconds = 0.5, .bytes = 100},
                       {.name = "c", .kind = "batch_norm_statistics", .seconds = 1, .bytes = 10},
                       {.name = "d", .kind = "batch_norm", .seconds = 3, .bytes = 20},
                       {.name = "e", .kind = "add", .seconds = 0.5, .bytes = 5}},
          .of_step = {{.name = "weights", .kind = "packing", .seconds = 2, .bytes = 10}},
          .bytes_per_second = 10};
}

TEST(StepParts, AddsWhatOneLaneDoesAndTheBytesOfAll) {
  const auto parts = step_parts(profile(), {.seconds = 40, .shards = 4, .lanes = 2});
  EXPECT_DOUBLE_EQ(part(parts, "convolutions").seconds, 8);
  EXPECT_DOUBLE_EQ(part(parts, "convolutions").limit_seconds.value(), 5);
  EXPECT_EQ(part(parts, "convolutions").bytes, 800u);
  EXPECT_DOUBLE_EQ(part(parts, "norms").seconds, 8);
  EXPECT_DOUBLE_EQ(part(parts, "norms").limit_seconds.value(), 6);
  EXPECT_DOUBLE_EQ(part(parts, "norms").limit_share(), 0.75);
  EXPECT_DOUBLE_EQ(part(parts, "elementwise").limit_seconds.value(), 1);
}

TEST(StepParts, CountsWhatIsDoneOnceAStepOnce) {
  const auto parts = step_parts(profile(), {.seconds = 40, .shards = 4, .lanes = 2});
  EXPECT_DOUBLE_EQ(part(parts, "reorders").seconds, 2);
  EXPECT_EQ(part(parts, "reorders").bytes, 10u);
}

TEST(StepParts, GivesTheOptimizerTheMemoryOfAllLanes) {
  const auto parts = step_parts(
      profile(), {.seconds = 40, .loading = 1, .applying = 4, .optimizer_bytes = 20, .shards = 4, .lanes = 2});
  EXPECT_DOUBLE_EQ(part(parts, "optimizer").seconds, 4);
  EXPECT_DOUBLE_EQ(part(parts, "optimizer").limit_seconds.value(), 1);
  EXPECT_DOUBLE_EQ(part(parts, "loader").seconds, 1);
  EXPECT_DOUBLE_EQ(part(parts, "waiting").seconds, 40 - 8 - 8 - 1 - 2 - 4 - 1);
}

TEST(StepParts, HasNoLimitWithoutAPrimitiveOrARateOfMemory) {
  backend::Profile unknown = profile();
  unknown.bytes_per_second = 0;
  const auto parts = step_parts(unknown, {.seconds = 1, .shards = 1, .lanes = 1});
  EXPECT_FALSE(part(parts, "norms").limit_seconds);
  EXPECT_EQ(part(parts, "norms").limit_share(), 0);
  EXPECT_TRUE(part(parts, "convolutions").limit_seconds);
  EXPECT_EQ(part(parts, "waiting").seconds, 0);
}

TEST(StepParts, CountsTheSlotsOfTheOptimizerTwiceAndParametersThreeTimes) {
  backend::ModelState state;
  state.parameters.resize(10);
  state.optimizer.resize(20);
  EXPECT_EQ(optimizer_bytes(state), (30 + 40) * sizeof(float));
}

}  // namespace
}  // namespace dtrain::bench
