#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include <dtrain/base/hash.hpp>
#include <dtrain/train/export.hpp>
#include <dtrain/train/weights.hpp>

#include "common/far_settings.hpp"
#include "common/set_variable.hpp"
#include "data/temporary_folder.hpp"
#include "train/small_checkpoint.hpp"
#include "weights/far_weights.hpp"

namespace dtrain::train {
namespace {

using data::expect_error;

class FarCheckpoints : public testing::Test {
 protected:
  FarCheckpoints() { store = std::make_shared<net::ObjectStore>(far_settings(*server)); }
  static void SetUpTestSuite() { server = std::make_unique<net::TestServer>("s3_server.py"); }
  static void TearDownTestSuite() { server.reset(); }
  // Every test has a prefix of its own.
  static Path prefix() {
    return std::string("s3://bucket/") + testing::UnitTest::GetInstance()->current_test_info()->name() + "/r8";
  }
  std::string content(const std::string& ending) {
    const std::string url = prefix().string() + ending;
    const net::ObjectState state = store->state(url);
    std::string bytes(state.size, '\0');
    store->read(url, state, 0, std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }
  // The server's list of them, as XML.
  static std::string unfinished_uploads(const std::string& bucket) {
    const net::AwsSettings settings = far_settings(*server);
    return net::AwsClient(net::kS3, settings)
        .call({.endpoint = settings.endpoint_url.substr(0, settings.endpoint_url.size() - 1),
               .path = "/" + bucket + "/",
               .query = {{"uploads", ""}},
               .region = "us-east-1"})
        .body;
  }

  static inline std::unique_ptr<net::TestServer> server;
  SharedStore store;
};

TEST_F(FarCheckpoints, HoldTheWholeState) {
  const Checkpoint saved = small_checkpoint();
  EXPECT_EQ(save_checkpoint({prefix(), 1}, saved, store), prefix().string() + "-0001.safetensors");
  EXPECT_EQ(state_sha256(load_checkpoint(prefix(), 1, {}, {}, store)), state_sha256(saved));
}

TEST_F(FarCheckpoints, GetTheEvaluationThatWasDue) {
  Checkpoint saved = small_checkpoint();
  saved.best.is_due = true;
  save_checkpoint({prefix(), 1}, saved, store);
  save_evaluation({prefix(), 1}, {.accuracy = 0.5, .epoch = 1}, store);
  const Checkpoint loaded = load_checkpoint(prefix(), 1, {}, {}, store);
  EXPECT_EQ(loaded.best, (BestEpoch{.accuracy = 0.5, .epoch = 1}));
  EXPECT_EQ(state_sha256(loaded), state_sha256(saved));
  EXPECT_NO_THROW(save_evaluation({prefix(), 2}, {}, store)) << "there is none";
}

TEST_F(FarCheckpoints, OfAWebServerAreNamedByTheirFile) {
  expect_error<UsageError>([&] { list_checkpoints("https://host/m/r8", store); },
                           "name the .json file of one, such as https://host/m/r8-0001.json");
}

TEST_F(FarCheckpoints, AreWeightsOnlyWithTheirHash) {
  const TemporaryFolder folder;
  const char* const before = ::getenv("XDG_CACHE_HOME");
  const std::string kept = before ? before : "";
  ::setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  save_checkpoint({prefix(), 1}, small_checkpoint(), store);
  const std::string url = prefix().string() + "-0001.safetensors", whole = content("-0001.safetensors");
  const std::string hash = sha256_hex(bytes_of(whole));
  expect_error<UsageError>([&] { weights_on_this_machine(url, store); }, "weights from a URL need their hash");
  expect_error<DataError>([&] { weights_on_this_machine(url + "#sha256=" + std::string(64, '0'), store); },
                          "has the SHA-256 " + hash);
  const Path copy = weights_on_this_machine(url + "#sha256=" + hash, store);
  EXPECT_TRUE(read_file(copy) == whole);
  store->remove(url);
  EXPECT_EQ(weights_on_this_machine(url + "#sha256=" + hash, store), copy);  // it is not fetched again
  before ? ::setenv("XDG_CACHE_HOME", kept.c_str(), 1) : ::unsetenv("XDG_CACHE_HOME");
}

// The query of a URL may be a signature: it is no part of a file's name, and no message shows it.
TEST_F(FarCheckpoints, AreWeightsBehindAUrlWithASignature) {
  const TemporaryFolder folder;
  const SetVariable cache("XDG_CACHE_HOME", folder.path().string());
  const std::string whole = "not read as tensors";
  store->put("s3://public/plain/w.pt", bytes_of(whole));
  const std::string url = server->url("public/plain/w.pt?X-Amz-Signature=" + std::string(300, 'f') + "/hidden");
  const Path copy = weights_on_this_machine(url + "#sha256=" + sha256_hex(bytes_of(whole)), store);
  EXPECT_EQ(copy.filename(), "w.pt");
  EXPECT_EQ(read_file(copy), whole);
  try {
    weights_on_this_machine(url, store);
    FAIL() << "it has no hash";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), server->url("public/plain/w.pt") + ": weights from a URL need their hash");
    EXPECT_EQ(error.hint().find("Signature"), std::string::npos);
  }
}

// As the workers of one host do.
TEST_F(FarCheckpoints, AreWeightsForManyThatBeginAtOnce) {
  const TemporaryFolder folder;
  const SetVariable cache("XDG_CACHE_HOME", folder.path().string());
  const std::string url = "s3://bucket/slow/weights.safetensors", whole = "not read as tensors";
  store->put(url, bytes_of(whole));
  const std::string place = url + "#sha256=" + sha256_hex(bytes_of(whole));
  std::vector<std::jthread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] { EXPECT_NO_THROW(EXPECT_EQ(read_file(weights_on_this_machine(place, store)), whole)); });
  }
}

// A process that was stopped keeps its lock; one that goes on changes its files.
TEST_F(FarCheckpoints, AreWeightsForWhichAWaitEndsWithoutProgress) {
  const TemporaryFolder folder;
  const SetVariable cache("XDG_CACHE_HOME", folder.path().string());
  const std::string whole = "not read as tensors", hash = sha256_hex(bytes_of(whole));
  const std::string url = prefix().string() + "/w.pt", place = url + "#sha256=" + hash;
  store->put(url, bytes_of(whole));
  const Path weights = folder / "dtrain/weights" / hash, lock = weights.string() + ".lock";
  std::filesystem::create_directories(weights);
  FileDescriptor held(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  std::vector<std::string> told;
  const DownloadWait wait{.tell = [&](const std::string& line) { told.push_back(line); },
                          .quiet = std::chrono::seconds(1)};
  expect_error<Error>([&] { weights_on_this_machine(place, store, wait); }, "has downloaded nothing of it");
  EXPECT_EQ(told, std::vector<std::string>{"Waiting for another process that downloads " + url + " and holds " +
                                           lock.string()});
  std::jthread other([&] {
    for (int i = 0; i < 40; ++i) {
      std::ofstream(weights / "w.pt.download.part", std::ios::app) << 'x';
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    held = FileDescriptor();
  });
  EXPECT_EQ(read_file(weights_on_this_machine(place, store, wait)), whole);
}

// The environment leads to no server, and has no credentials.
TEST_F(FarCheckpoints, AreWeightsThroughTheStoreOfARun) {
  const TemporaryFolder folder;
  const SetVariable cache("XDG_CACHE_HOME", folder.path().string());
  save_checkpoint({prefix(), 1}, small_checkpoint(), store);
  const std::string hash = sha256_hex(bytes_of(content("-0001.safetensors")));
  const Path place = prefix().string() + "-0001.safetensors#sha256=" + hash;
  EXPECT_TRUE(preprocessing_of_weights(place, store).is_null());
  std::filesystem::remove_all(folder.path() / "dtrain");
  const StartingWeights start = load_weights({.file = place, .whole = true, .store = store}, small_graph());
  EXPECT_EQ(start.checkpoint.state.parameters, small_checkpoint().state.parameters);
}

TEST_F(FarCheckpoints, AreTriedByAnObjectThatIsRemovedAgain) {
  try_prefix(prefix(), store);
  EXPECT_FALSE(store->find(prefix().string() + ".trial"));
  expect_error<RemoteError>([&] { try_prefix("s3://bucket/denied_put/r8", store); }, "r8.trial: AccessDenied");
  EXPECT_NO_THROW(try_prefix("s3://bucket/denied_removal/r8", store));
}

TEST_F(FarCheckpoints, AreTheSameFilesAsInAFolder) {
  const TemporaryFolder folder;
  save_checkpoint({folder / "r8", 1}, small_checkpoint());
  save_checkpoint({prefix(), 1}, small_checkpoint(), store);
  for (const char* ending : {"-0001.json", "-0001.safetensors"}) {
    EXPECT_TRUE(content(ending) == read_file((folder / "r8").string() + ending)) << ending;
  }
}

TEST_F(FarCheckpoints, AreListedNewestFirstOnceTheyAreComplete) {
  EXPECT_TRUE(list_checkpoints(prefix(), store).empty());
  save_checkpoint({prefix(), 1}, small_checkpoint(), store);
  save_checkpoint({prefix(), 1, 30}, small_checkpoint(), store);
  save_checkpoint({prefix(), 2}, small_checkpoint(), store);
  store->remove(prefix().string() + "-0002.json");
  const auto names = list_checkpoints(prefix(), store);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].stem(), prefix().string() + "-0001-step00000030");
}

TEST_F(FarCheckpoints, OfOtherFoldersWhoseNamesBeginAlikeAreNotListed) {
  const std::string backup = prefix().string() + "-backup/r8";
  save_checkpoint({prefix(), 2}, small_checkpoint(), store);
  save_checkpoint({backup, 1}, small_checkpoint(), store);
  store->put(backup + "-0001.params", bytes_of("x"));
  const auto names = list_checkpoints(prefix(), store);
  ASSERT_EQ(names.size(), 1u);
  EXPECT_EQ(names[0].epoch, 2u);
  EXPECT_TRUE(list_mxnet(prefix(), store).epochs.empty());
}

TEST_F(FarCheckpoints, AreNotReadAsLargeAsTheServerSays) {
  const Path boasting = "s3://bucket/boasts/r8";
  save_checkpoint({boasting, 1}, small_checkpoint(), store);
  expect_error([&] { load_checkpoint(boasting, 1, {}, {}, store); }, "r8-0001.json: has 300000000000 bytes");
}

// A newer one takes its place, so that no upload of this name uses what is left.
TEST_F(FarCheckpoints, LeaveNoPartsWhenTheServerFailsAtTheEnd) {
  net::ObjectLimits limits;
  limits.part_size = 256;
  limits.tries.attempts = 2;
  limits.tries.first_pause = std::chrono::milliseconds(1);
  const auto small = std::make_shared<net::ObjectStore>(far_settings(*server), limits);
  const Path failing = "s3://failed/fails_twice_at_last/r8";
  expect_error<RemoteError>([&] { save_checkpoint({failing, 1}, small_checkpoint(), small); }, "InternalError");
  EXPECT_EQ(unfinished_uploads("failed").find("<Upload>"), std::string::npos);
  save_checkpoint({failing, 1}, small_checkpoint(), small);  // the third completion of this key succeeds
  EXPECT_EQ(list_checkpoints(failing, small).size(), 1u);
}

TEST_F(FarCheckpoints, ThatAreDamagedOrMissingAreNamed) {
  save_checkpoint({prefix(), 1}, small_checkpoint(), store);
  const std::string data = prefix().string() + "-0001.safetensors";
  store->put(data, bytes_of(content("-0001.safetensors").substr(8)));
  expect_error([&] { load_checkpoint(prefix(), 1, {}, {}, store); }, data + ": damaged: ");
  save_checkpoint({prefix(), 1}, small_checkpoint(), store);
  store->put(data, bytes_of(content("-0001.safetensors") + "too much"));
  expect_error([&] { load_checkpoint(prefix(), 1, {}, {}, store); }, data + ": damaged: ");
  store->remove(data);
  expect_error([&] { load_checkpoint(prefix(), 1, {}, {}, store); }, "is not there, though its manifest is");
  expect_error([&] { load_checkpoint(prefix(), 7, {}, {}, store); }, "r8-0007.json: there is no such checkpoint");
}

TEST_F(FarCheckpoints, AreKnownByTheirManifest) {
  save_checkpoint({prefix(), 1}, small_checkpoint(), store);
  const std::string stem = prefix().string() + "-0001";
  for (const char* ending : {".json", ".safetensors"}) EXPECT_TRUE(is_checkpoint_file(stem + ending, store)) << ending;
  EXPECT_FALSE(is_checkpoint_file(prefix().string() + "-0002.json", store));
  store->put(stem + ".json", bytes_of("{}"));
  EXPECT_FALSE(is_checkpoint_file(stem + ".safetensors", store));
}

TEST_F(FarCheckpoints, AreNoExports) {
  const Checkpoint checkpoint = small_checkpoint();
  const auto send = [&](const std::string& ending, const auto& write) {
    for (const Path& file : export_to(prefix().string() + ending, write, store))
      EXPECT_TRUE(is_export(file, store)) << file;
  };
  send(".onnx", [&](const Path& file) { return export_onnx(checkpoint, file); });
  send(".safetensors", [&](const Path& file) { return export_safetensors(checkpoint, file); });
  send("", [&](const Path& place) { return export_mxnet(checkpoint, place, 2); });
  save_checkpoint({prefix(), 1}, checkpoint, store);
  store->put(prefix().string() + ".rec", bytes_of("records"));
  for (const char* ending : {"-0001.json", "-0001.safetensors", ".rec", ".none"})
    EXPECT_FALSE(is_export(prefix().string() + ending, store)) << ending;
}

TEST_F(FarCheckpoints, GoFromExportsToTheSameBytes) {
  const TemporaryFolder folder;
  const auto write = [](const Path& place) { return export_mxnet(small_checkpoint(), place, 3); };
  const std::vector<Path> here = export_to(folder / "r8", write), there = export_to(prefix(), write, store);
  ASSERT_EQ(there.size(), 2u);
  EXPECT_EQ(there[1], prefix().string() + "-0003.params");
  EXPECT_TRUE(content("-0003.params") == read_file(here[1]));
}

}  // namespace
}  // namespace dtrain::train
