#include "cluster_options.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

// A cluster stores what is shown, and later commands read it.
TEST(ClusterOptions, ATimeIsShownAsItIsReadAgain) {
  cluster::Spec spec;
  OptionSet set;
  bind(set, spec);
  Option& limit = *set.find("ttl");
  for (const char* text : {"off", "1s", "90s", "30m", "2h", "730d", "1000000s", "1000000m", "1000000h", "1000000d"}) {
    limit.set(text);
    EXPECT_EQ(limit.show(), text);
    EXPECT_NO_THROW(limit.set(limit.show()));
  }
  limit.set("17520h");
  EXPECT_EQ(limit.show(), "730d");
  for (const char* text : {"", "5", "m", "0h", "1000001d", "2w", "1.5h"}) {
    EXPECT_THROW(limit.set(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace dtrain::config
