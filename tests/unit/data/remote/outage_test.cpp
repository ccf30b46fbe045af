#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/mutex.hpp>

#include "common/far_settings.hpp"
#include "data/loader/noise_records.hpp"
#include "remote/read_ahead.hpp"

namespace dtrain::data {
namespace {

using namespace std::chrono_literals;

// Records at a server that fails from begin() to end().
class Outage : public testing::Test {
 protected:
  Outage() {
    net::ObjectLimits limits;
    limits.tries.attempts = 1;
    store = std::make_shared<net::ObjectStore>(far_settings(*server), limits);
    store->put(far, bytes_of(read_file(near)));
    store->put(index_path(far).string(), bytes_of(read_file(index_path(near))));
    chosen.remote.store = store;
    chosen.remote.without_cache = true;
    chosen.remote.tell = [this](const std::string& text) {
      const MutexLock lock(mutex);
      told.push_back(text);
    };
  }
  ~Outage() override { end(); }
  static void SetUpTestSuite() { server = std::make_unique<net::TestServer>("s3_server.py"); }
  static void TearDownTestSuite() { server.reset(); }

  void begin() { store->put("s3://bucket/outage", bytes_of("x")); }
  void end() { store->remove("s3://bucket/outage"); }
  bool has_told() {
    const MutexLock lock(mutex);
    return !told.empty();
  }

  static inline std::unique_ptr<net::TestServer> server;
  const TemporaryFolder folder;
  const Path near = write_records(folder, 20);
  const std::string far =
      std::string("s3://bucket/away/") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".rec";
  std::shared_ptr<net::ObjectStore> store;
  LoaderOptions chosen = options();
  Mutex mutex;
  std::vector<std::string> told DTRAIN_GUARDED_BY(mutex);
};

TEST_F(Outage, IsOutlastedWithOneLine) {
  chosen.patience = 600s;
  Loader loader(far, chosen);
  begin();
  const std::jthread ending([this] {
    const auto patience = std::chrono::steady_clock::now() + 60s;
    while (!has_told() && std::chrono::steady_clock::now() < patience) std::this_thread::sleep_for(20ms);
    std::this_thread::sleep_for(1500ms);  // others fail meanwhile, and again
    end();
  });
  loader.start(1, slices_of(20, 5));
  EXPECT_TRUE(drain(loader, 108) == load(near, options(), 1, 5));
  const MutexLock lock(mutex);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("InternalError"), told[0].npos) << told[0];
  EXPECT_NE(told[0].find("the run waits for its data"), told[0].npos) << told[0];
}

TEST_F(Outage, EndsWhatIsNotToOutlastIt) {
  Loader loader(far, chosen);
  begin();
  loader.start(1, slices_of(20, 5));
  EXPECT_THROW((void)loader.next(), RemoteError);
  const MutexLock lock(mutex);
  EXPECT_TRUE(told.empty());
}

// Generations that end and begin meanwhile begin neither the patience anew nor an outage that is told again.
TEST_F(Outage, EndsARunThatBeginsAgainAndAgain) {
  chosen.patience = 3s;
  Loader loader(far, chosen);
  begin();
  const auto over = std::chrono::steady_clock::now() + chosen.patience + 1s;
  for (std::uint64_t epoch = 1; std::chrono::steady_clock::now() < over; ++epoch) {
    loader.start(epoch, slices_of(20, 5));
    std::this_thread::sleep_for(300ms);
  }
  loader.start(1, slices_of(20, 5));
  EXPECT_THROW((void)loader.next(), RemoteError);
  const MutexLock lock(mutex);
  EXPECT_EQ(told.size(), 1u);
}

TEST_F(Outage, KeepsNoRunThatIsToStop) {
  chosen.patience = 600s;
  chosen.while_waiting = [] { throw PeerLost("the run stops"); };
  Loader loader(far, chosen);
  begin();
  loader.start(1, slices_of(20, 5));
  EXPECT_THROW((void)loader.next(), PeerLost);
}

TEST_F(Outage, DoesNotEndReadingAhead) {
  RemoteOptions remote = chosen.remote;
  remote.without_cache = false;
  remote.cache_dir = folder / "cache";
  const RecordSet set({far}, remote);
  const auto is_cached = [&] {
    const std::filesystem::recursive_directory_iterator files(remote.cache_dir);
    return std::ranges::any_of(files, [](const auto& file) { return file.path().filename() == "0"; });
  };
  std::filesystem::remove_all(remote.cache_dir / "blocks-1");
  begin();
  ReadAhead ahead(set, remote.cache_size);
  ahead.start({0});
  std::this_thread::sleep_for(300ms);
  EXPECT_FALSE(is_cached());
  end();
  const auto patience = std::chrono::steady_clock::now() + 20s;
  while (!is_cached() && std::chrono::steady_clock::now() < patience) std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(is_cached());
}

}  // namespace
}  // namespace dtrain::data
