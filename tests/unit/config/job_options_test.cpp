#include "config/job_options.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

// Agents look up no names, and know no card for an address that is only of a link.
TEST(JobOptions, AnAddressThatHostsAreGivenIsANumericOneOfAMachine) {
  for (const auto& [address, is_right] : {std::pair{"10.0.0.7", true},
                                          {"", true},
                                          {"node1", false},
                                          {"10.0.0", false},
                                          {"10.0.0.7:22", false},
                                          {"0.0.0.0", false},
                                          {"fd00::7", true},
                                          {"[fd00::7]", false},
                                          {"::", false},
                                          {"fe80::1", false}}) {
    JobOptions options;
    options.hostfile = "hosts";
    options.announce = address;
    OptionSet set;
    bind_hosts(set, options);
    if (is_right) {
      EXPECT_NO_THROW(check_hosts(options, set)) << address;
    } else {
      EXPECT_THROW(check_hosts(options, set), UsageError) << address;
    }
  }
}

}  // namespace
}  // namespace dtrain::config
