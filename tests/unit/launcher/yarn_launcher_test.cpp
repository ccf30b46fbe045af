#include <dtrain/launcher/yarn_launcher.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include <dtrain/net/http_server.hpp>
#include <dtrain/net/loop_thread.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::launcher {
namespace {

using namespace std::chrono_literals;

// While another ResourceManager becomes the active one, the old one answers with text and status 200.
TEST(YarnLauncher, KeepsAnAgentWhoseResourceManagerGivesNoAnswerForAWhile) {
  const TemporaryFolder folder;
  std::atomic<int> looks = 0, kills = 0;
  net::LoopThread loop;
  const auto answer = [&](const net::HttpRequest& request) -> net::HttpResponse {
    if (request.path.find("new-application") != std::string::npos) {
      return {.body = R"({"application-id": "application_1_1"})"};
    }
    if (request.method == "POST") return {.status = 202};
    if (request.method == "PUT") {
      ++kills;
      return {.status = 202};
    }
    if (++looks == 1) return {.body = "Can not find any active RM. Will retry in next 1 seconds."};
    return {.body = R"({"app": {"id": "application_1_1", "state": "FINISHED"}})"};
  };
  const net::HttpServer server(loop.loop(), "127.0.0.1", 0, answer, {.most_body = 1 << 20});
  YarnLauncher launcher({.resource_manager = fmt::format("http://127.0.0.1:{}", server.port()), .user = "u"});
  std::promise<std::string> end;
  launcher.start({.name = "h1", .host = "h1"},
                 {.address = "127.0.0.1",
                  .port = 7,
                  .token = "s",
                  .host = "h1",
                  .job_folder = folder.path().string(),
                  .tree = "t"},
                 [&](const elastic::StartFailure& failure) { end.set_value(failure.reason); });
  EXPECT_EQ(end.get_future().get(), "its YARN application application_1_1 is FINISHED");
  EXPECT_EQ(kills, 0);
}

}  // namespace
}  // namespace dtrain::launcher
