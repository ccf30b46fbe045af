#include <gtest/gtest.h>

#include <map>

#include "coordinator/tag_watch.hpp"

namespace dtrain::job {
namespace {

TagWatchChoice chosen(const std::map<std::string, std::string>& variables) {
  return choose_tag_watch([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(TagWatchChoice, NeedsBothVariables) {
  EXPECT_EQ(
      chosen({{"WORKER_LAUNCH_TEMPLATE_ID", "lt-1"}, {"ELASTIC_WORKER_TAG", "demo-aws-dl-cfn-elastic-worker"}}).cluster,
      "demo");
  for (const char* name : {"WORKER_LAUNCH_TEMPLATE_ID", "ELASTIC_WORKER_TAG"}) {
    std::map<std::string, std::string> variables{{"WORKER_LAUNCH_TEMPLATE_ID", "lt-1"},
                                                 {"ELASTIC_WORKER_TAG", "demo-aws-dl-cfn-elastic-worker"}};
    variables[name] = "";
    EXPECT_EQ(chosen(variables).cluster + chosen(variables).complaint, "");
    variables.erase(name);
    EXPECT_EQ(chosen(variables).cluster + chosen(variables).complaint, "");
  }
}

TEST(TagWatchChoice, TellsOfATagThatNamesNoCluster) {
  for (const char* tag : {"theirs", "-aws-dl-cfn-elastic-worker", "demo-aws-dl-cfn-elastic-worker2"}) {
    const TagWatchChoice choice = chosen({{"WORKER_LAUNCH_TEMPLATE_ID", "lt-1"}, {"ELASTIC_WORKER_TAG", tag}});
    EXPECT_EQ(choice.cluster, "");
    EXPECT_NE(choice.complaint.find(tag), std::string::npos);
  }
}

}  // namespace
}  // namespace dtrain::job
