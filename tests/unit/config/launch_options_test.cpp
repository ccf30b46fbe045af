#include "launch_options.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/set_variable.hpp"

namespace dtrain::config {
namespace {

TEST(LaunchOptions, NameTheVariableThatHidesTheGpus) {
  const SetVariable hidden("CUDA_VISIBLE_DEVICES", "-1");
  LaunchOptions options;
  OptionSet set;
  bind(set, options);
  options.words = {"true"};
  options.ranks_per_host = "gpu";
  try {
    settled(options, set);
    FAIL() << "no GPU is visible";
  } catch (const UsageError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("CUDA_VISIBLE_DEVICES is \"-1\""), text.npos) << text;
  }
}

}  // namespace
}  // namespace dtrain::config
