// Labels of lists, tables and records: which ones records can hold, and which boxes a detector can train on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/data/pack.hpp>
#include <dtrain/data/record.hpp>

#include "data/archive/archive_files.hpp"
#include "data/temporary_folder.hpp"
#include "pack/pack_sources.hpp"

namespace dtrain::data {
namespace {

using Names = std::vector<std::string>;

const std::string& pixel() {
  static const std::string picture = encode_image({1, 1, 1, {7}}, Encoding::png);
  return picture;
}

TEST(PackLabels, LeaveOutAndNameBoxesThatCannotBeTrainedOn) {
  const PackList list = parse_list(
      "0\t2\t5\t1\t0.1\t0.2\t0.5\t0.6\t0\t10\t20\t50\t60\ta.png\n"
      "1\t2\t5\t0\t0.5\t0.5\t0.1\t0.1\tb.png\n"
      "2\t2\t5\t0.5\t0\t0\t1\t1\tc.png\n"
      "3\t2\t5\t0\t0\t0\t40\t30\td.png\n"
      "4\t2\t5\t-1\t0\t0\t0\t0\tz.png\n"
      "5\t2\t5\t0\t-0.1\t0\t1.2\t1\tf.png\n",
      "x.lst", "");
  const std::string pixels = "; sides are shares of the picture, 0 to 1, not pixels";
  EXPECT_EQ(list.objects_left_out,
            (std::map<std::string, Names>{{"its box lies outside of the picture" + pixels, {"object 1 of a.png"}},
                                          {"its box has no area", {"object 0 of b.png"}},
                                          {"its class is no whole number", {"object 0 of c.png"}},
                                          {"its box is far larger than the picture" + pixels, {"object 0 of d.png"}}}));
  EXPECT_EQ(list.without_objects, (Names{"b.png", "c.png", "d.png", "z.png"}));
  ASSERT_EQ(list.items.size(), 6u);
  EXPECT_EQ(list.items[0].labels, (std::vector<float>{2, 5, 1, 0.1f, 0.2f, 0.5f, 0.6f}));
  EXPECT_EQ(list.items[1].labels, (std::vector<float>{2, 5, -1, -1, -1, -1, -1}));
  EXPECT_EQ(list.items[4].labels, (std::vector<float>{2, 5, -1, 0, 0, 0, 0}));
  EXPECT_EQ(list.items[5].labels, (std::vector<float>{2, 5, 0, -0.1f, 0, 1.2f, 1})) << "it crosses the border";
}

TEST(PackLabels, LeaveOutSuchBoxesOfRecordsToo) {
  const TemporaryFolder folder;
  RecordWriter writer(folder / "a.rec");
  writer.add(0, std::vector<float>{2, 5, 0, 0, 0, 40, 30, 2e7f, 0, 0, 1, 1, 1, 0, 0, 1, 1}, bytes_of(pixel()));
  writer.finish();
  const VerifyReport report = verify_records(folder / "a.rec");
  ASSERT_EQ(report.problem_count, 1u);
  EXPECT_FALSE(report.problems[0].is_damage);
  const PackResult result = pack({.sources = {folder / "a.rec"}, .out = folder / "p", .encoding = std::nullopt});
  EXPECT_EQ(result.objects_left_out.size(), 2u);
  EXPECT_EQ(result.objects_left_out.count("its class is too large"), 1u);
  EXPECT_EQ(RecordFile(folder / "p.rec").read(0).labels, (std::vector<float>{2, 5, 1, 0, 0, 1, 1}));
  EXPECT_EQ(verify_records(folder / "p.rec").problem_count, 0u);
}

TEST(PackLabels, AreNoNumbersThatARecordWouldChange) {
  const std::string why = "the label 16777217 would become 16777216 in a record";
  for (const float exact : {16777216.0f, 33554432.0f}) {
    const std::string line = fmt::format("0\t{:.0f}\ta.jpg\n", exact);
    EXPECT_EQ(parse_list(line, "x.lst", "").items[0].labels, std::vector<float>{exact});
  }
  expect_error([] { parse_list("0\t1\ta.jpg\n1\t16777217\tb.jpg\n", "x.lst", ""); }, "x.lst: line 2: " + why);
  expect_error([] { parse_labels("a.jpg,1\nb.jpg,16777217\n", "l.csv", ""); }, "l.csv: line 2: " + why);
  const TemporaryFolder folder;
  write_file_atomic(folder / "a.tar", tar_of({{"1.png", pixel()}, {"1.cls", "16777217"}}));
  expect_error([&] { pack({.sources = {folder / "a.tar"}, .out = folder / "p"}); }, "a.tar(1.cls): " + why);
}

TEST(PackLabels, MayBeAnyNumbersWhereThereAreSeveral) {
  const PackList list = parse_list("0\t123456789\t3\ta.jpg\n1\t2\t5\t7\t0\t0\t1\t1\tb.jpg\n", "x.lst", "");
  EXPECT_EQ(list.items.at(0).labels, (std::vector<float>{123456789.0f, 3}));
  EXPECT_EQ(list.items.at(1).labels, (std::vector<float>{2, 5, 7, 0, 0, 1, 1}));
  expect_error([] { parse_list("0\t2\t5\t16777217\t0\t0\t1\t1\ta.jpg\n", "x.lst", ""); },
               "x.lst: line 1: the label 16777217 would become 16777216 in a record");
  expect_error([] { parse_list("0\t1e39\t3\ta.jpg\n", "x.lst", ""); }, "the label 1e+39 would become inf in a record");
}

TEST(PackLabels, OfATableMayBeWholeNumbersWithAPoint) {
  const PackList numbers = parse_labels("a.jpg,3.0\nb.jpg,10.00\nc.jpg,1\n", "l.csv", "");
  EXPECT_TRUE(numbers.classes.empty());
  EXPECT_EQ(numbers.items.at(0).labels, std::vector<float>{3});
  EXPECT_EQ(numbers.items.at(1).labels, std::vector<float>{10});
  EXPECT_EQ(parse_labels("a.jpg,3.5\nb.jpg,1.0\n", "l.csv", "").classes, (Names{"1.0", "3.5"}));
}

TEST(PackLabels, OfATableComeBelowTheNamesOfItsColumns) {
  const PackList list = parse_labels("gone,cat\na.jpg,dog\n ,\n  \nb.jpg,cat\n", "l.csv", "");
  EXPECT_EQ(list.header_row, "gone,cat");
  EXPECT_EQ(list.items.size(), 2u) << "without rows of blanks";
  EXPECT_EQ(parse_labels("a.jpg,dog\n", "l.csv", "").header_row, "");
}

TEST(PackLabels, OfATableAreNoneWhereItHasNoRow) {
  expect_error([] { parse_labels("\n", "l.csv", ""); }, "l.csv: no row \"path,label\" | one picture a line");
  expect_error([] { parse_labels("file,label\n", "l.csv", ""); },
               "l.csv: no row \"path,label\" behind the names of the columns, file,label");
}

}  // namespace
}  // namespace dtrain::data
