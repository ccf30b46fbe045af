#include <dtrain/base/link_free_folder.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/temporary_folder.hpp"

namespace dtrain {
namespace {

TEST(LinkFreeFolder, HasRegularFilesBelowItAlone) {
  const TemporaryFolder scratch;
  const std::string top = (scratch / "top").string(), inside = top + "/a/b";
  make_folder(inside);
  write_file_atomic(inside + "/file", "text");
  write_file_atomic(scratch / "other", "other");
  std::filesystem::create_symlink("file", inside + "/link");
  std::filesystem::create_directory_symlink("b", top + "/a/c");
  ASSERT_EQ(::mkfifo((inside + "/pipe").c_str(), 0600), 0);
  const LinkFreeFolder folder(top);
  EXPECT_EQ(folder.read(inside + "/file", 1, 2), "ex");
  EXPECT_EQ(folder.read(inside + "/file", 9, 2), "");
  EXPECT_EQ(folder.status(inside + "/file")->st_size, 4);
  const std::vector<ListedFile> listed = folder.list(inside, 10);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].name, "file");
  EXPECT_EQ(listed[0].size, 4u);
  EXPECT_TRUE(folder.list(inside, 0).empty());
  EXPECT_TRUE(folder.list(top + "/a/c", 10).empty());
  for (const std::string& path : {inside + "/link", inside + "/pipe", inside + "/none", inside + "/file/x", inside,
                                  top + "/a/c/file", top, top + "/../other", (scratch / "other").string(), top + "2"}) {
    EXPECT_EQ(folder.read(path, 0, 10), std::nullopt) << path;
    EXPECT_FALSE(folder.status(path)) << path;
  }
}

TEST(LinkFreeFolder, MayItselfBeALink) {
  const TemporaryFolder scratch;
  make_folder(scratch / "disk");
  write_file_atomic(scratch / "disk/file", "text");
  std::filesystem::create_directory_symlink("disk", scratch / "named");
  EXPECT_EQ(LinkFreeFolder(scratch / "named").read((scratch / "named/file").string(), 0, 10), "text");
  EXPECT_EQ(LinkFreeFolder(scratch / "none").read((scratch / "none/file").string(), 0, 10), std::nullopt);
  std::filesystem::create_symlink("loop", scratch / "loop");
  EXPECT_THROW(LinkFreeFolder(scratch / "loop").read((scratch / "loop/file").string(), 0, 10), Error);
}

TEST(LinkFreeFolder, MayBeTheWholeMachine) {
  const TemporaryFolder scratch;
  write_file_atomic(scratch / "file", "text");
  const std::string folder = std::filesystem::canonical(scratch.path()).string();
  EXPECT_EQ(LinkFreeFolder("/").read(folder + "//./file", 0, 10), "text");
}

}  // namespace
}  // namespace dtrain
