#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/labels.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/data/remote.hpp>

#include "common/far_settings.hpp"
#include "common/few_threads.hpp"
#include "common/no_file_locks.hpp"
#include "data/temporary_folder.hpp"
#include "remote/block_cache.hpp"
#include "remote/read_ahead.hpp"
#include "remote/remote_file.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint64_t kMegabyte = 1 << 20;

class Remote : public testing::Test {
 protected:
  Remote() {
    options.store = std::make_shared<net::ObjectStore>(far_settings(*server));
    options.cache_dir = folder.path() / "cache";
    for (std::uint64_t i = 0; i < 3 * kMegabyte; ++i) content += static_cast<char>(i * 7 % 251);
  }
  static void SetUpTestSuite() { server = std::make_unique<net::TestServer>("s3_server.py"); }
  static void TearDownTestSuite() { server.reset(); }

  static std::string url(const std::string& word) {
    return "s3://bucket/" + word + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  std::string read(RemoteFile& file, std::uint64_t offset, std::uint64_t size) {
    std::string bytes(size, '?');
    file.read(offset, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }
  std::vector<Path> blocks() {
    std::vector<Path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(options.cache_dir)) {
      if (entry.is_regular_file() && entry.path().filename() != "lock") found.push_back(entry.path());
    }
    return found;
  }
  std::uint64_t size_of_blocks() {
    std::uint64_t size = 0;
    for (const Path& block : blocks()) size += std::filesystem::file_size(block);
    return size;
  }
  // How many GETs of the object the server saw, below 10.
  int gets_of(const std::string& object) {
    std::string count(1, '?');
    options.store->read(server->url("_count" + object.substr(4)), {.size = 1}, 0,
                        std::as_writable_bytes(std::span(count)));
    return count[0] - '0';
  }
  // A record file of `count` records at the server, with its index.
  std::string records(int count) {
    const Path rec = folder.path() / "local.rec";
    RecordWriter writer(rec);
    for (int i = 0; i < count; ++i) {
      writer.add(static_cast<std::uint64_t>(i), static_cast<float>(i), bytes_of("payload " + std::to_string(i)));
    }
    writer.finish();
    const std::string where = url("plain") + ".rec";
    options.store->put(where, bytes_of(read_file(rec)));
    options.store->put(index_path(where).string(), bytes_of(read_file(index_path(rec))));
    return where;
  }

  static inline std::unique_ptr<net::TestServer> server;
  TemporaryFolder folder;
  RemoteOptions options;
  std::string content;
};

TEST_F(Remote, BytesAreThoseOfTheObjectWhereverTheyBegin) {
  options.store->put(url("plain"), bytes_of(content));
  RemoteFile file(url("plain"), options);
  EXPECT_EQ(file.size(), content.size());
  for (const std::uint64_t begin : {std::uint64_t{0}, kMegabyte - 10, 2 * kMegabyte, 3 * kMegabyte - 100}) {
    EXPECT_EQ(read(file, begin, 100), content.substr(begin, 100));
  }
}

TEST_F(Remote, BytesPastTheEndAreRefused) {
  options.store->put(url("plain"), bytes_of("short"));
  RemoteFile file(url("plain"), options);
  EXPECT_THROW(read(file, 3, 3), DataError);
}

TEST_F(Remote, BlocksAreFetchedOnce) {
  options.store->put(url("plain"), bytes_of(content));
  RemoteFile first(url("plain"), options), second(url("plain"), options);
  read(first, 0, content.size());
  EXPECT_EQ(blocks().size(), 3u);
  options.store->remove(url("plain"));
  EXPECT_TRUE(read(second, 0, content.size()) == content);
}

TEST_F(Remote, ADamagedBlockIsFetchedAgain) {
  options.store->put(url("plain"), bytes_of(content));
  RemoteFile first(url("plain"), options);
  read(first, 0, 10);
  std::fstream(blocks().front(), std::ios::in | std::ios::out | std::ios::binary).seekp(1000) << "damage";
  RemoteFile second(url("plain"), options);
  EXPECT_EQ(read(second, 980, 40), content.substr(980, 40));
}

TEST_F(Remote, ABlockThatIsCutShortIsFetchedAgain) {
  options.store->put(url("plain"), bytes_of(content));
  RemoteFile file(url("plain"), options);
  read(file, 0, 10);
  std::filesystem::resize_file(blocks().front(), 5000);
  EXPECT_EQ(read(file, 4980, 40), content.substr(4980, 40));
}

TEST_F(Remote, AnotherVersionOfAnObjectSharesNoBlocks) {
  options.store->put(url("plain"), bytes_of(content));
  RemoteFile before(url("plain"), options);
  read(before, 0, 10);
  options.store->put(url("plain"), bytes_of(std::string(content.rbegin(), content.rend())));
  RemoteFile after(url("plain"), options);
  EXPECT_EQ(read(after, 0, 10), std::string(content.rbegin(), content.rbegin() + 10));
  try {
    read(before, 2 * kMegabyte, 10);
    ADD_FAILURE() << "two versions were mixed";
  } catch (const DataError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("its ETag was \""), text.npos) << text;
    EXPECT_NE(text.find("now it is " + options.store->state(url("plain")).etag), text.npos) << text;
  }
}

TEST_F(Remote, TheCacheStaysBelowItsLimitAndKeepsWhatWasReadLast) {
  options.cache_size = 7 * kMegabyte;
  for (const char* word : {"one", "two", "three", "four"}) {
    options.store->put(url(word), bytes_of(word + content));
    RemoteFile file(url(word), options);
    read(file, 0, content.size());
  }
  EXPECT_LE(size_of_blocks(), options.cache_size);
  EXPECT_GE(size_of_blocks(), 3 * kMegabyte);
}

TEST_F(Remote, FilesThatAreOpenTogetherShareTheLimit) {
  options.cache_size = 7 * kMegabyte;
  std::vector<std::unique_ptr<RemoteFile>> files;
  for (const char* word : {"one", "two", "three", "four", "five"}) {
    options.store->put(url(word), bytes_of(word + content));
    files.push_back(std::make_unique<RemoteFile>(url(word), options));
    read(*files.back(), 0, content.size());
  }
  EXPECT_LE(size_of_blocks(), options.cache_size);
}

TEST_F(Remote, TheCacheCountsWhatOtherProcessesWrite) {
  constexpr std::uint64_t kLimit = 32 * kMegabyte;
  const std::string block(kMegabyte, 'x');
  BlockCache here(options.cache_dir, kLimit), there(options.cache_dir, kLimit);
  for (std::uint64_t i = 0; i < 40; ++i) {
    here.put({"here", i}, bytes_of(block), {});
    there.put({"there", i}, bytes_of(block), {});
    EXPECT_LE(size_of_blocks(), kLimit + 2 * kMegabyte);
  }
  EXPECT_GE(size_of_blocks(), kLimit / 2);
}

TEST_F(Remote, ASetThatTheCacheCannotHoldIsReadWithoutIt) {
  const std::string where = records(100);
  const std::uint64_t size = options.store->state(where).size;
  std::vector<std::string> told;
  options.tell = [&](const std::string& text) { told.push_back(text); };
  options.cache_size = 3 * size;
  EXPECT_EQ(RecordSet({where}, options).size(), 100u);
  EXPECT_EQ(blocks().size(), 1u);
  std::filesystem::remove_all(options.cache_dir);
  EXPECT_EQ(RecordSet({where, where, where}, options).size(), 300u);
  EXPECT_FALSE(std::filesystem::exists(options.cache_dir));
  ASSERT_EQ(told.size(), 1u) << "once for all files";
  EXPECT_NE(told[0].find("and 2 more: "), told[0].npos) << told[0];
}

TEST_F(Remote, AFolderThatCannotBeMadeIsToldOnceAndDoneWithout) {
  options.store->put(url("plain"), bytes_of(content));
  std::ofstream(options.cache_dir) << "in the way";
  std::vector<std::string> told;
  options.tell = [&](const std::string& text) { told.push_back(text); };
  RemoteFile file(url("plain"), options), again(url("plain"), options);
  EXPECT_TRUE(read(file, 0, content.size()) == content);
  EXPECT_TRUE(read(again, 0, content.size()) == content);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("cache/blocks-1: cannot be written to (Not a directory)"), told[0].npos) << told[0];
}

TEST_F(Remote, AFullCacheIsToldOnceAndDoneWithout) {
  options.store->put(url("plain"), bytes_of(content));
  std::atomic<int> told = 0;
  options.tell = [&](const std::string&) { ++told; };
  RemoteFile file(url("plain"), options);
  // Nothing can be written below a file, as little as on a full disk.
  std::filesystem::remove_all(options.cache_dir / "blocks-1");
  std::ofstream(options.cache_dir / "blocks-1") << "in the way";
  EXPECT_TRUE(read(file, 0, content.size()) == content);
  EXPECT_EQ(told, 1);
}

TEST_F(Remote, ThreadsAndProcessesDoNotFetchABlockTwice) {
  options.store->put(url("slow"), bytes_of(content));
  RemoteFile first(url("slow"), options), second(url("slow"), options);
  std::vector<std::jthread> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([&, i] { EXPECT_EQ(read(i % 2 ? first : second, 0, 10), content.substr(0, 10)); });
  }
  readers.clear();
  EXPECT_EQ(gets_of(url("slow")), 1);
}

TEST_F(Remote, BlocksAreKeptWithoutAWaitOnAFileSystemWithoutLocks) {
  options.cache_size = 7 * kMegabyte;
  const auto words = {"one", "two", "three", "four"};
  for (const char* word : words) options.store->put(url(word), bytes_of(word + content));
  const auto begin = std::chrono::steady_clock::now();
  const bool refused = without_file_locks([&] {
    for (const char* word : words) {
      RemoteFile file(url(word), options);
      EXPECT_TRUE(read(file, 0, content.size()) == (word + content).substr(0, content.size()));
    }
  });
  if (!refused) GTEST_SKIP() << "this kernel filters no system calls";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(25)) << "a wait for a lock takes 30 s";
  EXPECT_LE(size_of_blocks(), options.cache_size);
}

TEST_F(Remote, RecordsAreThoseOfTheLocalFile) {
  const std::string where = records(100);
  const RecordFile file(where, options);
  ASSERT_EQ(file.size(), 100u);
  for (const std::size_t position : {0u, 57u, 99u}) {
    const Record record = file.read(position);
    EXPECT_EQ(record.id, position);
    EXPECT_EQ(text_of(record.payload), "payload " + std::to_string(position));
  }
}

TEST_F(Remote, RecordsWithoutAnIndexAreRefused) {
  options.store->put(url("plain") + ".rec", bytes_of("x"));
  EXPECT_THROW(RecordFile(url("plain") + ".rec", options), DataError);
}

TEST_F(Remote, AnIndexOfAnotherFileIsRefused) {
  const std::string where = records(100);
  options.store->put(index_path(where).string(), bytes_of("0\t0\n1\t999999\n"));
  EXPECT_THROW(RecordFile(where, options), DataError);
}

TEST_F(Remote, AnObjectLargerThanTheCacheIsReadWithoutItUnlessInRuns) {
  std::string told;
  options.tell = [&](const std::string& text) { told = text; };
  options.cache_size = 4 * kMegabyte;
  options.store->put(url("plain"), bytes_of(content));
  RemoteFile alone(url("plain"), options);
  EXPECT_EQ(read(alone, 5, 10), content.substr(5, 10));
  EXPECT_FALSE(std::filesystem::exists(options.cache_dir));
  EXPECT_NE(told.find("setting 'shuffle-block'"), told.npos) << told;
  options.in_runs = true;
  RemoteFile in_runs(url("plain"), options);
  EXPECT_EQ(read(in_runs, 5, 10), content.substr(5, 10));
  EXPECT_EQ(blocks().size(), 1u);
}

TEST_F(Remote, SetsAreFoundByPatternAndPrefix) {
  const std::string where = "s3://bucket/found/" + std::string(1, 'p');
  for (const char* name : {"_10.rec", "_2.rec", "_2.idx", "_x.rec"}) options.store->put(where + name, bytes_of("x"));
  const auto names = [&](const std::string& spec) {
    std::vector<std::string> found;
    for (const Path& file : find_records(spec, options.store)) found.push_back(file.string().substr(where.size()));
    return found;
  };
  EXPECT_EQ(names(where + "_[0-9]*.rec"), (std::vector<std::string>{"_2.rec", "_10.rec"}));
  EXPECT_EQ(names(where + "_2.rec," + where + "_x.rec"), (std::vector<std::string>{"_2.rec", "_x.rec"}));
  EXPECT_THROW(names(where), DataError);  // without _0 and _1
  for (const char* name : {"_0.rec", "_1.rec"}) options.store->put(where + name, bytes_of("x"));
  options.store->remove(where + "_10.rec");
  EXPECT_EQ(names(where), (std::vector<std::string>{"_0.rec", "_1.rec", "_2.rec"}));
  for (const char* name : {"2/p_0.rec", "2/p_7.rec", "_2/p_4.rec"}) options.store->put(where + name, bytes_of("x"));
  EXPECT_EQ(names(where), (std::vector<std::string>{"_0.rec", "_1.rec", "_2.rec"})) << "without those of other folders";
  options.store->put(where + ".rec", bytes_of("x"));
  EXPECT_EQ(names(where), (std::vector<std::string>{".rec"}));
  EXPECT_THROW(names("s3://bucket/none/*.rec"), DataError);
}

TEST_F(Remote, ASetIsWholeWithoutADocumentThatTheServerRefuses) {
  const std::string prefix = url("denied"), document = prefix + ".pack.json";
  for (const char* name : {"_0.rec", "_1.rec"}) options.store->put(prefix + name, bytes_of("x"));
  options.store->put(document, bytes_of(R"({"classes": ["cat"]})"));
  EXPECT_THROW(options.store->content(document, options.store->state(document), net::kLargestDocument), RemoteError);
  const std::vector<Path> files = find_records(prefix, options.store);
  EXPECT_EQ(files.size(), 2u);
  EXPECT_EQ(class_names(files, options.store), std::vector<std::string>());
}

TEST_F(Remote, TheClassesOfShardsAreAskedForOnceASet) {
  const std::string prefix = url("plain"), shard = prefix + "_train_1";
  const std::string name = Path(prefix).filename().string();
  options.store->put(prefix + ".pack.json",
                     bytes_of(R"({"plan": "1f", "classes": ["cat"], "files": [{"file": ")" + name +
                              R"(_train_0.rec"}, {"file": ")" + name + R"(_train_1.rec"}]})"));
  options.store->put(shard + ".pack.json", bytes_of(R"({"classes": ["owl"]})"));
  const std::vector<Path> files{prefix + "_train_0.rec", shard + ".rec"};
  EXPECT_EQ(class_names(files, options.store), std::vector<std::string>{"cat"});
  EXPECT_EQ(gets_of(prefix + ".pack.json"), 1);
  EXPECT_EQ(gets_of(shard + ".pack.json"), 0);
}

TEST_F(Remote, MessagesHoldNoSecretsOfAUrl) {
  records(100);
  std::string damaged = read_file(folder.path() / "local.rec");
  damaged[0] ^= 1;  // the frame of the first record
  options.store->put("s3://public/plain/damaged.rec", bytes_of(damaged));
  std::string told;
  options.tell = [&](const std::string& text) { told += text + "\n"; };
  options.cache_size = 1;
  const Path there = server->url("public/plain/damaged.rec?X-Amz-Signature=hidden");
  const auto tell_error_of = [&](const auto& act) {
    try {
      act();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const DataError& error) {
      told += std::string(error.what()) + "\n" + error.hint() + "\n";
    }
  };
  tell_error_of([&] { RecordSet({there}, options); });
  EXPECT_NE(told.find("damaged.rec: has no damaged.idx beside it"), told.npos) << told;
  for (const char* wrong : {"bad\n", "0\t1\n"}) {
    options.store->put("s3://public/plain/damaged.idx", bytes_of(wrong));
    tell_error_of([&] { RecordSet({there}, options); });
  }
  options.store->put("s3://public/plain/damaged.idx", bytes_of(read_file(folder.path() / "local.idx")));
  const RecordSet set({there}, options);
  told += set.name() + "\n" + set.place(0) + "\n";
  tell_error_of([&] {
    Record record;
    set.read(0, record);
  });
  tell_error_of([&] { read_labels(set, 100, 100); });
  EXPECT_NE(told.find("are too much for a cache"), told.npos) << told;
  EXPECT_NE(told.find("damaged.rec: byte 0: no record begins here"), told.npos) << told;
  EXPECT_EQ(told.find("hidden"), told.npos) << told;
}

TEST(ShownFiles, HoldNoSecretsOfTheirUrls) {
  EXPECT_EQ(shown_files("https://a/x.rec?X-Amz-Signature=hidden,https://u:hidden@b/y.rec,d/z.rec"),
            "https://a/x.rec,https://b/y.rec,d/z.rec");
  EXPECT_EQ(shown_files("d/a,b.rec"), "d/a,b.rec");
}

TEST_F(Remote, RecordsMayBeReadAheadInAnyOrder) {
  const RecordSet set({records(100)}, options);
  for (const std::size_t position : {99u, 0u, 50u}) set.fetch_ahead(position, 1);
  EXPECT_EQ(blocks().size(), 1u);
}

// Ends at all: a constructor that fails while some threads wait for work must not wait for them.
TEST_F(Remote, RecordsAreReadAheadByTheThreadsThatTheSystemGives) {
  const RecordSet set({records(100)}, options);
  std::optional<ReadAhead> ahead;
  const FewThreads few;
  EXPECT_NO_THROW(ahead.emplace(set, options.cache_size));
}

TEST_F(Remote, ABlockIsAskedForOnceARound) {
  const RecordSet set({records(100)}, options);
  set.fetch_ahead(0, 1);
  std::filesystem::remove(blocks().at(0));  // as for room
  set.fetch_ahead(1, 1);
  EXPECT_EQ(blocks().size(), 0u);
  set.fetch_ahead(1, 2);
  EXPECT_EQ(blocks().size(), 1u);
}

}  // namespace
}  // namespace dtrain::data
