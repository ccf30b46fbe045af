// The orders in which every test of streams is run.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "helpers/cuda_runtime/runtime.hpp"

namespace dtrain::testing {

struct Schedule {
  cuda_runtime::Order order;
  std::uint64_t seed = 0;
};

inline std::vector<Schedule> schedules() {
  using cuda_runtime::Order;
  std::vector<Schedule> all{{Order::as_asked}, {Order::waited_for_only}, {Order::others_first}};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) all.push_back({Order::at_random, seed});
  return all;
}

inline std::string name_of(const Schedule& schedule) {
  switch (schedule.order) {
    case cuda_runtime::Order::as_asked:
      return "AsAsked";
    case cuda_runtime::Order::waited_for_only:
      return "WaitedForOnly";
    case cuda_runtime::Order::others_first:
      return "OthersFirst";
    case cuda_runtime::Order::at_random:
      break;
  }
  return "AtRandom" + std::to_string(schedule.seed);
}
inline void PrintTo(const Schedule& schedule, std::ostream* out) { *out << name_of(schedule); }

// A test that is run in each order. GPU 1 is the one that is used: a thread that chose none is on 0.
class InEveryOrder : public ::testing::TestWithParam<Schedule> {
 protected:
  static constexpr int kGpu = 1;
  InEveryOrder() { cuda_runtime::change_order(GetParam().order, GetParam().seed); }
};

// INSTANTIATE_TEST_SUITE_P(All, Suite, every_order(), OrderName());
inline auto every_order() { return ::testing::ValuesIn(schedules()); }
struct OrderName {
  std::string operator()(const ::testing::TestParamInfo<Schedule>& of) const { return name_of(of.param); }
};

}  // namespace dtrain::testing
