#include "report/train_log.hpp"

#include <gtest/gtest.h>

#include "common/recording_reporter.hpp"
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
  TrainLog log(reporter, options);
  train::EvaluationReport report = of_boxes_and_masks();
  log.on_evaluation(report);
  EXPECT_EQ(reporter.notes, (Lines{"Epoch[3] Validation-AP=0.500000", "Epoch[3] Validation-AP50=0.750000",
                                   "Epoch[3] Validation-mask-AP=0.250000", "Epoch[3] Validation-mask-AP50=0.375000"}));
  report.masks.reset();
  log.on_evaluation(report);
  EXPECT_EQ(reporter.notes.size(), 6u);
}

TEST(BoardEvents, HaveThePrecisionOfMasksBesideThatOfBoxes) {
  const TemporaryFolder folder;
  const config::DataOptions data;
  {
    BoardEvents events(folder.path(), data);
    events.on_evaluation(of_boxes_and_masks());
  }
  const std::filesystem::directory_iterator files(folder.path());
  const std::string written = read_file(files->path());
  EXPECT_NE(written.find("validation/AP"), written.npos);
  EXPECT_NE(written.find("validation/mask_AP"), written.npos);
}

}  // namespace
}  // namespace dtrain::job
