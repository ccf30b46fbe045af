#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <dtrain/data/loader.hpp>
#include <dtrain/data/record.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

// `count` records whose payloads are "NAME:0", "NAME:1", ...
Path records(const TemporaryFolder& folder, const std::string& name, unsigned count) {
  const Path rec = folder / (name + ".rec");
  RecordWriter writer(rec);
  for (unsigned id = 0; id < count; ++id) writer.add(id, 1, bytes_of(fmt::format("{}:{}", name, id)));
  writer.finish();
  return rec;
}

std::vector<std::string> found(const TemporaryFolder& folder, const std::string& spec) {
  std::vector<std::string> names;
  for (const Path& file : find_records(spec)) names.push_back(file.lexically_relative(folder.path()).string());
  return names;
}

using Names = std::vector<std::string>;

TEST(RecordSet, GoesOnFromFileToFile) {
  TemporaryFolder folder;
  const RecordSet set({records(folder, "a", 2), records(folder, "b", 3)});
  ASSERT_EQ(set.size(), 5u);
  Record record;
  std::string all;
  for (std::size_t i = 0; i < set.size(); ++i) {
    set.read(i, record);
    all += text_of(record.payload);
    all += ' ';
  }
  EXPECT_EQ(all, "a:0 a:1 b:0 b:1 b:2 ");
  EXPECT_EQ(set.place(3), (folder / "b.rec").string() + ": record 1 at byte 36");
}

TEST(FindRecords, TakesAPrefixInTheOrderOfItsNumbers) {
  TemporaryFolder folder;
  for (int i = 0; i < 11; ++i) records(folder, fmt::format("p_{}", i), 1);
  const Names names = found(folder, folder / "p");
  ASSERT_EQ(names.size(), 11u);
  EXPECT_EQ(names[2], "p_2.rec");
  EXPECT_EQ(names[10], "p_10.rec");
}

TEST(FindRecords, TakesPatternsAndListsAndPlainPrefixes) {
  TemporaryFolder folder;
  for (const char* name : {"p_0", "p_1", "q"}) records(folder, name, 1);
  EXPECT_EQ(found(folder, folder / "p_*.rec"), (Names{"p_0.rec", "p_1.rec"}));
  EXPECT_EQ(found(folder, (folder / "q").string() + "," + (folder / "p_0.rec").string()), (Names{"q.rec", "p_0.rec"}));
}

TEST(FindRecords, SaysWhichPartOfASetIsMissing) {
  TemporaryFolder folder;
  for (const char* name : {"p_0", "p_2"}) records(folder, name, 1);
  expect_error([&] { find_records(folder / "p"); }, "p_1.rec is not there");
  expect_error([&] { find_records(folder / "x"); }, "x: no such file");
  expect_error([&] { find_records(folder / "x*.rec"); }, "no file has such a name");
}

// What malloc gave out and has not got back.
std::size_t bytes_in_use() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(RecordSet, KnowsOfEachRecordInLessThan64Bytes) {
  constexpr std::uint32_t kRecords = 300000;
  TemporaryFolder folder;
  RecordWriter writer(folder / "many.rec");
  for (std::uint32_t id = 0; id < kRecords; ++id) writer.add(id, 0, bytes_of("x"));
  writer.finish();
  const std::size_t before = bytes_in_use();
  const RecordSet set({folder / "many.rec"});
  const auto order = epoch_order(1, 1, kRecords);
  const std::size_t used = bytes_in_use() - before;
  EXPECT_LE(used, 64u * kRecords);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__  // they bring a malloc of their own
  EXPECT_GE(used, 12u * kRecords) << "the measurement misses what it should see";
#endif
}

}  // namespace
}  // namespace dtrain::data
