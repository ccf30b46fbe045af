#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include <dtrain/data/image.hpp>
#include <dtrain/data/objects.hpp>
#include <dtrain/data/record.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

// 1,000 records of 8 + 24 + 20 + 12 = 64 bytes each; the label of record i is i % 3.
class VerifyRecords : public testing::Test {
 protected:
  VerifyRecords() : rec(folder / "set.rec") {
    RecordWriter writer(rec);
    for (unsigned i = 0; i < 1000; ++i) {
      const auto value = static_cast<std::uint8_t>(i % 100);
      const Image image{3, 2, 2, std::vector<std::uint8_t>(12, value)};
      writer.add(i, static_cast<float>(i % 3), bytes_of(encode_image(image, Encoding::raw)));
    }
    writer.finish();
  }
  void overwrite(const Path& path, std::size_t at, std::string_view bytes) {
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(static_cast<std::streamoff>(at)) << bytes;
  }
  // The report names one problem, at this record.
  void expect_problem(std::size_t position, std::string_view what) {
    const VerifyReport report = verify_records(rec);
    ASSERT_GE(report.problems.size(), 1u);
    EXPECT_EQ(report.problems[0].position, position);
    EXPECT_EQ(report.problems[0].offset, 64 * position);
    EXPECT_NE(report.problems[0].what.find(what), std::string::npos) << report.problems[0].what;
  }

  TemporaryFolder folder;
  Path rec;
};

TEST_F(VerifyRecords, CountsTheClassesOfAGoodFile) {
  const VerifyReport report = verify_records(rec);
  EXPECT_EQ(report.records, 1000u);
  EXPECT_EQ(report.class_counts, (std::vector<std::size_t>{334, 333, 333}));
  EXPECT_EQ(report.problem_count, 0u);
}

TEST_F(VerifyRecords, NamesAFlippedPixel) {
  overwrite(rec, 64 * 700 + 60, "x");
  expect_problem(700, "their checksum is wrong");
  EXPECT_EQ(verify_records(rec).problem_count, 1u);
  EXPECT_TRUE(verify_records(rec).problems[0].is_damage);
}

TEST_F(VerifyRecords, GoesOnBehindADamagedFrame) {
  overwrite(rec, 64 * 20, "oops");
  overwrite(rec, 64 * 900 + 60, "x");
  const VerifyReport report = verify_records(rec);
  EXPECT_EQ(report.records, 999u);
  ASSERT_EQ(report.problem_count, 3u);  // the frame, its entry in the .idx, the pixel
  EXPECT_EQ(report.problems[0].what, "no record begins here (magic 0x73706f6f, not 0xced7230a)");
  EXPECT_EQ(report.problems[1].what, "the .idx lists a record here, but none begins here");
  EXPECT_EQ(report.problems[2].offset, 64u * 900);
}

TEST_F(VerifyRecords, NamesATruncatedEnd) {
  std::filesystem::resize_file(rec, 64 * 999 + 30);
  expect_problem(999, "the record has 56 bytes, but the file ends after 22");
}

TEST_F(VerifyRecords, NamesALabelThatIsNoNumber) {
  overwrite(rec, 64 * 5 + 12, std::string("\x00\x00\xc0\x7f", 4));
  expect_problem(5, "the label is nan");
}

TEST_F(VerifyRecords, NamesARecordThatTheIndexLeavesOut) {
  std::string lines = read_file(index_path(rec));
  lines.erase(lines.find("3\t192\n"), 6);
  write_file_atomic(index_path(rec), lines);
  expect_problem(3, "a record begins here that the .idx does not list");
}

TEST_F(VerifyRecords, NamesALineOfTheIndexThatIsNone) {
  write_file_atomic(index_path(rec), "0\t0\nbad\n");
  expect_problem(0, "set.idx: line 2");
}

TEST_F(VerifyRecords, TellsProblemsOfTheIndexApart) {
  overwrite(rec, 64 * 700 + 60, "x");
  write_file_atomic(index_path(rec), "0\t0\n");
  const VerifyReport report = verify_records(rec);
  EXPECT_EQ(report.index_problems, 999u);
  EXPECT_EQ(report.problem_count, 1000u);
}

TEST_F(VerifyRecords, ListsTheFirstProblemsAndCountsAll) {
  for (std::size_t i = 0; i < 50; ++i) overwrite(rec, 64 * 10 * i + 60, "x");
  const VerifyReport report = verify_records(rec, 7);
  EXPECT_EQ(report.problem_count, 50u);
  ASSERT_EQ(report.problems.size(), 7u);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(report.problems[i].position, 10 * i);
}

TEST_F(VerifyRecords, SaysThatAFileIsEmptyOrMissing) {
  std::ofstream(rec, std::ios::trunc);
  expect_problem(0, "the file is empty");
  EXPECT_THROW(verify_records(folder / "other.rec"), Error);
}

TEST_F(VerifyRecords, CountsRecordsOfSeveralLabelsThatAreNoBoxes) {
  EXPECT_EQ(verify_records(rec).several_labels, 0u);
  const std::string picture = encode_image({3, 2, 2, std::vector<std::uint8_t>(12)}, Encoding::raw);
  const Annotation object{.box = {0, 0, 1, 1}};
  const Annotations annotations{2, 2, {object}};
  const std::string block = objects_block(annotations);
  RecordWriter writer(rec);
  writer.add(0, 1, bytes_of(picture));
  for (const unsigned id : {1u, 2u}) writer.add(id, std::vector<float>{1, 2}, bytes_of(picture));
  writer.add(3, detection_labels(annotations, block.size()), bytes_of(picture + block));
  writer.finish();
  const VerifyReport report = verify_records(rec);
  EXPECT_EQ(report.problem_count, 0u);
  EXPECT_EQ(report.several_labels, 2u);
}

TEST_F(VerifyRecords, NamesLabelsThatNoTrainingTakes) {
  const std::string picture = encode_image({3, 2, 2, std::vector<std::uint8_t>(12)}, Encoding::raw);
  const std::vector<std::vector<float>> labels{{-3}, {1.5f}, {1}, {2}, {2, 5, 0, 10, 10, 50, 50}};
  RecordWriter writer(rec);
  for (std::size_t i = 0; i < labels.size(); ++i) writer.add(i, labels[i], bytes_of(picture));
  writer.finish();
  write_file_atomic(folder / "set.pack.json", R"({"classes": ["a", "b"]})");
  std::vector<std::string> found;
  for (const VerifyProblem& problem : verify_records(rec).problems) {
    found.push_back(problem.what);
    EXPECT_FALSE(problem.is_damage) << problem.what;
  }
  EXPECT_EQ(found, (std::vector<std::string>{"the label is -3, and classes are counted from 0",
                                             "the label is 1.5, which is no whole number",
                                             "the label is 2, and 2 classes are named",
                                             "object 0: its box lies outside of the picture; sides are shares of the "
                                             "picture, 0 to 1, not pixels"}));
}

TEST_F(VerifyRecords, KnowsOfDamageBehindTheProblemsThatItLists) {
  const std::string picture = encode_image({3, 2, 2, std::vector<std::uint8_t>(12)}, Encoding::raw);
  RecordWriter writer(rec);
  for (unsigned i = 0; i < 20; ++i) writer.add(i, -1, bytes_of(picture));
  writer.finish();
  EXPECT_FALSE(verify_records(rec, 1).damage.has_value());
  overwrite(rec, 64 * 18 + 60, "x");
  const VerifyReport report = verify_records(rec, 1);
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_FALSE(report.problems[0].is_damage);
  ASSERT_TRUE(report.damage.has_value());
  EXPECT_EQ(report.damage->position, 18u);
}

TEST_F(VerifyRecords, NamesAClassOfABoxThatIsTooLarge) {
  const std::string picture = encode_image({3, 2, 2, std::vector<std::uint8_t>(12)}, Encoding::raw);
  RecordWriter writer(rec);
  writer.add(0, std::vector<float>{2, 5, 2e7f, 0, 0, 1, 1}, bytes_of(picture));
  writer.finish();
  const VerifyReport report = verify_records(rec);
  ASSERT_EQ(report.problems.size(), 1u);
  EXPECT_EQ(report.problems[0].what, "object 0: its class is too large");
  EXPECT_FALSE(report.problems[0].is_damage);
}

TEST_F(VerifyRecords, NamesFaultsOfBoxesAndMasks) {
  const auto write = [&](const Annotations& annotations, bool labels_of_others = false) {
    const std::string block = objects_block(annotations);
    RecordWriter writer(rec);
    auto labels = detection_labels(annotations, block.size());
    if (labels_of_others) labels.back() = 0.75f;
    writer.add(0, labels, bytes_of(encode_image({3, 2, 2, std::vector<std::uint8_t>(12)}, Encoding::raw) + block));
    writer.finish();
    const VerifyReport report = verify_records(rec);
    return report.problems.empty() ? fmt::format("{} objects", report.objects) : report.problems.front().what;
  };
  const Annotation good{.box = {0, 0, 1, 1}}, flat{.box = {0, 0, 0, 1}}, outside{.box = {2, 0, 1, 1}};
  const Annotation unknown{.label = 4, .box = {0, 0, 1, 1}};
  EXPECT_EQ(write({2, 2, {good, unknown}}), "2 objects");
  EXPECT_EQ(write({2, 2, {good, flat}}), "object 1: its box has no area");
  EXPECT_EQ(write({2, 2, {outside, flat}}), "object 0: its box lies outside of the picture; 1 more are bad");
  EXPECT_EQ(write({2, 2, {good}}, true), "its labels and its objects name other boxes");
  write_file_atomic(folder / "set.pack.json", R"({"classes": ["a", "b"]})");
  EXPECT_EQ(write({2, 2, {good, unknown}}), "object 1: its class is 4, and 2 are named");
}

}  // namespace
}  // namespace dtrain::data
