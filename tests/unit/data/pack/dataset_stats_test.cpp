#include <gtest/gtest.h>

#include <cmath>

#include <dtrain/data/dataset_stats.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/record.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

class DatasetStatistics : public testing::Test {
 protected:
  DatasetStats stats_of(const std::vector<std::vector<float>>& labels) const {
    RecordWriter writer(folder / "a.rec");
    const std::string picture = encode_image({1, 1, 1, {7}}, Encoding::png);
    for (std::size_t i = 0; i < labels.size(); ++i) writer.add(i, labels[i], bytes_of(picture));
    writer.finish();
    return read_dataset_stats(RecordSet({folder / "a.rec"}), 0);
  }

  TemporaryFolder folder;
};

TEST_F(DatasetStatistics, CountLabelsAsTheyAre) {
  const DatasetStats stats = stats_of({{1.5f}, {2}, {2}, {-3}, {std::nanf("")}});
  EXPECT_EQ(stats.classes, (std::map<std::int64_t, std::size_t>{{-3, 1}, {2, 2}}));
  EXPECT_EQ(stats.other_labels, (std::map<double, std::size_t>{{1.5, 1}}));
}

TEST_F(DatasetStatistics, SayNoAreasOfBoxesInLabelsAlone) {
  const DatasetStats stats = stats_of({{2, 5, 1, 0, 0, 1, 1}});
  EXPECT_EQ(stats.objects.boxes, 1u);
  EXPECT_EQ(stats.objects.sized, 0u);
}

}  // namespace
}  // namespace dtrain::data
