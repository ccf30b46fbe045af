#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <set>

#include <dtrain/base/hash.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/manifest.hpp"
#include "checkpoint/safetensors.hpp"
#include "data/temporary_folder.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::train {
namespace {

using data::expect_error;

class CheckpointFiles : public testing::Test {
 protected:
  Path prefix() const { return folder_ / "m/r8"; }
  Path file(const char* name) const { return folder_ / "m" / name; }
  void save(std::uint32_t epoch, std::uint32_t numbers = 0) const {
    save_checkpoint({prefix(), epoch}, small_checkpoint(epoch, numbers));
  }
  TemporaryFolder folder_;
};

// Without waiting for the disk.
void overwrite(const Path& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

TEST_F(CheckpointFiles, HoldTheWholeState) {
  const Checkpoint saved = small_checkpoint();
  EXPECT_EQ(save_checkpoint({prefix(), 1}, saved), file("r8-0001.safetensors"));
  const Checkpoint loaded = load_checkpoint(prefix(), 1);
  EXPECT_EQ(loaded.state.parameters, saved.state.parameters);
  EXPECT_EQ(loaded.state.statistics, saved.state.statistics);
  EXPECT_EQ(loaded.state.optimizer, saved.state.optimizer);
  EXPECT_EQ(loaded.state.updates, 7u);
  EXPECT_EQ(loaded.graph.parameters.size(), saved.graph.parameters.size());
  EXPECT_EQ(state_sha256(loaded), state_sha256(saved));
}

// Older versions trained by such schedules.
TEST_F(CheckpointFiles, OfAScheduleThatIsRefusedNowAreRead) {
  Checkpoint saved = small_checkpoint();
  saved.job.schedule = {.kind = nn::ScheduleKind::cosine, .warmup_epochs = 2, .total_epochs = 2};
  save_checkpoint({prefix(), 1}, saved);
  const Checkpoint loaded = load_checkpoint(prefix(), 1);
  EXPECT_EQ(loaded.job.schedule.warmup_epochs, 2);
  EXPECT_EQ(loaded.state.parameters, saved.state.parameters);
}

TEST_F(CheckpointFiles, HoldTheLossScaleOfFloat16Alone) {
  Checkpoint saved = small_checkpoint();
  saved.state.loss_scale = {256, 17};
  for (const char* dtype : {"float16", "float32"}) {
    saved.job.dtype = dtype;
    save_checkpoint({prefix(), 1}, saved);
    const backend::LossScale expected = saved.job.dtype == "float16" ? saved.state.loss_scale : backend::LossScale{};
    const Checkpoint loaded = load_checkpoint(prefix(), 1);
    EXPECT_EQ(loaded.state.loss_scale, expected) << dtype;
    EXPECT_EQ(state_sha256(loaded), state_sha256(saved)) << dtype;
  }
}

TEST_F(CheckpointFiles, HoldWhatAResumedJobMustAgreeOn) {
  Checkpoint saved = small_checkpoint();
  saved.cursor = {3, 17, 3456, 456};
  saved.ramp = {.from = 1, .to = 1.5, .length = 8, .taken = 3};
  saved.epoch_totals = {12.5, 3, 4, 456};
  saved.job.optimizer = {.kind = nn::OptimizerKind::adamw, .momentum = 0.8f};
  saved.job.schedule = {.base = 0.3, .boundaries = {10, 20.5}};
  saved.job.order = {.shuffle_block = 1024, .balanced = true, .repeats = 3};
  saved.job.records = {.sizes = "5a", .contents = "c0"};
  saved.job.worker_batch = 7;
  save_checkpoint({prefix(), 3, 17}, saved);
  const Checkpoint loaded = load_checkpoint_file(file("r8-0003-step00000017.json"));
  EXPECT_EQ(loaded.cursor, saved.cursor);
  EXPECT_EQ(loaded.ramp, saved.ramp);
  EXPECT_EQ(loaded.epoch_totals.loss_sum, 12.5);
  EXPECT_EQ(loaded.epoch_totals.count, 456);
  EXPECT_EQ(loaded.job.seed, 0xfedcba9876543210u);
  EXPECT_EQ(loaded.job.global_batch, 128);
  EXPECT_EQ(loaded.job.worker_batch, 7);
  EXPECT_EQ(loaded.job.logical_shards, 4);
  EXPECT_EQ(loaded.job.optimizer.momentum, 0.8f);
  EXPECT_EQ(loaded.job.schedule.boundaries, saved.job.schedule.boundaries);
  EXPECT_EQ(loaded.job.preprocessing, saved.job.preprocessing);
  EXPECT_EQ(loaded.job.order, saved.job.order);
  EXPECT_EQ(loaded.job.records, saved.job.records);
  const std::string hash = state_sha256(saved);
  saved.job.records = {};
  EXPECT_EQ(state_sha256(saved), hash);
  save_checkpoint({prefix(), 3, 18}, saved);
  EXPECT_EQ(load_checkpoint_file(file("r8-0003-step00000018.json")).job.records, data::RecordOrder{});
}

TEST_F(CheckpointFiles, HoldTheAverageOfTheWeightsAndTheBestEpoch) {
  Checkpoint saved = small_checkpoint();
  const std::string plain = state_sha256(saved);
  saved.state.average = random_floats(saved.graph.parameter_count + saved.graph.statistic_count, 300);
  saved.best = {.accuracy = 0.75, .epoch = 3};
  saved.job.optimizer.average = 0.999f;
  save_checkpoint({prefix(), 4}, saved);
  Checkpoint loaded = load_checkpoint(prefix(), 4);
  EXPECT_EQ(loaded.state.average, saved.state.average);
  EXPECT_EQ(loaded.state.optimizer, saved.state.optimizer);
  EXPECT_EQ(loaded.best, saved.best);
  EXPECT_EQ(loaded.job.optimizer.average, 0.999f);
  EXPECT_EQ(state_sha256(loaded), state_sha256(saved));
  EXPECT_NE(state_sha256(saved), plain);
  EXPECT_EQ(weights_sha256(saved), weights_sha256(small_checkpoint()));

  use_average(loaded);
  std::vector<float> weights = loaded.state.parameters;
  weights.insert(weights.end(), loaded.state.statistics.begin(), loaded.state.statistics.end());
  EXPECT_EQ(weights, saved.state.average);
  EXPECT_TRUE(loaded.state.average.empty());
  EXPECT_TRUE(loaded.state.optimizer.empty());
}

TEST_F(CheckpointFiles, KeepTheBitsOfOddNumbers) {
  Checkpoint saved = small_checkpoint();
  for (std::uint32_t i = 0; i < 4; ++i) saved.state.parameters[i] = std::bit_cast<float>(0x7fc00001u - i * 0x3fffffffu);
  save_checkpoint({prefix(), 1}, saved);
  const auto loaded = load_checkpoint(prefix(), 1).state.parameters;
  EXPECT_EQ(std::memcmp(loaded.data(), saved.state.parameters.data(), loaded.size() * sizeof(float)), 0);
}

TEST_F(CheckpointFiles, AnEmptyOptimizerAndTwoSlotsComeBackAsSuch) {
  Checkpoint saved = small_checkpoint();
  saved.state.optimizer.clear();
  save_checkpoint({prefix(), 1}, saved);
  saved.state.optimizer.resize(2 * saved.state.parameters.size(), 0.25f);
  save_checkpoint({prefix(), 2}, saved);
  EXPECT_TRUE(load_checkpoint(prefix(), 1).state.optimizer.empty());
  EXPECT_EQ(load_checkpoint(prefix(), 2).state.optimizer, saved.state.optimizer);
}

TEST_F(CheckpointFiles, EveryChangedByteIsNoticed) {
  save(1);
  for (const Path& path : {file("r8-0001.safetensors"), file("r8-0001.json")}) {
    const std::string good = read_file(path);
    for (std::size_t at = 0; at < good.size(); at += 19) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 4);
      overwrite(path, bad);
      EXPECT_THROW(load_checkpoint(prefix(), 1), DataError) << path << " byte " << at;
    }
    overwrite(path, good);
  }
  EXPECT_NO_THROW(load_checkpoint(prefix(), 1));
}

TEST_F(CheckpointFiles, TheFirstDamagedTensorIsNamed) {
  save(1);
  const Path path = file("r8-0001.safetensors");
  const auto entries = SafetensorsFile(path).entries();
  std::string content = read_file(path);
  ASSERT_EQ(entries[4].name, "fc1_bias");
  content[entries[4].begin] = static_cast<char>(content[entries[4].begin] ^ 1);
  content[entries[6].begin] = static_cast<char>(content[entries[6].begin] ^ 1);
  overwrite(path, content);
  expect_error([&] { load_checkpoint(prefix(), 1); }, "r8-0001.safetensors: damaged: tensor 'fc1_bias' was changed");
}

TEST_F(CheckpointFiles, MissingShortAndForeignFilesAreNamed) {
  save(1);
  save(2, 9);
  const std::string content = read_file(file("r8-0001.safetensors"));
  overwrite(file("r8-0001.safetensors"), content.substr(0, content.size() - 1));
  expect_error([&] { load_checkpoint(prefix(), 1); }, "bytes in place of");
  overwrite(file("r8-0001.safetensors"), read_file(file("r8-0002.safetensors")));
  expect_error([&] { load_checkpoint(prefix(), 1); }, "tensor 'conv0_weight' was changed");
  std::filesystem::remove(file("r8-0001.safetensors"));
  expect_error([&] { load_checkpoint(prefix(), 1); }, "though its manifest is there");
  expect_error([&] { load_checkpoint(prefix(), 7); }, "r8-0007.json: there is no such checkpoint | the newest is");
  overwrite(file("r8-0003.json"), "{\"schema\":\"dtrain.checkpoint/9\"}");
  expect_error([&] { load_checkpoint_file(file("r8-0003.json")); }, "dtrain.checkpoint/9");
  for (const char* other : {"[]", "{\"schema\":\"dtrain.graph/1\"}"}) {
    overwrite(file("r8-0003.json"), other);
    expect_error([&] { load_checkpoint_file(file("r8-0003.json")); }, "not the manifest of a checkpoint");
  }
}

TEST_F(CheckpointFiles, AreListedNewestFirstAndOnlyWhenComplete) {
  for (std::uint32_t epoch : {1u, 2u, 10000u}) save(epoch);
  save_checkpoint({prefix(), 2, 120}, small_checkpoint());
  for (const char* other :
       {"r8-0003.json", "r8-symbol.json", "r8-1.json", "r8-+001.json", "r80-0001.json", "r8-0002.json.tmp.1"}) {
    overwrite(file(other), "");
  }
  overwrite(file("r8-1.safetensors"), "");
  std::vector<std::string> stems;
  for (const CheckpointName& name : list_checkpoints(prefix())) stems.push_back(Path(name.stem()).filename());
  EXPECT_EQ(stems, (std::vector<std::string>{"r8-10000", "r8-0002-step00000120", "r8-0002", "r8-0001"}));
  EXPECT_TRUE(list_checkpoints(folder_ / "none/x").empty());
}

// Otherwise a manifest of a few kilobytes would take as much memory as its network says.
TEST_F(CheckpointFiles, MakeNoRoomForANetworkThatTheTensorsAreNotOf) {
  save(1);
  nn::GraphBuilder builder("huge", {1, 4, 4});
  int x = builder.add("conv0", nn::Convolution{.out = 16'000'000, .kernel_h = 3, .kernel_w = 3}, {0});
  x = builder.add("bn0", nn::BatchNorm{}, {x});
  const nn::Graph huge = builder.finish(builder.add("fc1", nn::Dense{16'000}, {x}));
  ASSERT_GT(huge.parameter_count, 1'000'000'000'000) << "four terabytes";
  const Json document = Json::parse(read_file(file("r8-0001.json")), "");
  Json changed = Json::object();
  for (const auto& [key, value] : document.as_object()) {
    if (key != "manifest_sha256") changed[key] = key == "graph" ? nn::graph_to_json(huge) : value;
  }
  changed["manifest_sha256"] = sha256_hex(bytes_of(changed.dump()));
  overwrite(file("r8-0001.json"), changed.dump());
  expect_error([&] { load_checkpoint(prefix(), 1); }, "damaged: tensor 'conv0_weight' is F32 [2, 1, 3, 3]");
}

// A folder in the way of the manifest's temporary file stands for every failure between the two writes.
TEST_F(CheckpointFiles, OfMXNetAreFoundByTheirSymbolAndTheNewestEpoch) {
  const auto write = [&](const std::string& ending) { overwrite(prefix().string() + ending, "x"); };
  make_folder(folder_ / "m");
  EXPECT_FALSE(newest_mxnet_epoch(prefix()));
  EXPECT_FALSE(newest_mxnet_epoch(folder_ / "none/x"));
  for (const char* name :
       {"-0003.params", "-0012.params", "-13.params", "-0014-step00000001.params", "other-0020.params"})
    write(name);
  EXPECT_FALSE(newest_mxnet_epoch(prefix())) << "there is no symbol";
  write("-symbol.json");
  EXPECT_EQ(newest_mxnet_epoch(prefix()), 12u);
}

// An earlier run's, which a run that begins anew replaces with its first checkpoint.
TEST_F(CheckpointFiles, OfMXNetGoWithTheRunThatTheyAreOf) {
  make_folder(folder_ / "m");
  using Left = std::set<std::string>;
  const auto left_after = [&](const Left& there, std::uint32_t epoch, std::uint64_t step, MxnetUse use) {
    for (const std::string& ending : there) overwrite(prefix().string() + "-" + ending, "x");
    remove_replaced_mxnet({prefix(), epoch, step}, use);
    Left left;
    for (const std::string& ending : there) {
      if (std::filesystem::remove(prefix().string() + "-" + ending)) left.insert(ending);
    }
    return left;
  };
  const Left all{"symbol.json", "0001.params", "0002.params"};
  EXPECT_EQ(left_after(all, 1, 0, {}), Left{});
  EXPECT_EQ(left_after(all, 1, 0, {.needs_symbol = true}), Left{"symbol.json"});
  EXPECT_EQ(left_after(all, 1, 0, {.writes_params = true}), (Left{"symbol.json", "0001.params"}));
  EXPECT_EQ(left_after(all, 0, 5, {.writes_params = true}), Left{"symbol.json"}) << "the next epoch writes it anew";
  EXPECT_EQ(left_after(all, 1, 5, {}), (Left{"symbol.json", "0001.params"})) << "what the run began with";
  EXPECT_EQ(left_after({"symbol.json"}, 1, 0, {}), Left{"symbol.json"}) << "a network that the user wrote";
}

// One more file can be open at a time while this lives.
class OneMoreFile {
 public:
  OneMoreFile() {
    ::getrlimit(RLIMIT_NOFILE, &usual_);
    const FileDescriptor next(::dup(STDIN_FILENO));
    const rlimit few{static_cast<rlim_t>(next.get()) + 1, usual_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~OneMoreFile() { ::setrlimit(RLIMIT_NOFILE, &usual_); }
  OneMoreFile(const OneMoreFile&) = delete;

 private:
  rlimit usual_{};
};

TEST_F(CheckpointFiles, AFailureBetweenTheTwoWritesLeavesTheOldOne) {
  save(1);
  const std::string before = state_sha256(load_checkpoint(prefix(), 1));
  {
    const OneMoreFile limit;  // the tensors are written, and the manifest cannot be opened
    EXPECT_THROW(save(1, 9), Error);
  }
  EXPECT_EQ(state_sha256(load_checkpoint(prefix(), 1)), before);
}

TEST_F(CheckpointFiles, KillNineAtAnyMomentLeavesAGoodOne) {
  save(1);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (std::uint32_t numbers = 0;; ++numbers) save(2 + numbers % 2, numbers);
    }
    ::usleep(static_cast<useconds_t>(1000 + attempt * 3407));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (const CheckpointName& name : list_checkpoints(prefix())) {
      EXPECT_NO_THROW(load_checkpoint_file(name.stem() + ".json")) << name.stem();
    }
    EXPECT_NO_THROW(load_checkpoint(prefix(), 1));
  }
}

class FullDisk : public CheckpointFiles {
 protected:
  void SetUp() override {
    make_folder(folder_ / "m");
    mounted_ = ::mount("tmpfs", (folder_ / "m").c_str(), "tmpfs", 0, "size=16k") == 0;
    if (!mounted_) GTEST_SKIP() << "SKIPPED LOUDLY: a full disk needs a tmpfs, which only root may mount";
  }
  void TearDown() override {
    if (mounted_) ::umount2((folder_ / "m").c_str(), MNT_DETACH);
  }
  bool mounted_ = false;
};

TEST_F(FullDisk, LeavesTheOldCheckpointAndNothingElse) {
  save(1);
  expect_error<Error>(
      [&] {
        for (std::uint32_t epoch = 2; epoch < 9; ++epoch) save(epoch);
      },
      "No space left on device | free some space");
  expect_error<Error>([&] { save(1, 9); }, "No space left on device");
  const auto left = list_checkpoints(prefix());
  for (const CheckpointName& name : left) EXPECT_NO_THROW(load_checkpoint_file(name.stem() + ".json"));
  EXPECT_EQ(state_sha256(load_checkpoint(prefix(), 1)), state_sha256(small_checkpoint()));
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "m")) {
    EXPECT_EQ(entry.path().string().find(".tmp."), std::string::npos) << entry.path();
  }
}

TEST(CheckpointHashes, AreThoseOfTheDocumentedLines) {
  const std::vector<TensorHash> tensors = {{"a_weight", {2, 3}, "00ff"}, {"a_bias", {}, "12"}};
  EXPECT_EQ(hash_of_weights(tensors), sha256_hex(bytes_of("a_weight [2, 3] 00ff\na_bias [] 12\n")));
  const std::string state = "a_weight [2, 3] 00ff\na_bias [] 12\nupdates 5\nepoch 1 step 2 samples_seen 3\n";
  EXPECT_EQ(hash_of_state(tensors, 5, {1, 2, 3}, {}), sha256_hex(bytes_of(state)));
  EXPECT_EQ(hash_of_state(tensors, 5, {1, 2, 3}, backend::LossScale{0.5f, 17}),
            sha256_hex(bytes_of(state + "loss_scale 0.5 good_steps 17\n")));
  const std::array<float, 1> one = {1.0f};
  const std::array<NamedTensor, 1> tensor = {{{"a", {1}, one}}};
  EXPECT_EQ(hash_tensors(tensor)[0].sha256, "e00e5eb9444182f352323374ef4e08ebcb784725fdd4fd612d7730540b3e0c8c");
}

TEST(CheckpointHashes, DependOnEveryPartOfTheState) {
  const std::string base = state_sha256(small_checkpoint());
  const std::string weights = weights_sha256(small_checkpoint());
  const auto changed = [&](auto change) {
    Checkpoint checkpoint = small_checkpoint();
    change(checkpoint);
    EXPECT_NE(state_sha256(checkpoint), base);
    return weights_sha256(checkpoint) != weights;
  };
  EXPECT_TRUE(changed([](Checkpoint& c) { c.state.parameters[5] = 0; }));
  EXPECT_FALSE(changed([](Checkpoint& c) { c.state.statistics[1] = 0; }));
  EXPECT_FALSE(changed([](Checkpoint& c) { c.state.optimizer[1] = 0; }));
  EXPECT_FALSE(changed([](Checkpoint& c) { c.state.updates = 0; }));
  EXPECT_FALSE(changed([](Checkpoint& c) { c.cursor.step = 1; }));
  EXPECT_FALSE(changed([](Checkpoint& c) { c.job.dtype = "float16"; }));
}

TEST(CheckpointHashes, DependOnTheLossScaleWhereThereIsOne) {
  const auto hash = [](const char* dtype, const backend::LossScale& scale) {
    Checkpoint checkpoint = small_checkpoint();
    checkpoint.job.dtype = dtype;
    checkpoint.state.loss_scale = scale;
    return state_sha256(checkpoint);
  };
  EXPECT_NE(hash("float16", {256, 1}), hash("float16", {128, 1}));
  EXPECT_NE(hash("float16", {256, 1}), hash("float16", {256, 2}));
  for (const char* dtype : {"float32", "bfloat16"}) EXPECT_EQ(hash(dtype, {256, 1}), hash(dtype, {128, 2})) << dtype;
}

// Version 0.1.0 wrote neither position nor ramp nor totals.
TEST(Manifest, WithoutAPositionHasOneThatFollowsFromItsSteps) {
  Checkpoint saved = small_checkpoint();
  saved.cursor = {1, 3, 1384};
  const Json document =
      Json::parse(write_manifest(saved, {}, hash_tensors(state_tensors(saved.graph, saved.state))), "");
  Json old = Json::object();
  for (const auto& [key, value] : document.as_object()) {
    const bool is_new = key == "position" || key == "ramp" || key == "epoch_totals" || key == "manifest_sha256";
    if (!is_new) old[key] = value;
  }
  old["manifest_sha256"] = sha256_hex(bytes_of(old.dump()));
  EXPECT_EQ(parse_manifest(old.dump(), "old").checkpoint.cursor.position, 3u * 128);
}

}  // namespace
}  // namespace dtrain::train
