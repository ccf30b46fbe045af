// Changes that somebody asked for.
#include <gtest/gtest.h>

#include "toy_job.hpp"

namespace dtrain::world {
namespace {

TEST(World, TrainsToTheSameBitsWithAnyNumberOfWorkers) {
  for (const std::vector<std::string>& hosts :
       {std::vector<std::string>{"a"}, {"a", "b"}, {"a", "b", "c"}, {"a slots=3", "b", "c"}}) {
    ToyJob toy(hosts, {.epochs = 1});
    EXPECT_EQ(toy.run_and_judge(), "");
  }
}

}  // namespace
}  // namespace dtrain::world
