#include <gtest/gtest.h>

#include <dtrain/base/tar.hpp>

namespace dtrain {
namespace {

TEST(Tar, FillsBlocks) {
  EXPECT_EQ(tar_header({.name = "a", .size = 1}).size(), 512u);
  EXPECT_EQ(tar_padding(0).size(), 0u);
  EXPECT_EQ(tar_padding(512).size(), 0u);
  EXPECT_EQ(tar_padding(513).size(), 511u);
  EXPECT_EQ(tar_end(), std::string(1024, '\0'));
}

TEST(Tar, WritesSizesAndModesInOctal) {
  const std::string header = tar_header({.name = "train.sh", .size = 83, .mode = 0755});
  EXPECT_EQ(header.substr(100, 8), std::string("0000755\0", 8));
  EXPECT_EQ(header.substr(124, 12), std::string("00000000123\0", 12));
  EXPECT_EQ(header[156], '0');
}

TEST(Tar, MarksFolders) {
  const std::string header = tar_header({.name = "photos", .folder = true});
  EXPECT_EQ(header.substr(0, 8), std::string("photos/\0", 8));
  EXPECT_EQ(header[156], '5');
}

TEST(Tar, PutsLongNamesIntoRecords) {
  const std::string name(101, 'n'), fits(100, 'n');
  EXPECT_EQ(tar_header({.name = fits}).size(), 512u);
  const std::string header = tar_header({.name = name});
  ASSERT_EQ(header.size(), 3 * 512u);
  EXPECT_EQ(header.substr(512, 111), "111 path=" + name + "\n");
}

TEST(Tar, PutsSizesOfTwelveOctalDigitsIntoRecords) {
  EXPECT_EQ(tar_header({.name = "large", .size = (std::uint64_t{1} << 33) - 1}).size(), 512u);
  const std::string header = tar_header({.name = "large", .size = std::uint64_t{1} << 33});
  ASSERT_EQ(header.size(), 3 * 512u);
  EXPECT_EQ(header.substr(512, 19), "19 size=8589934592\n");
}

}  // namespace
}  // namespace dtrain
