#include "board/cluster_watch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include <dtrain/base/error.hpp>

namespace dtrain::board {
namespace {

using namespace std::chrono_literals;

Json first_of(ClusterWatch& watch) { return watch.json().at("clusters").as_array().at(0); }

template <typename Question>
void wait_until(Question question) {
  for (int i = 0; i < 3000 && !question(); ++i) std::this_thread::sleep_for(10ms);
  ASSERT_TRUE(question());
}

TEST(ClusterWatch, AsksOnlyWhenAPageAsks) {
  std::atomic<int> asked = 0;
  ClusterWatch watch({"demo"}, [&](const std::vector<std::string>& words, const std::stop_token&) {
    ++asked;
    return CommandOutput{"{\"of\":\"" + words.at(1) + " " + words.at(2) + "\"}", ""};
  });
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(asked, 0);
  EXPECT_TRUE(first_of(watch).at("cost").is_null());
  wait_until([&] { return !first_of(watch).at("asking").as_bool(); });
  EXPECT_EQ(first_of(watch).at("cost").at("answer").at("of").as_string(), "cost demo");
  EXPECT_EQ(first_of(watch).at("health").at("error").as_string(), "");
  EXPECT_EQ(asked, 3) << "an answer holds for a while";
}

TEST(ClusterWatch, KeepsWhatACommandComplainsOf) {
  EXPECT_EQ(answer_of_command(CommandOutput{"", "dtrain: no credentials\n"}).at("error").as_string(),
            "dtrain: no credentials");
  const CommandOutput refused{"", "careful\n{\"error\":{\"message\":\"no such cluster\",\"hint\":\"look\"}}\n"};
  EXPECT_EQ(answer_of_command(refused).at("error").as_string(), "no such cluster; look");
  EXPECT_NE(answer_of_command(std::nullopt).at("error").as_string(), "");
  EXPECT_TRUE(answer_of_command(std::nullopt).at("answer").is_null());
  ClusterWatch watch({"demo"},
                     [](const auto&, const auto&) -> std::optional<CommandOutput> { throw Error("cannot start"); });
  wait_until([&] { return first_of(watch).at("asked_at").as_number() > 0; });
  EXPECT_EQ(first_of(watch).at("status").at("error").as_string(), "cannot start");
}

TEST(ClusterWatch, EndsWhileACommandRuns) {
  std::atomic<bool> runs = false;
  {
    ClusterWatch watch({"demo"}, [&](const auto&, const std::stop_token& stop) -> std::optional<CommandOutput> {
      runs = true;
      while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
      return std::nullopt;
    });
    watch.json();
    wait_until([&] { return runs.load(); });
  }
  EXPECT_TRUE(runs);
}

}  // namespace
}  // namespace dtrain::board
