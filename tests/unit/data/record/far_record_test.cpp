#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include <dtrain/base/error.hpp>
#include <dtrain/data/record.hpp>

#include "common/far_settings.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

TEST(FarRecords, RecordsThatTheIndexLeavesOutAreNotFetched) {
  net::TestServer server("s3_server.py");
  TemporaryFolder folder;
  RecordWriter writer(folder / "local.rec");
  writer.add(0, 0, bytes_of("first"));
  writer.add(1, 1, bytes_of(std::string(20u << 20, 'x')));
  writer.add(2, 2, bytes_of("last"));
  writer.finish();
  const std::string where = "s3://bucket/plain/far-records.rec";
  const RemoteOptions options{.cache_dir = folder / "cache",
                              .store = std::make_shared<net::ObjectStore>(far_settings(server))};
  options.store->put(where, bytes_of(read_file(folder / "local.rec")));
  options.store->put(index_path(where).string(),
                     bytes_of(fmt::format("0\t0\n2\t{}\n", RecordFile(folder / "local.rec").offset(2))));
  const RecordFile file(where, options);
  ASSERT_EQ(file.size(), 2u);
  EXPECT_EQ(text_of(file.read(0).payload), "first");
  EXPECT_EQ(text_of(file.read(1).payload), "last");
  const std::filesystem::recursive_directory_iterator cached(folder / "cache");
  EXPECT_LE(std::ranges::count_if(
                cached, [](const auto& entry) { return entry.is_regular_file() && entry.file_size() >= 1u << 20; }),
            1);
}

TEST(FarRecords, OfAServerWithoutVersionsAreReadWithoutACacheAndThatIsSaid) {
  net::TestServer server("s3_server.py");
  TemporaryFolder folder;
  RecordWriter writer(folder / "local.rec");
  writer.add(0, 0, bytes_of("first"));
  writer.finish();
  std::vector<std::string> told;
  RemoteOptions options{.cache_dir = folder / "cache",
                        .tell = [&](const std::string& text) { told.push_back(text); },
                        .store = std::make_shared<net::ObjectStore>(far_settings(server))};
  const std::string where = "s3://bucket/unversioned/far.rec";
  for (const char* ending : {"rec", "idx"}) {
    options.store->put(Path(where).replace_extension(ending).string(),
                       bytes_of(read_file((folder / "local.").string() + ending)));
  }
  const std::vector<Path> files{where, where};
  EXPECT_EQ(RecordSet(files, options).size(), 2u);
  ASSERT_EQ(told.size(), 1u) << "once for all files";
  EXPECT_NE(told[0].find("far.rec and 1 more: its server gives no ETag"), told[0].npos) << told[0];
}

TEST(FarRecords, AnObjectWithoutAnETagThatChangesBetweenTwoReadsIsAnError) {
  net::TestServer server("s3_server.py");
  net::ObjectStore store(far_settings(server));
  struct Change {
    const char *url, *said;
  };
  const Change changes[]{{"s3://bucket/dated/a", "it was last changed "},
                         {"s3://bucket/unversioned/a", "it had 5 bytes, now it has 6"}};
  for (const Change& change : changes) {
    const std::string url = change.url;
    store.put(url, bytes_of("first"));
    const net::ObjectState pinned = store.state(url);
    std::string read(2, ' ');
    store.read(url, pinned, 0, std::as_writable_bytes(std::span(read)));
    EXPECT_EQ(read, "fi");
    store.put(url, bytes_of(pinned.last_modified.empty() ? "second" : "other"));
    expect_error([&] { store.read(url, pinned, 2, std::as_writable_bytes(std::span(read))); },
                 std::string("was replaced while it was read: ") + change.said);
  }
}

// Each is refused before a server is asked.
TEST(FarRecords, AnIndexIsNoSet) {
  for (const char* list : {"s3://bucket/d/p.lst", "https://h/d/p.lst"})
    expect_error([&] { (void)find_records(list); }, "d/p.lst: is the list of a record file");
  expect_error([&] { (void)find_records("s3://bucket/d/p.pack.json"); }, "says what a set of records holds");
  for (const char* index : {"s3://bucket/d/p.idx", "https://user:hidden@h/d/p.idx?X-Amz-Signature=hidden"}) {
    try {
      find_records(index);
      ADD_FAILURE() << index;
    } catch (const DataError& error) {
      const std::string said = std::string(error.what()) + " " + error.hint();
      EXPECT_NE(said.find("d/p.idx: is the index of a record file"), said.npos) << said;
      EXPECT_TRUE(said.ends_with("d/p.rec")) << said;
      EXPECT_EQ(said.find("hidden"), said.npos) << said;
    }
  }
}

TEST(IndexPath, KeepsTheQueryOfAWebAddress) {
  EXPECT_EQ(index_path("https://h/d/p.rec?sig=a.b/c"), "https://h/d/p.idx?sig=a.b/c");
  EXPECT_EQ(index_path("https://h/d/p.rec"), "https://h/d/p.idx");
  EXPECT_EQ(index_path("s3://b/is it?/p.rec"), "s3://b/is it?/p.idx");
  EXPECT_EQ(index_path("d/p.rec"), "d/p.idx");
}

}  // namespace
}  // namespace dtrain::data
