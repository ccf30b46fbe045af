#include "spec/shared_folders.hpp"

#include <gtest/gtest.h>

#include <thread>

#include <dtrain/base/error.hpp>

#include "spec/prefix_owner.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;

class SharedPrefix : public ::testing::Test {
 protected:
  SharedPrefix() {
    spec_.options.model_prefix = folder_.path() / "m/x";
    spec_.prefix_token = "abc";
  }
  void own(const std::string& token) const {
    make_folder(folder_.path() / "m");
    const auto lock = FileLock::take(owner_file(prefix()));
    write_owner(*lock, prefix(),
                {.token = token, .job_folder = "/a/longer/name/than/before", .host = "h", .process = 7});
    write_owner(*lock, prefix(), {.token = token, .job_folder = "/j", .host = "h", .process = 7});
  }
  const Path& prefix() const { return *spec_.options.model_prefix; }
  std::string refused() const {
    try {
      require_shared_prefix(spec_, 0ms);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  const ScratchFolder folder_{"dtrain-shared"};
  config::TrainSpec spec_;
};

TEST_F(SharedPrefix, IsTheOneWithTheTokenOfTheRun) {
  own("abc");
  EXPECT_EQ(refused(), "");
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path() / "m")) ++files;
  EXPECT_EQ(files, 1u) << "the trial is gone";
  own("abd");
  EXPECT_NE(refused().find("would be saved in " + (folder_.path() / "m").string()), std::string::npos) << refused();
}

TEST_F(SharedPrefix, MustBeThere) {
  EXPECT_NE(refused().find("would be saved in"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "m")) << "it makes no folder";
  spec_.prefix_token.clear();
  EXPECT_EQ(refused(), "") << "there is nothing to compare";
}

TEST_F(SharedPrefix, MayBeSeenLate) {
  std::jthread later([&] {
    std::this_thread::sleep_for(300ms);
    own("abc");
  });
  EXPECT_NO_THROW(require_shared_prefix(spec_));
}

TEST(PrefixOwner, IsReadInEveryForm) {
  EXPECT_EQ(owner_in("").job_folder, "");
  EXPECT_EQ(owner_in("/efs/job").job_folder, "/efs/job") << "of an older version";
  EXPECT_EQ(owner_in("{\"schema\":\"dtrain.ow").token, "") << "cut off";
  const PrefixOwner owner =
      owner_in("{\"schema\":\"dtrain.owner/1\",\"token\":\"t\",\"job_dir\":\"/j\",\"host\":\"h\",\"pid\":7}\nrest");
  EXPECT_EQ(owner.token, "t");
  EXPECT_EQ(describe_owner(owner), "process 7 on h, job folder /j");
}

TEST(SharedJobFolder, HasTheCoordinatorOfTheJob) {
  const ScratchFolder place("dtrain-shared");
  const JobFolder folder{place.path()};
  const auto check = [&] { require_shared_job_folder("h2", folder, "secret", 0ms); };
  EXPECT_THROW(check(), RemoteError);
  write_coordinator(folder, {.token = "another"});
  EXPECT_THROW(check(), RemoteError);
  write_coordinator(folder, {.token = "secret"});
  EXPECT_NO_THROW(check());
  write_file_atomic(folder.coordinator(), "{");
  EXPECT_NO_THROW(check()) << "a damaged file proves nothing";
}

class LatestCheckpoint : public ::testing::Test {
 protected:
  LatestCheckpoint() {
    make_folder(folder_.path() / "m");
    options_.model_prefix = prefix_;
    options_.job.folder = folder_.path();
    options_.job.hosts = 2;
  }
  void save(std::uint32_t epoch) const { train::save_checkpoint({prefix_, epoch, 0}, train::small_checkpoint(epoch)); }
  void say_latest(const std::string& manifest) const {
    write_file_atomic(JobFolder{folder_.path()}.latest(), manifest);
  }
  void check() const { require_latest_checkpoint(options_, {}, 0ms); }

  const ScratchFolder folder_{"dtrain-shared"};
  const Path prefix_ = folder_.path() / "m/x";
  config::TrainOptions options_;
};

TEST_F(LatestCheckpoint, MustBeThereOrALaterOne) {
  EXPECT_NO_THROW(check()) << "the job saved nothing";
  say_latest(prefix_.string() + "-0003.json");
  EXPECT_THROW(check(), UsageError);
  save(2);
  EXPECT_THROW(check(), UsageError);
  save(3);
  EXPECT_NO_THROW(check());
  say_latest(prefix_.string() + "-0002-step00000010.json");
  EXPECT_NO_THROW(check()) << "the coordinator did not hear of the last one";
}

TEST_F(LatestCheckpoint, OfAnotherPrefixSaysNothing) {
  say_latest((folder_.path() / "m/y-0003.json").string());
  EXPECT_NO_THROW(check());
}

TEST_F(LatestCheckpoint, IsOfJobsAlone) {
  say_latest(prefix_.string() + "-0003.json");
  options_.job.hosts = 1;
  EXPECT_NO_THROW(check());
}

}  // namespace
}  // namespace dtrain::job
