#include "config/exchange/link_option.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

TEST(LinkOption, ReadsBandwidthInBitsAndLatency) {
  EXPECT_DOUBLE_EQ(link_from("10gbit,50us").bytes_per_second, 1.25e9);
  EXPECT_DOUBLE_EQ(link_from("10gbit,50us").latency, 50e-6);
  EXPECT_DOUBLE_EQ(link_from("100mbit,25ms").bytes_per_second, 12.5e6);
  EXPECT_DOUBLE_EQ(link_from("100mbit,25ms").latency, 0.025);
  EXPECT_DOUBLE_EQ(link_from("1.5kbit,1s").bytes_per_second, 187.5);
  EXPECT_DOUBLE_EQ(link_from("1kbit,0s").latency, 0);
}

TEST(LinkOption, ReadsWhatItWrites) {
  EXPECT_EQ(link_text(link_from("10gbit,50us")), "10000mbit,50us");
  EXPECT_EQ(link_text(link_from(link_text(link_from("2.5gbit,1.5ms")))), "2500mbit,1500us");
}

TEST(LinkOption, SaysWhichPartIsWrong) {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      link_from(text);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_NE(refusal("10gbit").find("no latency"), std::string::npos);
  for (const char* rate : {"10gbt,50us", "gbit,50us", "0gbit,50us", "-1gbit,50us", "10,50us", ",50us", "nangbit,1us"}) {
    EXPECT_NE(refusal(rate).find("no bandwidth"), std::string::npos) << rate;
  }
  for (const char* latency : {"10gbit,50", "10gbit,", "10gbit,-1us", "10gbit,50 parsecs", "10gbit,50us,1"}) {
    EXPECT_NE(refusal(latency).find("is no latency"), std::string::npos) << latency;
  }
}

}  // namespace
}  // namespace dtrain::config
