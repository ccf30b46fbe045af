#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "yarn_request.hpp"

namespace dtrain::launcher {
namespace {

TEST(YarnSubmission, IsHadoopsDistributedShellWithOneContainer) {
  const YarnLauncherOptions options{
      .resource_manager = "http://rm:8088", .user = "u", .queue = "q", .memory = 2048, .cores = 3};
  const Json body = yarn_submission("application_1_0007", options, {"/jobs/command_1", 42, 1'700'000'000'000});
  EXPECT_EQ(body.at("application-id").as_string(), "application_1_0007");
  EXPECT_EQ(body.at("queue").as_string(), "q");
  const Json& master = body.at("am-container-spec");
  EXPECT_EQ(master.at("commands").at("command").as_string(),
            "{{JAVA_HOME}}/bin/java -Xmx256m org.apache.hadoop.yarn.applications.distributedshell.ApplicationMaster "
            "--container_memory 2048 --container_vcores 3 --num_containers 1 --priority 0 1><LOG_DIR>/AppMaster.stdout "
            "2><LOG_DIR>/AppMaster.stderr");
  const Json& file = master.at("local-resources").at("entry").as_array().at(0);
  EXPECT_EQ(file.at("key").as_string(), "shellCommands");
  EXPECT_EQ(file.at("value").dump(),
            "{\"resource\":\"file:///jobs/command_1\",\"type\":\"FILE\",\"visibility\":\"APPLICATION\",\"size\":42,"
            "\"timestamp\":1700000000000}");
}

TEST(YarnCommandFile, HasItsLengthInFrontAndQuotesWords) {
  EXPECT_THROW(command_file_content({"/opt/dtrain", "agent", "--join", "/jobs/$HOME"}), UsageError);
  const std::string content = command_file_content({"/opt/dtrain", "agent", "--join", "/jobs/a b/x.json"});
  EXPECT_EQ(content.substr(2), "exec '/opt/dtrain' 'agent' '--join' '/jobs/a b/x.json'");
  EXPECT_EQ(content.substr(0, 2), std::string({'\0', static_cast<char>(content.size() - 2)}));
}

TEST(YarnEnd, IsToldWithWhatYarnSays) {
  const auto answer = [](const char* state) {
    return Json::object(
        {{"app", Json::object({{"id", "application_1_0007"}, {"state", state}, {"diagnostics", "no memory"}})}});
  };
  EXPECT_EQ(yarn_end(answer("ACCEPTED")), "");
  EXPECT_EQ(yarn_end(answer("RUNNING")), "");
  EXPECT_EQ(yarn_end(answer("FAILED")), "its YARN application application_1_0007 is FAILED: no memory");
}

}  // namespace
}  // namespace dtrain::launcher
