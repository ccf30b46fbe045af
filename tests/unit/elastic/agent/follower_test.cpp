#include "agent/follower.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

TEST(Follower, WaitsForTheChosenAddressHoweverManyOthersThereAre) {
  net::Loop busy, loop;
  const net::Listener listener(busy, "127.0.0.1", "token", [](const auto&) {});
  const AgentOptions options{.order = {.address = "127.0.0.1",
                                       .more_addresses = std::vector<std::string>(5, "127.0.0.2"),
                                       .port = listener.port(),
                                       .token = "token",
                                       .host = "w1"},
                             .worker_command = {},
                             .connect_deadline = 6s};
  Follower::Events events;
  events.report = [] { return std::vector<WorkerReport>(); };
  Follower follower(loop, options, std::move(events));
  const std::jthread coordinator([&] {
    std::this_thread::sleep_for(1500ms);
    busy.run();
  });
  EXPECT_NO_THROW(follower.start());
  busy.stop();
}

}  // namespace
}  // namespace dtrain::elastic
