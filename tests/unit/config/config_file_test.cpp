#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "config_file.hpp"
#include "train_options.hpp"

namespace dtrain::config {
namespace {

std::string refusal(std::string_view text) {
  try {
    parse_config(text, "f");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ConfigFile, KeysBelongToTheSectionAboveThem) {
  const auto entries = parse_config("color = \"never\"\n\n[data.prepare]\nout = 'd'\n", "f");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].section, "");
  EXPECT_EQ(entries[1].section, "data.prepare");
  EXPECT_EQ(entries[1].line, 4);
}

TEST(ConfigFile, QuotesKeepBlanksAndHashes) {
  const auto entries = parse_config("a = \"x # \\\"y\\\"\"  # note\nb = 'c:\\d'\n", "f");
  EXPECT_EQ(entries.at(0).values, std::vector<std::string>{"x # \"y\""});
  EXPECT_EQ(entries.at(1).values, std::vector<std::string>{"c:\\d"});
}

TEST(ConfigFile, NumbersAndTruthsBecomeTheTextOfAnOption) {
  const auto entries = parse_config("a=0.1#fast\r\nb = 30\nc = true\nd = 1e-05", "f");
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].values.front(), "0.1");
  EXPECT_EQ(entries[1].values.front(), "30");
  EXPECT_EQ(entries[2].values.front(), "true");
  EXPECT_EQ(entries[3].values.front(), "1e-05");
}

TEST(ConfigFile, ListsHoldSeveralValues) {
  const auto entries = parse_config("a = [30, 60.5, \"x,y\"]\nb = []\nc = 3", "f");
  EXPECT_EQ(entries.at(0).values, (std::vector<std::string>{"30", "60.5", "x,y"}));
  EXPECT_TRUE(entries.at(1).is_list && entries.at(1).values.empty());
  EXPECT_FALSE(entries.at(2).is_list);
}

TEST(ConfigFile, EveryFormOfATableIsASection) {
  const auto entries = parse_config("cluster.up.workers = 1\ntrain = {lr = 2}\n[cluster.down]\nyes = true\n", "f");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].section, "cluster.up");
  EXPECT_EQ(entries[1].section, "train");
  EXPECT_EQ(entries[2].section, "cluster.down");
}

TEST(ConfigFile, ATableOfChosenOptionsGivesThemTheSameValuesAgain) {
  OptionSet set;
  std::string text = "a \"b\"\n\\", number_like = "0x1f", name = "unset";
  double rate = 1e-05;
  int count = 30;
  bool on = true;
  std::vector<double> list = {30, 60.5};
  set.add("--text", text, "T", "");
  set.add("--number-like", number_like, "T", "");
  set.add("--name", name, "T", "");
  set.add("--rate", rate, "R", "");
  set.add("--count", count, "N", "");
  set.add("--on", on, "");
  set.add_numbers("--list", list, "N", "");
  set.add("--left", name, "T", "");
  for (Option& option : set.options()) option.source = Source::flag;
  set.find("name")->source = Source::fallback;
  set.find("count")->source = Source::recipe;
  set.find("count")->origin = "recipe x";
  const std::string table = config_table(set, "train", {"left"});
  EXPECT_NE(table.find("# count = 30  (recipe x)\n"), table.npos) << table;
  EXPECT_NE(table.find("rate = 1e-05\n"), table.npos) << table;
  const auto entries = parse_config(table, "f");
  ASSERT_EQ(entries.size(), 5u) << table;
  for (const ConfigEntry& entry : entries) {
    EXPECT_EQ(entry.section, "train");
    EXPECT_EQ(entry.values.front(), set.find(entry.key)->show()) << entry.key;
  }
}

// A text that the option takes: of its present value, else the first of these.
std::string sample_of(Option& option) {
  if (const std::string text = option.show(); !text.empty()) return text;
  for (const char* text : {"1", "320x448", "ce", "2bit"}) {
    try {
      option.set(text);
      return text;
    } catch (const UsageError&) {
      continue;
    }
  }
  return "";
}

// What a table says of the option once it has this value, and the value that is read from there.
void expect_recorded(const std::string& name, const std::string& text) {
  TrainOptions options, read;
  OptionSet set, again;
  bind(set, options);
  bind(again, read);
  Option& option = *set.find(name);
  option.set(text);
  option.source = Source::flag;
  EXPECT_NE(option.show(), "");
  const std::string table = config_table(set, "train", {});
  const auto entries = parse_config(table, "f");
  ASSERT_EQ(entries.size(), 1u) << table;
  EXPECT_NO_THROW(again.find(name)->set(entries[0].values.front())) << table;
  EXPECT_EQ(again.find(name)->show(), option.show()) << table;
}

TEST(ConfigFile, EveryOptionOfTrainIsReadAgain) {
  TrainOptions options;
  OptionSet set;
  bind(set, options);
  for (Option& option : set.options()) {
    if (option.flag_only) continue;
    SCOPED_TRACE(option.name());
    expect_recorded(option.name(), sample_of(option));
  }
  expect_recorded("gc-type", "2bit");
  expect_recorded("elastic-training-enabled", "True");
}

TEST(ConfigFile, UnderscoresCountAsDashes) { EXPECT_EQ(parse_config("batch_size = 1", "f").at(0).key, "batch-size"); }

TEST(ConfigFile, EveryMistakeIsRefusedWithItsLine) {
  for (const char* line : {"lr", "lr =", "lr = # 3", "[train", "[train] x", "a b = 3", "a = \"3", "a = \"\\q\"",
                           "a = b", "a = 1\na = 2"}) {
    const std::string text = refusal(std::string("\n") + line);
    EXPECT_TRUE(text.starts_with("f:2: ") || text.starts_with("f:3: ")) << line << ": " << text;
  }
  EXPECT_EQ(refusal("\nsince = 2026-01-01"), "f:2: since: must be a text, a number, true or false, or a list of these");
  EXPECT_EQ(refusal("a = [[1]]"), "f:1: a: must be a text, a number, true or false, or a list of these");
}

}  // namespace
}  // namespace dtrain::config
