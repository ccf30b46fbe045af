#include "report/run_records.hpp"

#include <gtest/gtest.h>

#include "common/recording_reporter.hpp"
#include "common/temporary_folder.hpp"

namespace dtrain::job {
namespace {

class KeptConfiguration : public ::testing::Test {
 protected:
  KeptConfiguration() { bind(set_, options_); }
  void choose(const char* name, const char* text) {
    set_.find(name)->set(text);
    set_.find(name)->source = config::Source::flag;
  }
  // The lines of train.toml for a run that begins with these options.
  std::string kept(const config::TrainOptions& settled) {
    const TemporaryFolder folder;
    keep_configuration({folder.path()}, set_, settled, reporter_);
    return read_file(JobFolder{folder.path()}.configuration());
  }

  config::TrainOptions options_;
  config::OptionSet set_;
  RecordingReporter reporter_;
};

TEST_F(KeptConfiguration, IsWrittenThoughThatOfAnEarlierStartStays) {
  const TemporaryFolder folder;
  const JobFolder job{folder.path()};
  make_folder(job.first_configuration() / "others");  // cannot be removed
  keep_configuration(job, set_, options_, reporter_);
  EXPECT_TRUE(std::filesystem::exists(job.configuration()));
  EXPECT_TRUE(reporter_.warnings.empty());
}

TEST_F(KeptConfiguration, SaysWhereTheRunBeganIfItDid) {
  choose("load-epoch", "best");
  config::TrainOptions settled = options_;
  settled.load_epoch = 7;
  EXPECT_NE(kept(settled).find("# load-epoch = 7  (where this run began)\n"), std::string::npos);
  settled.load_epoch.reset();
  EXPECT_EQ(kept(settled).find("load-epoch"), std::string::npos) << "a stronger option began elsewhere";
}

TEST_F(KeptConfiguration, LeavesOutWeightsThatTheRunDidNotBeginWith) {
  choose("pretrained", "w.safetensors");
  choose("new-head", "true");
  EXPECT_NE(kept(options_).find("pretrained = "), std::string::npos);
  config::TrainOptions settled = options_;
  settled.pretrained.file.reset();
  const std::string text = kept(settled);
  EXPECT_EQ(text.find("pretrained"), std::string::npos) << text;
  EXPECT_EQ(text.find("new-head"), std::string::npos) << text;
}

TEST_F(KeptConfiguration, LeavesOutDefaultsThatTheRunDidNotHave) {
  for (const auto& [name, text] : {std::pair("num-classes", "10"), {"pad-size", "4"}, {"lr-step-epochs", "3"}}) {
    set_.find(name)->set(text);
    set_.find(name)->source = config::Source::recipe;
    set_.find(name)->origin = "recipe cifar10";
  }
  config::TrainOptions settled = options_;
  settled.data.classes = 2;
  settled.schedule.kind = nn::ScheduleKind::cosine;
  const std::string text = kept(settled);
  EXPECT_NE(text.find("# pad-size = 4  (recipe cifar10)\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("num-classes"), std::string::npos) << text;
  EXPECT_EQ(text.find("lr-step-epochs"), std::string::npos) << text;
}

}  // namespace
}  // namespace dtrain::job
