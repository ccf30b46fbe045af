#include "agent/host_check.hpp"

#include <gtest/gtest.h>

namespace dtrain::job {
namespace {

TEST(HostCheck, TheMemoryOfAHostHoldsStateAndDecodedPictures) {
  config::TrainOptions options;
  const NeededMemory plain = memory_of_host(options, 1'000'000);
  EXPECT_EQ(plain.training, kLeastMemory + 24'000'000);
  EXPECT_EQ(plain.decoded, 0u);
  options.data.cache_decoded_gib = 1.5;
  EXPECT_EQ(memory_of_host(options, 1'000'000).training, plain.training);
  EXPECT_EQ(memory_of_host(options, 1'000'000).decoded, 3u << 29);
}

TEST(HostCheck, EachWorkerOfAHostKeepsItsOwnPictures) {
  config::TrainOptions options;
  options.data.cache_decoded_gib = 1;
  options.compute.gpus = "0,1,3";
  EXPECT_EQ(memory_of_host(options, 0).decoded, std::uint64_t{3} << 30);
}

}  // namespace
}  // namespace dtrain::job
