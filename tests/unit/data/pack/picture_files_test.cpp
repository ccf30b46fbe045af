#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/picture_files.hpp>

#include "common/far_settings.hpp"
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
  EXPECT_EQ(find_pictures((folder / "a").string()).files,
            (Paths{folder / "a/9.txt", folder / "a/10", folder / "a/b/one.jpg", folder / "a/b/two"}));
  EXPECT_EQ(find_pictures((folder / "a/b/?[nw]*").string()).files, (Paths{folder / "a/b/one.jpg", folder / "a/b/two"}));
  EXPECT_EQ(find_pictures((folder / "a/b/one.jpg").string()).files, (Paths{folder / "a/b/one.jpg"}));
}

TEST(FindPictures, KeepsPicturesOfAKindThatIsNotRead) {
  TemporaryFolder folder;
  make_folder(folder / "a");
  for (const char* name : {"a/1.gif", "a/2.HEIC", "a/._3.gif", "a/4.txt"}) write_file_atomic(folder / name, "GIF89a");
  EXPECT_EQ(find_pictures((folder / "a").string()).files, (Paths{folder / "a/1.gif", folder / "a/2.HEIC"}));
}

TEST(FindPictures, PrefersAFileToThePatternOfItsName) {
  TemporaryFolder folder;
  write_file_atomic(folder / "p[1].png", picture());
  write_file_atomic(folder / "p1.png", picture());
  EXPECT_EQ(find_pictures((folder / "p[1].png").string()).files, (Paths{folder / "p[1].png"}));
}

// Root may read every folder; a thread that gave up its capabilities may not, and the other threads keep theirs.
template <typename Act>
void as_an_ordinary_user(const Act& act) {
  std::jthread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const std::array<__user_cap_data_struct, 2> none{};
    ASSERT_EQ(::syscall(SYS_capset, &header, none.data()), 0);
    act();
  }).join();
}

TEST(FindPictures, GoesOnBesideAFolderThatCannotBeListed) {
  TemporaryFolder folder;
  for (const char* name : {"a/lost", "a/then"}) make_folder(folder / name);
  write_file_atomic(folder / "a/then/1.png", picture());
  std::filesystem::permissions(folder / "a/lost", std::filesystem::perms::none);
  as_an_ordinary_user([&] {
    const FoundPictures found = find_pictures((folder / "a").string());
    EXPECT_EQ(found.files, (Paths{folder / "a/then/1.png"}));
    EXPECT_EQ(found.problems,
              std::vector<std::string>{(folder / "a/lost").string() + ": cannot list the folder: Permission denied"});
    EXPECT_EQ(find_pictures((folder / "a/lost").string()).problems, found.problems);
  });
  std::filesystem::permissions(folder / "a/lost", std::filesystem::perms::owner_all);
}

TEST(FindPictures, FollowsLinksButNotBack) {
  TemporaryFolder folder;
  make_folder(folder / "photos/cat");
  make_folder(folder / "linked");
  write_file_atomic(folder / "photos/cat/1.png", picture());
  std::filesystem::create_directory_symlink(folder / "photos/cat", folder / "linked/cat");
  std::filesystem::create_directory_symlink(folder / "photos", folder / "photos/cat/back");
  write_file_atomic(folder / "beside.png", picture());
  std::filesystem::create_directory_symlink(folder.path(), folder / "linked/out");
  EXPECT_EQ(find_pictures((folder / "photos").string()).files, (Paths{folder / "photos/cat/1.png"}));
  EXPECT_EQ(find_pictures((folder / "linked").string()).files, (Paths{folder / "linked/cat/1.png"}));
}

TEST(FindPictures, NamesPicturesWhoseLinkLeadsNowhere) {
  TemporaryFolder folder;
  make_folder(folder / "a");
  write_file_atomic(folder / "a/1.png", picture());
  for (const char* name : {"a/2.jpg", "a/._2.jpg", "a/notes"})
    std::filesystem::create_symlink(folder / "gone", folder / name);
  const std::vector<std::string> problem{(folder / "a/2.jpg").string() + ": the link leads nowhere"};
  for (const char* spec : {"a", "a/*"}) {
    const FoundPictures found = find_pictures((folder / spec).string());
    EXPECT_EQ(found.files, (Paths{folder / "a/1.png"})) << spec;
    EXPECT_EQ(found.problems, problem) << spec;
  }
  expect_error([&] { (void)find_pictures((folder / "a/2.jpg").string()); }, problem.front());
  std::filesystem::remove(folder / "a/1.png");
  EXPECT_EQ(find_pictures((folder / "a").string()).problems, problem) << "of a folder without other pictures";
}

TEST(ReadPicture, SaysThatAFileIsEmpty) {
  TemporaryFolder folder;
  write_file_atomic(folder / "1.jpg", "");
  expect_error([&] { (void)read_picture(folder / "1.jpg"); }, "1.jpg: the file is empty");
}

// Predictions of the other pictures go on beside what is an Error of one of them.
TEST(ReadPicture, SaysThatAFileCannotBeReached) {
  TemporaryFolder folder;
  make_folder(folder / "a");
  write_file_atomic(folder / "a/1.png", picture());
  std::filesystem::permissions(folder / "a", std::filesystem::perms::owner_read);
  as_an_ordinary_user([&] {
    ASSERT_EQ(find_pictures((folder / "a").string()).files, (Paths{folder / "a/1.png"}));
    expect_error([&] { (void)read_picture(folder / "a/1.png"); }, "1.png: Permission denied");
  });
  std::filesystem::permissions(folder / "a", std::filesystem::perms::owner_all);
  expect_error([&] { (void)read_picture(folder / "a"); }, "/a: is no file");
  expect_error([&] { (void)read_picture(folder / "2.png"); }, "2.png: No such file");
}

TEST(FindPictures, TakesAFolderOfABucketWithAndWithoutASlash) {
  const net::TestServer server("s3_server.py");
  const auto store = std::make_shared<net::ObjectStore>(far_settings(server));
  const std::string base = "s3://far/plain/";
  for (const char* name : {"tree/1.png", "tree/b/2.png", "tree/notes.txt", "tree2/3.png", "bare"})
    store->put(base + name, bytes_of("x"));
  for (const char* name : {"tree", "tree/"})
    EXPECT_EQ(find_pictures(base + name, store).files, (Paths{base + "tree/1.png", base + "tree/b/2.png"})) << name;
  for (const char* name : {"bare", "none.png"})
    EXPECT_EQ(find_pictures(base + name, store).files, (Paths{base + name})) << name;
  for (const char* bucket : {"s3://far", "s3://far/"}) EXPECT_EQ(find_pictures(bucket, store).files.size(), 3u);
  EXPECT_THROW((void)find_pictures(base + "none", store), DataError);
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

TEST(CanAddFile, IsTrueForNamesThatStayBelowTheFolder) {
  for (const char* name : {"cat/1.png", "a/b/1.png", "..cat/1.png", "cat../1.png"})
    EXPECT_TRUE(can_add_file(name)) << name;
  for (const char* name : {"/etc/x/1.png", "../x/1.png", "a/../../x/1.png", ""})
    EXPECT_FALSE(can_add_file(name)) << name;
}

}  // namespace
}  // namespace dtrain::data
