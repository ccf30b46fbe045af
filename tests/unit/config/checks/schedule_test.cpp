#include "config/checks/schedule.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

struct ShortRun {
  ShortRun(const char* kind, const char* warmup, const char* epochs, Source warmup_from) {
    bind(set, options);
    give("lr-schedule", kind, Source::flag);
    give("num-epochs", epochs, Source::flag);
    give("warmup-epochs", warmup, warmup_from);
  }
  void give(const char* name, const char* text, Source from) {
    Option& option = *set.find(name);
    option.set(text);
    option.source = from;
  }
  double settled_warmup() {
    said = settle_schedule(set, options);
    return options.schedule.warmup_epochs;
  }
  TrainOptions options;
  OptionSet set;
  std::string said;
};

TEST(ScheduleOfRun, TakesHalfForTheWarmUpOfAFileThatWouldFillIt) {
  ShortRun one("cosine", "2", "1", Source::named_config);
  EXPECT_EQ(one.settled_warmup(), 0.5);
  EXPECT_EQ(one.said, "The warm-up of 2 epochs would fill the run: it takes 0.5");
  EXPECT_NO_THROW(check_schedule(one.options));
  ShortRun longer("poly", "2", "3", Source::named_config);
  EXPECT_EQ(longer.settled_warmup(), 2);
  EXPECT_EQ(longer.said, "");
}

TEST(ScheduleOfRun, KeepsAWarmUpThatTheUserGave) {
  for (const Source from : {Source::flag, Source::environment}) {
    ShortRun run("cosine", "2", "2", from);
    EXPECT_EQ(run.settled_warmup(), 2);
    EXPECT_THROW(check_schedule(run.options), UsageError);
  }
}

// As in the pods of --launcher kubernetes with --finetune.
TEST(ScheduleOfRun, FitsTheWarmUpOfAFileThatBecameAFlag) {
  for (const Source from : {Source::user_config, Source::named_config}) {
    ShortRun here("cosine", "2", "1", from);
    mark_warmup_of_file(here.set);
    EXPECT_TRUE(here.options.has_warmup_of_file);
    ShortRun there("cosine", "2", "1", Source::flag);
    there.give("warmup-of-file", "true", Source::flag);
    EXPECT_EQ(there.settled_warmup(), 0.5);
  }
  for (const Source from : {Source::flag, Source::environment, Source::recipe}) {
    ShortRun here("cosine", "2", "1", from);
    mark_warmup_of_file(here.set);
    EXPECT_FALSE(here.options.has_warmup_of_file) << "the user's stays, and the pods have the recipe's anyway";
  }
}

TEST(ScheduleOfRun, OneCycleTakesNoWarmUpOfARecipeOrAFile) {
  for (const Source from : {Source::recipe, Source::user_config, Source::project_config, Source::named_config}) {
    ShortRun run("one-cycle", "2", "5", from);
    EXPECT_EQ(run.settled_warmup(), 0);
    EXPECT_EQ(run.said, "The warm-up of 2 epochs is left out: one-cycle rises by itself");
    EXPECT_NO_THROW(check_schedule(run.options));
  }
  ShortRun none("one-cycle", "0", "5", Source::named_config);
  EXPECT_EQ(none.settled_warmup(), 0);
  EXPECT_EQ(none.said, "");
  ShortRun given("one-cycle", "2", "5", Source::environment);
  EXPECT_EQ(given.settled_warmup(), 2);
  EXPECT_THROW(check_schedule(given.options), UsageError);
}

}  // namespace
}  // namespace dtrain::config
