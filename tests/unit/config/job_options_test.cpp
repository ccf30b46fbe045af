#include "config/job_options.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/set_variable.hpp"

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

TEST(JobOptions, AVariableHasANameWithoutBlanks) {
  const SetVariable home("DTRAIN_TEST_HOME", "here");
  using Words = std::vector<std::string>;
  EXPECT_EQ(variables_from("A=x y"), Words{"A=x y"});
  EXPECT_EQ(variables_from("A:x=y"), Words{"A=x=y"});
  EXPECT_EQ(variables_from("DTRAIN_TEST_HOME,DTRAIN_TEST_NONE"), Words{"DTRAIN_TEST_HOME=here"});
  for (const char* text : {"", "=x", ":x", "A B=x", " A=x", "A\t=x", "A B", "A,,B"}) {
    EXPECT_THROW(variables_from(text), UsageError) << text;
  }
}

}  // namespace
}  // namespace dtrain::config
