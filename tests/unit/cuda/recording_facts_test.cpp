#include "recording_facts.hpp"

#include <gtest/gtest.h>

namespace dtrain::backend::cuda {
namespace {

const ConvolutionFacts kFast{"conv0", Direction::forward, "62:2=4"};
const ConvolutionFacts kSlow{"conv1", Direction::backward_weights, {}};

TEST(CudaRecordingFacts, WarnOfNothingWhereAllIsFast) {
  EXPECT_TRUE(warnings_of({.settled = true, .one_launch = true, .convolutions = {kFast}}).empty());
}

TEST(CudaRecordingFacts, WarnOnlyOfWhatStays) {
  EXPECT_TRUE(warnings_of({.settled = false, .one_launch = false, .convolutions = {kSlow}}).empty());
}

TEST(CudaRecordingFacts, NameTheFirstConvolutionWithoutAPlanAndTheReasonOfARefusal) {
  const std::vector<std::string> warnings = warnings_of(
      {.settled = true, .one_launch = false, .refusal = "not permitted", .convolutions = {kFast, kSlow, kSlow}});
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("(not permitted)"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("2 of 3 convolutions (the first: conv1, weights)"), std::string::npos) << warnings[1];
}

TEST(CudaRecordingFacts, NameTheFirstNativeKernelThatIsNotUsed) {
  const std::vector<std::string> warnings =
      warnings_of({.settled = true, .one_launch = true, .refused_kernels = {"muon: Y'Y: out of resources", "other"}});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].find("2 of dtrain's own kernels are not used (the first: muon: Y'Y: out of resources)"), 0u)
      << warnings[0];
}

TEST(CudaRecordingFacts, WarnOfAnOwnKernelThatFailedAndNotOfOneThatIsSlower) {
  ConvolutionFacts own{"conv2", Direction::forward, "62", "wgmma:128x64x64 did not", true};
  const auto warnings = [&] {
    return warnings_of({.settled = true, .one_launch = true, .convolutions = {kFast, own, own}});
  };
  ASSERT_EQ(warnings().size(), 1u);
  EXPECT_EQ(warnings().front(),
            "dtrain's own kernel is not used for 2 of 3 convolutions (the first: conv2, forward): "
            "wgmma:128x64x64 did not; cuDNN computes them");
  const Json json = json_of({.settled = true, .one_launch = true, .convolutions = {kFast, own}});
  EXPECT_EQ(json.at("convolutions").as_array().at(1).at("own_refused").as_string(), "wgmma:128x64x64 did not");
  EXPECT_EQ(json.at("convolutions").as_array().at(0).find("own_refused"), nullptr);
  own.own_failed = false;
  EXPECT_TRUE(warnings().empty());
}

TEST(CudaRecordingFacts, AreADocument) {
  const Json json = json_of({.settled = true, .one_launch = true, .convolutions = {kFast, kSlow}});
  EXPECT_TRUE(json.at("recorded").as_bool());
  EXPECT_EQ(json.at("by_definition").as_number(), 1);
  EXPECT_EQ(json.at("convolutions").as_array().at(0).at("engine").as_string(), "62:2=4");
  EXPECT_EQ(json.at("convolutions").as_array().at(0).at("direction").as_string(), "forward");
  EXPECT_TRUE(json.at("convolutions").as_array().at(1).at("engine").is_null());
  EXPECT_TRUE(json_of({}).at("recorded").is_null());
}

}  // namespace
}  // namespace dtrain::backend::cuda
