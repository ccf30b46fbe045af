#include "job/report/progress_line.hpp"

#include <gtest/gtest.h>

namespace dtrain::job {
namespace {

ProgressFacts training() {
  return {.what = "Epoch[0]",
          .done = 51,
          .total = 63,
          .unit = "steps",
          .rate = 0.451,
          .details = {"loss 1.2345", "accuracy 0.5432"}};
}

TEST(ProgressLine, TellsEverythingInTheWidthOfAUsualTerminal) {
  const std::string text = progress_text(training(), 79);
  EXPECT_EQ(text, "Epoch[0] step 51/63 loss 1.2345 accuracy 0.5432 0.451 steps/s ETA 26.6 s [=== ]") << text.size();
}

TEST(ProgressLine, LeavesOutWholeFactsWhereTheLineIsNarrow) {
  EXPECT_EQ(progress_text(training(), 39), "Epoch[0] step 51/63 loss 1.2345 [==== ]");
  EXPECT_EQ(progress_text(training(), 20), "Epoch[0] step 51/63");
  for (std::size_t columns = 20; columns < 200; ++columns)
    EXPECT_LE(progress_text(training(), columns).size(), columns) << columns;
}

TEST(ProgressLine, HasABarAndAPercentageWhereTheLineIsWide) {
  const std::string text = progress_text(training(), 150);
  EXPECT_TRUE(text.ends_with(" [===================     ]  81 %")) << text;
}

TEST(ProgressLine, CountsWithAUnit) {
  EXPECT_EQ(progress_text({.what = "a.rec", .done = 1 << 20, .unit = "bytes", .rate = 1 << 20}, 79),
            "a.rec 1.0 MiB 1.0 MiB/s");
  EXPECT_EQ(progress_text({.what = "pack", .done = 7, .unit = "pictures", .rate = 12.6}, 79),
            "pack 7 pictures 13 pictures/s");
}

}  // namespace
}  // namespace dtrain::job
