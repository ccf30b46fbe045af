#include "cli/commands/cluster/forecast_view.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::cli {
namespace {

// 20 seconds of steps of 64 samples, 100 to an epoch.
void record_training(const Path& folder) {
  std::filesystem::create_directory(folder);
  std::string steps = "{\"time\":\"2026-01-31T12:00:00Z\",\"begins\":true}\n";
  for (int second = 0; second <= 20; ++second) {
    steps += fmt::format(
        R"({{"time":"2026-01-31T12:00:{:02}.000000Z","epoch":0,"step":{},"steps":100,"samples":64,"seconds":1}})"
        "\n",
        second, second);
  }
  write_file_atomic(folder / "steps.jsonl", steps);
  write_file_atomic(folder / "train.toml", "num-epochs = 1\n");
}

TEST(ForecastView, ReadsAFolderThatIsNamedFromTheCurrentOne) {
  const TemporaryFolder folder;
  record_training(folder / "job");
  for (const Path& named : {folder / "job", std::filesystem::relative(folder / "job"), folder / "job/"})
    EXPECT_NEAR(forecast_in(named).samples_per_second, 64, 1e-6) << named;
}

TEST(ForecastView, NamesTheFileThatIsNotThere) {
  const TemporaryFolder folder;
  try {
    forecast_in(folder.path());
    FAIL() << "it must throw";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find((folder / "steps.jsonl").string() + ": no such file"), std::string::npos)
        << error.what();
  }
}

TEST(ForecastView, SaysSecondsMinutesOrHours) {
  const auto line = [](double epochs) {
    return forecast_line(
        {.samples_per_second = 100, .measured_seconds = 20, .epochs = epochs, .samples_of_epoch = 2100}, {}, true);
  };
  EXPECT_NE(line(1).find("takes 21.0 s and"), std::string::npos) << line(1);
  EXPECT_NE(line(40).find("takes 14:00 and"), std::string::npos) << line(40);
  EXPECT_NE(line(600).find("takes 3.5 hours and"), std::string::npos) << line(600);
}

}  // namespace
}  // namespace dtrain::cli
