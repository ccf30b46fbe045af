#include "report/train_log.hpp"

#include <gtest/gtest.h>

#include "common/recording_reporter.hpp"
#include "common/small_files.hpp"
#include "common/temporary_folder.hpp"
#include "report/train_events.hpp"

namespace dtrain::job {
namespace {

using Lines = std::vector<std::string>;

train::EvaluationReport of_boxes_and_masks() {
  train::EvaluationReport report;
  report.epoch = 3;
  report.boxes = train::CocoFigures{.ap = 0.5, .ap50 = 0.75};
  report.masks = train::CocoFigures{.ap = 0.25, .ap50 = 0.375};
  report.accuracy = report.boxes->ap;
  return report;
}

TEST(TrainLog, HasThePrecisionOfMasksAfterThatOfBoxes) {
  RecordingReporter reporter;
  const config::TrainOptions options;
  TrainLog log(reporter, options, {});
  train::EvaluationReport report = of_boxes_and_masks();
  log.on_evaluation(report);
  EXPECT_EQ(reporter.notes, (Lines{"Epoch[3] Validation-AP=0.500000", "Epoch[3] Validation-AP50=0.750000",
                                   "Epoch[3] Validation-mask-AP=0.250000", "Epoch[3] Validation-mask-AP50=0.375000"}));
  report.masks.reset();
  log.on_evaluation(report);
  EXPECT_EQ(reporter.notes.size(), 6u);
}

TEST(TrainLog, TheLastCheckpointIsNoFileOfMxnet) {
  RecordingReporter reporter;
  const config::TrainOptions options;
  TrainLog log(reporter, options, {});
  for (const char* file : {"m/x-0001.safetensors", "m/x-symbol.json", "m/x-0001.params"}) log.on_checkpoint(file);
  EXPECT_EQ(log.last_checkpoint(), Path("m/x-0001.safetensors"));
  EXPECT_EQ(reporter.notes.size(), 3u);
}

// Evaluations count plain cross-entropy, whatever is trained.
TEST(TrainLog, NamesALossThatIsNoPlainCrossEntropy) {
  config::TrainOptions options;
  options.losses = {"cross-entropy", "nll-loss"};
  train::EpochReport epoch;
  epoch.loss = 0.5;
  train::EvaluationReport evaluation;
  evaluation.loss = 0.25;
  const auto lines = [&](const nn::SoftmaxLoss& loss) {
    RecordingReporter reporter;
    nn::Graph graph;
    graph.nodes.emplace_back().layer = loss;
    TrainLog log(reporter, options, graph);
    log.on_epoch(epoch);
    log.on_evaluation(evaluation);
    Lines losses;
    for (const std::string& line : reporter.notes) {
      if (line.find("accuracy") == line.npos && line.find("Time") == line.npos) losses.push_back(line);
    }
    return losses;
  };
  const Lines validation{"Epoch[0] Validation-cross-entropy=0.250000", "Epoch[0] Validation-nll-loss=0.250000"};
  EXPECT_EQ(lines({}), (Lines{"Epoch[0] Train-cross-entropy=0.500000", "Epoch[0] Train-nll-loss=0.500000",
                              validation[0], validation[1]}));
  for (const nn::SoftmaxLoss& loss : {nn::SoftmaxLoss{.kind = nn::LossKind::sigmoid}, nn::SoftmaxLoss{.focal_gamma = 2},
                                      nn::SoftmaxLoss{.label_smoothing = 0.1f}}) {
    EXPECT_EQ(lines(loss), (Lines{"Epoch[0] Train-loss=0.500000", validation[0], validation[1]}));
  }
}

TEST(BoardEvents, HaveThePrecisionOfMasksBesideThatOfBoxes) {
  const TemporaryFolder folder;
  const config::DataOptions data;
  RecordingReporter reporter;
  {
    BoardEvents events(folder.path(), data, false, reporter);
    events.on_evaluation(of_boxes_and_masks());
  }
  const std::filesystem::directory_iterator files(folder.path());
  const std::string written = read_file(files->path());
  EXPECT_NE(written.find("validation/AP"), written.npos);
  EXPECT_NE(written.find("validation/mask_AP"), written.npos);
}

std::string all_events(const Path& folder) {
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) all += read_file(entry.path());
  return all;
}

TEST(BoardEvents, AreWrittenLaterWhereTheDiskIsFull) {
  const TemporaryFolder folder;
  const config::DataOptions data;
  RecordingReporter reporter;
  BoardEvents events(folder.path(), data, false, reporter);
  {
    const SmallFiles full;
    full.limit(10);
    events.on_evaluation(of_boxes_and_masks());
    events.on_step({});
    events.on_evaluation(of_boxes_and_masks());
  }
  ASSERT_EQ(reporter.warnings.size(), 1u);
  EXPECT_NE(reporter.warnings[0].find("tfevents"), std::string::npos);
  EXPECT_EQ(all_events(folder.path()).find("validation/AP"), std::string::npos);
  events.on_step({});
  EXPECT_NE(all_events(folder.path()).find("validation/AP"), std::string::npos);
  EXPECT_EQ(reporter.warnings.size(), 1u);
}

// As TensorBoard's event.proto: session_log (7) {status (1): START}.
TEST(BoardEvents, OfAResumedOrNewRunReplaceTheOlderOnesFromItsFirstStep) {
  const std::string restart = "\x3a\x02\x08\x01";
  const config::DataOptions data;
  RecordingReporter reporter;
  const auto check = [&](bool resumed, bool anew) {
    const TemporaryFolder folder;
    {
      BoardEvents events(folder.path(), data, resumed, reporter);
      if (anew) events.begin_anew();
      events.on_step({});
      events.on_step({});
    }
    const bool restarts = resumed || anew;
    const std::string all = all_events(folder.path());
    const std::size_t first = all.find(restart);
    EXPECT_EQ(first != all.npos, restarts);
    EXPECT_EQ(all.rfind(restart), first) << "once";
    EXPECT_LT(restarts ? first : 0, all.find("train/loss"));
  };
  check(false, false);
  check(true, false);
  check(false, true);
}

}  // namespace
}  // namespace dtrain::job
