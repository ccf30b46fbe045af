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
    ObjectAnswers answers(choice, {"photos/a.jpg"}, names_, {}, reporter_);
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

class CocoResultsOfPredict : public testing::Test {
 protected:
  // The image_id and category_id of one object that is found in each file, of the class 0.
  std::vector<std::pair<std::int64_t, std::int64_t>> numbers(const std::vector<Path>& files) {
    const ObjectsChoice choice{.results = results_, .annotations = truth_};
    ObjectAnswers answers(choice, files, names_, {}, reporter_);
    for (const Path& file : files) answers.found(file, {{.category = 0, .score = 0.5, .area = 1, .box = {}}}, {});
    answers.finish();
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    const Json written = Json::parse(read_file(results_), "found.json");
    for (const Json& each : written.as_array())
      found.emplace_back(each.at("image_id").as_integer(), each.at("category_id").as_integer());
    return found;
  }
  void list(const std::string& images, const std::string& categories) const {
    write_file_atomic(truth_, R"({"images": [)" + images + R"(], "categories": [)" + categories + "]}");
  }
  void expect_refused(const std::vector<Path>& files, std::string_view why) {
    try {
      numbers(files);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const DataError& error) {
      EXPECT_NE(std::string_view(error.what()).find(why), std::string_view::npos) << error.what();
    }
  }

  using Numbers = std::vector<std::pair<std::int64_t, std::int64_t>>;
  static constexpr const char* kCameras =
      R"({"id": 1, "file_name": "cam1/0001.jpg"}, {"id": 2, "file_name": "cam2/0001.jpg"})";
  static constexpr const char* kDog = R"({"id": 3, "name": "dog"})";
  TemporaryFolder folder_;
  Path results_ = folder_ / "found.json", truth_ = folder_ / "truth.json";
  std::vector<std::string> names_{"dog"};
  RecordingReporter reporter_{{.json = true}};
};

TEST_F(CocoResultsOfPredict, ReplaceEarlierResultsAlone) {
  list(R"({"id": 1, "file_name": "a.jpg"})", kDog);
  EXPECT_EQ(numbers({"a.jpg"}), numbers({"a.jpg"}));
  for (const char* other : {R"({"schema": "dtrain.checkpoint/1"})", "\xff\xd8\xff of a picture"}) {
    write_file_atomic(results_, other);
    EXPECT_THROW(numbers({"a.jpg"}), UsageError);
    EXPECT_EQ(read_file(results_), other);
  }
}

TEST_F(CocoResultsOfPredict, TellPicturesOfOneNameByTheirFolders) {
  list(kCameras, kDog);
  EXPECT_EQ(numbers({"photos/cam1/0001.jpg", "./cam2/0001.jpg"}), (Numbers{{1, 3}, {2, 3}}));
  EXPECT_EQ(numbers({"cam2/0001.jpg", "0002.jpg"}), (Numbers{{2, 3}}));
  expect_refused({"photos/0001.jpg"}, "photos/0001.jpg: may be cam1/0001.jpg or cam2/0001.jpg of ");
}

TEST_F(CocoResultsOfPredict, FindAPictureByItsNameInAnyFolder) {
  list(R"({"id": 1, "file_name": "train/a.jpg"}, {"id": 2, "file_name": "b.jpg"})", kDog);
  EXPECT_EQ(numbers({"a.jpg", "photos/b.jpg"}), (Numbers{{1, 3}, {2, 3}}));
  EXPECT_EQ(numbers({"photos/a.jpg", "photos/train/a.jpg"}), (Numbers{{1, 3}}));
  expect_refused({"one/b.jpg", "other/b.jpg"}, "the image b.jpg may be one/b.jpg or other/b.jpg");
  list(R"({"id": 1, "file_name": "train/a.jpg"}, {"id": 2, "file_name": "a.jpg"})", kDog);
  EXPECT_EQ(numbers({"photos/a.jpg", "photos/train/a.jpg"}), (Numbers{{2, 3}, {1, 3}}));
}

TEST_F(CocoResultsOfPredict, TellCategoriesOfOneNameByTheirOrder) {
  names_ = {"cat", "dog", "dog"};
  list(R"({"id": 1, "file_name": "a.jpg"})",
       R"({"id": 9, "name": "dog"}, {"id": 4, "name": "cat"}, {"id": 7, "name": "dog"})");
  const auto categories = [&](const Path& file) { return read_coco_numbers(truth_, {file}, names_).categories; };
  EXPECT_EQ(categories("a.jpg"), (std::vector<std::optional<std::int64_t>>{4, 7, 9}));
  names_ = {"cat", "bird"};
  EXPECT_EQ(categories("a.jpg"), (std::vector<std::optional<std::int64_t>>{4, std::nullopt}));
  names_ = {"dog"};
  expect_refused({"a.jpg"}, "has two categories dog: 7 and 9");
}

TEST_F(CocoResultsOfPredict, LackObjectsOfAClassThatTheAnnotationsLack) {
  names_ = {"dog", "bird"};
  list(R"({"id": 1, "file_name": "a.jpg"})", kDog);
  const ObjectsChoice choice{.results = results_, .annotations = truth_};
  ObjectAnswers answers(choice, {"a.jpg"}, names_, {}, reporter_);
  ASSERT_EQ(reporter_.warnings.size(), 1u);
  EXPECT_NE(reporter_.warnings[0].find("has no category bird, which the network finds"), std::string::npos)
      << reporter_.warnings[0];
  answers.found(
      "a.jpg",
      {{.category = 1, .score = 0.9, .area = 1, .box = {}}, {.category = 0, .score = 0.5, .area = 1, .box = {}}}, {});
  answers.finish();
  EXPECT_EQ(reporter_.warnings.size(), 1u);
  const Json written = Json::parse(read_file(results_), "found.json");
  ASSERT_EQ(written.as_array().size(), 1u);
  EXPECT_EQ(written.as_array()[0].at("category_id").as_integer(), 3);
}

}  // namespace
}  // namespace dtrain::cli
