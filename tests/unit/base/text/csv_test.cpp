#include <gtest/gtest.h>

#include <dtrain/base/csv.hpp>
#include <dtrain/base/error.hpp>

namespace dtrain {
namespace {

TEST(Csv, ReadsWhatItWrites) {
  for (const char* text : {"plain", "", "a,b", "say \"no\"", "two\nlines", "\"", "end\r"}) {
    const std::vector<CsvRow> rows = parse_csv(csv_field(text) + ",x\n", "t");
    ASSERT_EQ(rows.size(), 1u) << text;
    EXPECT_EQ(rows[0].fields, (std::vector<std::string>{text, "x"}));
  }
}

TEST(Csv, CountsLinesAndPassesOverEmptyOnes) {
  const std::vector<CsvRow> rows = parse_csv(
      "\xef\xbb\xbf"
      "a,b\r\n\r\n\"c\nd\",e\nf",
      "t");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].fields.front(), "a");
  EXPECT_EQ(rows[1].line, 3u);
  EXPECT_EQ(rows[2].line, 5u);
  EXPECT_TRUE(parse_csv("", "t").empty());
}

TEST(Csv, NamesTheLineOfAQuoteThatDoesNotEnd) {
  try {
    parse_csv("a\n\"b\nc", "labels.csv");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "labels.csv: line 2: the quote does not end");
  }
}

}  // namespace
}  // namespace dtrain
