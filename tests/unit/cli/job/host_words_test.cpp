#include "cli/commands/job/host_words.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::cli {
namespace {

using HostTexts = std::vector<std::string>;

Json hosts_answer(const std::vector<std::pair<std::string, std::string>>& hosts) {
  Json rows = Json::array();
  for (const auto& [name, state] : hosts) rows.push_back(Json::object({{"name", name}, {"state", state}}));
  return Json::object({{"hosts", rows}});
}

std::string refusal_of_lines(const HostTexts& lines, const Json& list, std::string_view file = "") {
  try {
    check_new_lines(lines, list, file);
    return "";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(HostWords, AreTakenOnce) {
  EXPECT_EQ(host_names("h4 h5  h4 h4"), (HostTexts{"h4", "h5"}));
  EXPECT_EQ(host_lines("h4 slots=2 h5 h4 slots=2 h5"), (HostTexts{"h4 slots=2", "h5"}));
  EXPECT_EQ(host_lines("u@h4:22 slots=2"), HostTexts{"u@h4:22 slots=2"});
}

TEST(HostWords, OneThatTheJobHasIsRefused) {
  const Json list = hosts_answer({{"h1", "member"}, {"h2", "quarantined"}});
  EXPECT_EQ(refusal_of_lines({"h4", "h2"}, list), "h2 is in the host list already");
  EXPECT_EQ(refusal_of_lines({"h4", "h1 slots=2"}, list), "h1 is in the host list already");
  EXPECT_EQ(refusal_of_lines({"h4", "h5"}, list), "");
}

TEST(HostWords, OneHostWithTwoNumbersOfSlotsIsRefused) {
  EXPECT_EQ(refusal_of_lines({"h4 slots=1", "h4 slots=2"}, hosts_answer({})), "h4 is in the host list already");
}

TEST(HostWords, ALineOfNoHostIsRefused) { EXPECT_NE(refusal_of_lines({"h4", "-h5"}, hosts_answer({})), ""); }

TEST(HostWords, OneThatHasLeftOrIsLeavingIsTheCoordinatorsDecision) {
  const Json list = hosts_answer({{"h1", "drained"}, {"h2", "leaving"}, {"h3", "member"}, {"h4", "starting"}});
  EXPECT_EQ(refusal_of_lines({"h1", "h2"}, list), "");
  EXPECT_EQ(refusal_of_lines({"h4"}, list, "h1\nh2\nh3\n"), "") << "it was removed from the file";
  EXPECT_EQ(refusal_of_lines({"h3"}, list, "h1\nh2\nh3\n"), "h3 is in the host list already");
}

TEST(GoodputText, IsNoNumberBeforeItWasMeasured) {
  EXPECT_EQ(goodput_text(0), "-");
  EXPECT_EQ(goodput_text(93.4), "93 %");
}

}  // namespace
}  // namespace dtrain::cli
