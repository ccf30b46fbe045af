#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "config_file.hpp"

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
  const auto entries = parse_config("color = never\n\n[data.prepare]\nout = d\n", "f");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].section, "");
  EXPECT_EQ(entries[1].section, "data.prepare");
  EXPECT_EQ(entries[1].line, 4);
}

TEST(ConfigFile, QuotesKeepBlanksAndHashes) {
  const auto entries = parse_config("a = \"x # \\\"y\\\"\"  # note\nb = 'c:\\d'\n", "f");
  EXPECT_EQ(entries.at(0).value, "x # \"y\"");
  EXPECT_EQ(entries.at(1).value, "c:\\d");
}

TEST(ConfigFile, BareValuesEndAtAComment) { EXPECT_EQ(parse_config("lr=0.1#fast\r\n", "f").at(0).value, "0.1"); }

TEST(ConfigFile, UnderscoresCountAsDashes) { EXPECT_EQ(parse_config("batch_size = 1", "f").at(0).key, "batch-size"); }

TEST(ConfigFile, EveryMistakeIsRefusedWithItsLine) {
  EXPECT_EQ(refusal("\nlr"), "f:2: expected 'key = value'");
  EXPECT_EQ(refusal("lr ="), "f:1: the value is missing");
  EXPECT_EQ(refusal("lr = # 3"), "f:1: the value is missing");
  EXPECT_EQ(refusal("[train"), "f:1: a section ends with ']'");
  EXPECT_EQ(refusal("[train] x"), "f:1: unexpected 'x'");
  EXPECT_EQ(refusal("a b = 3"), "f:1: 'a b' is not the name of an option");
  EXPECT_EQ(refusal("a = \"3"), "f:1: the closing quote is missing");
  EXPECT_EQ(refusal("a = \"\\q\""), "f:1: unknown escape '\\q'");
  EXPECT_EQ(refusal("a = [30, 60]"), "f:1: lists and tables are written as text: \"30,60\"");
  EXPECT_EQ(refusal("a = b c"), "f:1: a value with blanks or quotes needs quotes around it");
}

}  // namespace
}  // namespace dtrain::config
