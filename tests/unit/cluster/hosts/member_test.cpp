#include <dtrain/cluster/member.hpp>

#include <gtest/gtest.h>

#include <dtrain/base/machine.hpp>

#include "common/set_variable.hpp"
#include "common/temporary_folder.hpp"

namespace dtrain::cluster {
namespace {

// In a container that is less than the machine has.
TEST(Member, ReportsTheMemoryThatItsControlGroupsLeave) {
  const TemporaryFolder home;
  const SetVariable variable("HOME", home.path().string());
  const Json question =
      Json::object({{"ask", "look"}, {"folder", (home / "lab").string()}, {"probe", (home / "probe").string()}});
  const auto answer = answer_as_member(question);
  ASSERT_TRUE(answer);
  EXPECT_EQ(static_cast<std::uint64_t>(answer->at("memory_bytes").as_integer()), usable_memory().total);
}

}  // namespace
}  // namespace dtrain::cluster
