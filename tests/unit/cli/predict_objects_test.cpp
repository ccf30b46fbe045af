#include "cli/commands/train/predict_objects.hpp"

#include <gtest/gtest.h>

#include <dtrain/data/image.hpp>
#include <dtrain/train/coco_results.hpp>

#include "common/recording_reporter.hpp"
#include "common/temporary_folder.hpp"

namespace dtrain::cli {
namespace {

// An object of 3 x 4 pixels in a picture of 6 x 8.
class PredictObjects : public testing::Test {
 protected:
  PredictObjects() {
    std::vector<std::uint8_t> pixels(kHeight * kWidth);
    for (std::size_t y = 2; y < 5; ++y) {
      for (std::size_t x = 1; x < 5; ++x) pixels[y * kWidth + x] = 1;
    }
    mask_ = data::encode_mask(pixels, kHeight, kWidth);
    write_file_atomic(truth_, R"({"images": [{"id": 7, "file_name": "a.jpg", "height": 6, "width": 8}],
      "categories": [{"id": 3, "name": "dog"}], "annotations": [{"id": 1, "image_id": 7, "category_id": 3, "area": 12,
      "bbox": [1, 2, 4, 3], "iscrowd": 0, "segmentation": [[1, 2, 5, 2, 5, 5, 1, 5]]}]})");
  }
  std::vector<train::FoundObject> found(bool masked) const {
    return {{.category = 0, .score = 0.75, .area = 12, .box = {1, 2, 4, 3}, .mask = masked ? &mask_ : nullptr}};
  }
  Json answer(bool masked) {
    const ObjectsChoice choice{.results = results_, .annotations = truth_};
    ObjectAnswers answers(choice, names_, {}, reporter_);
    answers.found("photos/a.jpg", found(masked), {});
    answers.finish();
    return reporter_.documents.back().at("objects").as_array().at(0);
  }

  static constexpr std::size_t kHeight = 6, kWidth = 8;
  TemporaryFolder folder_;
  Path results_ = folder_ / "found.json", truth_ = folder_ / "truth.json";
  std::vector<std::string> names_{"dog"};
  data::Rle mask_;
  RecordingReporter reporter_{{.json = true}};
};

TEST_F(PredictObjects, MasksAreAnsweredAndScoredByThemselves) {
  const Json mask = answer(true).at("segmentation");
  EXPECT_EQ(mask.at("size").dump(), "[6,8]");
  EXPECT_EQ(data::runs_of_text(mask.at("counts").as_string(), kHeight, kWidth), mask_);
  const train::CocoReport report = train::score_coco_results(results_, truth_);
  ASSERT_TRUE(report.masks);
  EXPECT_NEAR(report.masks->figures.ap, 1, 1e-12);
  EXPECT_NEAR(report.boxes->figures.ap, 1, 1e-12);
}

TEST_F(PredictObjects, BoxesAloneHaveNoSegmentation) {
  EXPECT_FALSE(answer(false).find("segmentation"));
  EXPECT_FALSE(train::score_coco_results(results_, truth_).masks);
}

TEST_F(PredictObjects, MasksAreDrawnAtTheSizeOfTheDrawnPicture) {
  const data::Image white{3, kHeight, kWidth, std::vector<std::uint8_t>(3 * kHeight * kWidth, 255)};
  const auto drawn = [&](bool masked) {
    data::Image image;
    data::decode_image(bytes_of(draw_found(data::encode_image(white, data::Encoding::png), found(masked), names_)), 3,
                       image);
    return image;
  };
  const data::Image plain = drawn(false), tinted = drawn(true);
  ASSERT_EQ(tinted.w, 640);  // magnified
  const auto at = [](const data::Image& image, double y, double x) {
    const auto row = static_cast<int>(y * image.h / kHeight), column = static_cast<int>(x * image.w / kWidth);
    const std::uint8_t* const pixel = &image.pixels[static_cast<std::size_t>(3 * (row * image.w + column))];
    return std::array<int, 3>{pixel[0], pixel[1], pixel[2]};
  };
  EXPECT_EQ(at(plain, 3.5, 3), (std::array<int, 3>{255, 255, 255}));
  EXPECT_LT(at(tinted, 3.5, 3)[2], 200);  // the first colour has no blue
  EXPECT_GT(at(tinted, 3.5, 3)[2], 100);  // and lets the picture through
  EXPECT_EQ(at(tinted, 3.5, 6), (std::array<int, 3>{255, 255, 255}));
}

}  // namespace
}  // namespace dtrain::cli
