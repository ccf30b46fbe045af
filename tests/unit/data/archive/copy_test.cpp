#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include <dtrain/data/copy.hpp>

#include "common/far_settings.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

class Copy : public testing::Test {
 protected:
  static void SetUpTestSuite() { server = std::make_unique<net::TestServer>("s3_server.py"); }
  static void TearDownTestSuite() { server.reset(); }

  CopyResult copy(const std::string& from, const std::string& to) {
    return copy_files(store, {.from = from, .to = to});
  }
  std::string at_server(const std::string& url) { return store.content(url, store.state(url), net::kLargestDocument); }

  static inline std::unique_ptr<net::TestServer> server;
  TemporaryFolder folder;
  net::ObjectLimits limits{.tries = {}, .part_size = 64 << 10};
  net::ObjectStore store{far_settings(*server), limits};
};

TEST_F(Copy, LeavesOutWhatIsThereByItsChecksum) {
  const std::string file = folder / "a", url = "s3://bucket/plain/copied";
  write_file_atomic(file, net::server_content());
  EXPECT_EQ(copy(file, url).already_there, 0u);
  EXPECT_EQ(copy(file, url).already_there, 1u);
  EXPECT_EQ(copy(url, file).already_there, 1u);
}

TEST_F(Copy, CopiesAFileOfTheSameSizeWhereNothingSaysThatItIsTheSame) {
  const std::string file = folder / "a", url = "s3://bucket/ignores-part-numbers/copied";
  std::string content = net::server_content();
  write_file_atomic(file, content);
  copy(file, url);
  content[5] ^= 1;
  write_file_atomic(file, content);
  EXPECT_EQ(copy(file, url).already_there, 0u);
  EXPECT_TRUE(at_server(url) == content);
  write_file_atomic(file, net::server_content());
  EXPECT_EQ(copy(url, file).already_there, 0u);
  EXPECT_TRUE(read_file(file) == content);
}

TEST_F(Copy, KeepsTheWholeNameOfAFileAndOfAnObject) {
  write_file_atomic(folder / "is it?.txt", "yes");
  copy(folder / "is it?.txt", "s3://names/in/");
  EXPECT_EQ(at_server("s3://names/in/is it?.txt"), "yes");
  std::filesystem::create_directory(folder / "out");
  copy("s3://names/in/is it?.txt", folder / "out");
  EXPECT_EQ(read_file(folder / "out" / "is it?.txt"), "yes");
}

TEST_F(Copy, TakesABucketForNoObject) {
  store.put("s3://names/in/it", bytes_of("its"));
  write_file_atomic(folder / "a", "of the user");
  for (const std::string from : {"s3://names", "s3://names/"}) {
    for (const std::string& to :
         {(folder / "a").string(), folder.path().string(), std::string("s3://bucket/plain/it")}) {
      expect_error<UsageError>([&] { copy(from, to); }, from + ": names no object");
      expect_error<UsageError>([&] { copy(from, to); }, "write s3://BUCKET/KEY, or copy all that is in the bucket");
    }
  }
  EXPECT_EQ(read_file(folder / "a"), "of the user");
}

TEST_F(Copy, TakesANameForTheFolderAndNotForTheBeginningOfOthers) {
  for (const char* key : {"shapes/a", "shapes/shapes2/a", "shapes2/a"})
    store.put(std::string("s3://beginnings/") + key, bytes_of(key));
  const auto copy_below = [&](const std::string& from) {
    return copy_files(store, {.from = from, .to = folder / "d", .recursive = true}).files;
  };
  EXPECT_EQ(copy_below("s3://beginnings/shapes"), 2u);
  EXPECT_EQ(read_file(folder / "d/shapes2/a"), "shapes/shapes2/a");
  expect_error([&] { copy_below("s3://beginnings/shape"); }, "s3://beginnings/shape: no object is there");
  EXPECT_EQ(copy_below("s3://beginnings/shapes2/a"), 1u);
  EXPECT_EQ(read_file(folder / "d/a"), "shapes2/a");
}

TEST_F(Copy, RefusesObjectsThatCannotBeSideBySideBeforeItCopies) {
  for (const char* key : {"w/dbl", "w//dbl", "v/a", "v/a.b", "v/a/c"})
    store.put(std::string("s3://beside/") + key, bytes_of("1"));
  const auto copy_below = [&](const std::string& from) {
    copy_files(store, {.from = from, .to = folder / "d", .recursive = true});
  };
  expect_error([&] { copy_below("s3://beside/w"); }, "would be the target of both");
  expect_error([&] { copy_below("s3://beside/v"); }, "cannot be a file and a folder");
  EXPECT_FALSE(std::filesystem::exists(folder / "d"));
}

TEST_F(Copy, NamesAFileFromTheWebWithoutItsQuery) {
  store.put("s3://public/in/web.txt", bytes_of("yes"));
  std::vector<std::string> told;
  copy_files(store,
             {.from = server->url("public/in/web.txt?token=secret"),
              .to = folder.path(),
              .progress = [&](std::string_view file, std::uint64_t, std::uint64_t) { told.emplace_back(file); }});
  EXPECT_EQ(read_file(folder / "web.txt"), "yes");
  for (const std::string& file : told) EXPECT_EQ(file, server->url("public/in/web.txt"));
}

TEST_F(Copy, SendsNoFolderOfWhichItWouldLeaveOutAPart) {
  for (const char* name : {"tree/below", "elsewhere"}) make_folder(folder / name);
  write_file_atomic(folder / "tree/below/a", "1");
  write_file_atomic(folder / "elsewhere/b", "2");
  std::filesystem::create_symlink(folder / "elsewhere/b", folder / "tree/link");
  const auto copy_tree = [&] {
    return copy_files(store, {.from = folder / "tree", .to = "s3://bucket/plain/tree", .recursive = true});
  };
  EXPECT_EQ(copy_tree().files, 2u);
  EXPECT_EQ(at_server("s3://bucket/plain/tree/below/a"), "1");
  EXPECT_EQ(at_server("s3://bucket/plain/tree/link"), "2");
  for (const char* target : {"elsewhere", "nowhere"}) {
    std::filesystem::create_symlink(folder / target, folder / "tree/wrong");
    expect_error(copy_tree, "tree/wrong: a link to a folder or to nothing");
    std::filesystem::remove(folder / "tree/wrong");
  }
}

}  // namespace
}  // namespace dtrain::data
