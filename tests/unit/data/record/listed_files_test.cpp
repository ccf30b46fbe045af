#include <gtest/gtest.h>

#include <dtrain/data/record.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

using Names = std::vector<std::string>;

void write_with_ids(const Path& rec, const std::vector<std::uint64_t>& ids) {
  RecordWriter writer(rec);
  for (const std::uint64_t id : ids) writer.add(id, 1, bytes_of("payload"));
  writer.finish();
}

TEST(ListedFiles, AreThoseOfTheRowsBesideTheRecords) {
  TemporaryFolder folder;
  write_with_ids(folder / "a.rec", {7, 5});
  write_with_ids(folder / "b.rec", {1});
  write_with_ids(folder / "c.rec", {3});
  write_file_atomic(folder / "a.lst", "7\t0.000000\tcat/1.jpg\n5\t1.000000\t2.000000\tdog, old/2.jpg\n");
  write_file_atomic(folder / "c.lst", "3\t0\tlast.png\r\n");
  const RecordSet set({folder / "a.rec", folder / "b.rec", folder / "c.rec"});
  EXPECT_EQ(listed_files(set), (Names{"cat/1.jpg", "dog, old/2.jpg", "", "last.png"}));
}

TEST(ListedFiles, AreUnknownWhereTheRowsAreOfOtherRecords) {
  TemporaryFolder folder;
  write_with_ids(folder / "a.rec", {7, 5});
  const RecordSet set(std::vector<Path>{folder / "a.rec"});
  for (const char* list : {"7\t0\t1.jpg\n", "7\t0\t1.jpg\n6\t1\t2.jpg\n", "text"}) {
    write_file_atomic(folder / "a.lst", list);
    EXPECT_EQ(listed_files(set), (Names{"", ""})) << list;
  }
}

}  // namespace
}  // namespace dtrain::data
