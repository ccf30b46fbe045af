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

TEST_F(DatasetStatistics, TakeTheShapeOfTheFirstImageThatDecodes) {
  const auto stats_of_pictures = [&](const std::vector<std::string>& pictures) {
    RecordWriter writer(folder / "b.rec");
    for (std::size_t i = 0; i < pictures.size(); ++i) writer.add(i, std::vector<float>{1}, bytes_of(pictures[i]));
    writer.finish();
    return read_dataset_stats(RecordSet({folder / "b.rec"}), 0);
  };
  const std::string picture = encode_image({1, 2, 3, {1, 2, 3, 4, 5, 6}}, Encoding::png);
  EXPECT_EQ(stats_of_pictures({picture.substr(0, 20), picture}).first_w, 3);
  EXPECT_EQ(stats_of_pictures({picture.substr(0, 20)}).first_c, 0);
}

TEST_F(DatasetStatistics, SayNoAreasOfBoxesInLabelsAlone) {
  const DatasetStats stats = stats_of({{2, 5, 1, 0, 0, 1, 1}});
  EXPECT_EQ(stats.objects.boxes, 1u);
  EXPECT_EQ(stats.objects.sized, 0u);
}

}  // namespace
}  // namespace dtrain::data
