#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/picture_files.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

using Paths = std::vector<Path>;

std::string picture() { return encode_image({1, 1, 1, {7}}, Encoding::png); }

TEST(FindPictures, LooksAtTheContentOfFilesInFolders) {
  TemporaryFolder folder;
  make_folder(folder / "a/b");
  write_file_atomic(folder / "a/10", picture());
  write_file_atomic(folder / "a/9.txt", picture());
  write_file_atomic(folder / "a/b/one.jpg", "text");
  write_file_atomic(folder / "a/b/._one.jpg", "of macOS");
  write_file_atomic(folder / "a/b/notes", "text");
  write_file_atomic(folder / "a/b/two", picture());
  EXPECT_EQ(find_pictures((folder / "a").string()),
            (Paths{folder / "a/9.txt", folder / "a/10", folder / "a/b/one.jpg", folder / "a/b/two"}));
  EXPECT_EQ(find_pictures((folder / "a/b/?[nw]*").string()), (Paths{folder / "a/b/one.jpg", folder / "a/b/two"}));
  EXPECT_EQ(find_pictures((folder / "a/b/one.jpg").string()), (Paths{folder / "a/b/one.jpg"}));
}

TEST(FindPictures, PrefersAFileToThePatternOfItsName) {
  TemporaryFolder folder;
  write_file_atomic(folder / "p[1].png", picture());
  write_file_atomic(folder / "p1.png", picture());
  EXPECT_EQ(find_pictures((folder / "p[1].png").string()), (Paths{folder / "p[1].png"}));
}

TEST(FindPictures, RefusesWhatIsNotThere) {
  TemporaryFolder folder;
  EXPECT_THROW((void)find_pictures((folder / "none").string()), DataError);
  EXPECT_THROW((void)find_pictures((folder / "*.png").string()), DataError);
  EXPECT_THROW((void)find_pictures((folder / ".").string()), DataError);  // an empty folder
  EXPECT_THROW((void)find_pictures(""), UsageError);
}

TEST(AddNewFile, NeverOverwrites) {
  TemporaryFolder folder;
  const Path root = folder / "out";
  EXPECT_EQ(add_new_file(root, "cat/1.jpg", "one"), root / "cat/1.jpg");
  EXPECT_EQ(add_new_file(root, "cat/1.jpg", "one"), root / "cat/1.jpg");
  EXPECT_EQ(add_new_file(root, "cat/1.jpg", "two"), root / "cat/1-2.jpg");
  EXPECT_EQ(read_file(root / "cat/1.jpg"), "one");
  std::filesystem::create_symlink(folder / "elsewhere", root / "cat/link");
  EXPECT_EQ(add_new_file(root, "cat/link", "three"), root / "cat/link-2");
  EXPECT_FALSE(std::filesystem::exists(folder / "elsewhere"));
  EXPECT_THROW((void)add_new_file(root, "../1.jpg", "one"), DataError);
}

}  // namespace
}  // namespace dtrain::data
