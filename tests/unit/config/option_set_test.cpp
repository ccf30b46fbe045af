#include "option_set.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

class TwoOptions : public testing::Test {
 protected:
  TwoOptions() {
    set_.add("--raw", raw_, "");
    set_.add("--encoding", encoding_, "NAME", "");
    give("raw", Source::flag, "--raw");
    give("encoding", Source::flag, "--encoding");
  }
  void give(const char* name, Source source, const char* origin) {
    set_.find(name)->source = source;
    set_.find(name)->origin = origin;
  }
  bool raw_decides() const { return first_decides(set_, "raw", "encoding", "both choose"); }

  bool raw_ = true;
  std::string encoding_ = "png";
  OptionSet set_;
};

TEST_F(TwoOptions, TheStrongerSourceDecides) {
  give("encoding", Source::environment, "DTRAIN_ENCODING");
  EXPECT_TRUE(raw_decides());
  give("raw", Source::project_config, "dtrain.toml:2: raw");
  EXPECT_FALSE(raw_decides());
}

TEST_F(TwoOptions, OfOneSourceAreRefusedWithTheirOrigins) {
  const auto complaint = [&] {
    try {
      raw_decides();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(complaint(), "--raw and --encoding: both choose");
  give("raw", Source::project_config, "dtrain.toml:2: raw");
  give("encoding", Source::project_config, "dtrain.toml:3: encoding");
  EXPECT_EQ(complaint(), "--raw (dtrain.toml:2) and --encoding png (dtrain.toml:3): both choose");
}

}  // namespace
}  // namespace dtrain::config
