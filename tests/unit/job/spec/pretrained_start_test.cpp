#include "spec/pretrained_start.hpp"

#include <gtest/gtest.h>

#include <limits>

#include <dtrain/train/export.hpp>

#include "common/recording_reporter.hpp"
#include "data/temporary_folder.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::job {
namespace {

TEST(PretrainedStart, RefusesWeightsThatAreNoNumbers) {
  const TemporaryFolder folder;
  config::TrainOptions options;
  options.pretrained.file = folder / "x.safetensors";
  const auto start_from = [&](const train::Checkpoint& checkpoint) {
    train::export_safetensors(checkpoint, *options.pretrained.file);
    return pretrained_start(options, checkpoint.graph, nullptr, {});
  };
  train::Checkpoint of_statistics = train::small_checkpoint(), of_head = of_statistics;
  EXPECT_EQ(start_from(of_head).state.parameters, of_head.state.parameters);
  of_statistics.state.statistics[1] = std::numeric_limits<float>::infinity();
  data::expect_error<DataError>([&] { start_from(of_statistics); },
                                "x.safetensors: value 1 of the tensor 'bn0_moving_mean' is inf");
  of_head.state.parameters.back() = std::numeric_limits<float>::quiet_NaN();
  data::expect_error<DataError>([&] { start_from(of_head); }, "is nan");
  options.pretrained.new_head = true;
  EXPECT_NO_THROW(start_from(of_head)) << "nothing of its last layer is taken";
}

TEST(PretrainedStart, PassesOverTheConstantsByWhichAnExportPreparesItsPixels) {
  const TemporaryFolder folder;
  config::TrainOptions options;
  options.pretrained.file = folder / "x.onnx";
  train::Checkpoint checkpoint = train::small_checkpoint();
  checkpoint.job.preprocessing = Json::parse(
      R"({"image_shape": [1, 4, 4], "rgb_mean": [1, 2, 3], "rgb_std": [4, 5, 6], "crop": "center"})", "test");
  train::export_onnx(checkpoint, *options.pretrained.file, {.preprocessing = true});
  RecordingReporter reporter;
  pretrained_start(options, checkpoint.graph, &reporter, {});
  for (const std::string& warning : reporter.warnings) EXPECT_EQ(warning.find("rgb_"), std::string::npos) << warning;
}

}  // namespace
}  // namespace dtrain::job
