#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/train/coco_results.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::train {
namespace {

const char* const kTruth = R"({"images": [{"id": 1, "height": 10, "width": 20}, {"id": 2}],
 "annotations": [{"id": 1, "image_id": 1, "category_id": 7, "bbox": [0, 0, 10, 10], "area": 100, "iscrowd": 0,
                  "segmentation": [[0, 0, 10, 0, 10, 10, 0, 10]]}],
 "categories": [{"id": 7, "name": "dog"}, {"id": 9, "name": "cat"}]})";

class CocoResults : public testing::Test {
 protected:
  CocoReport score(const std::string& results) const {
    write_file_atomic(folder / "truth.json", truth);
    write_file_atomic(folder / "found.json", results);
    return score_coco_results(folder / "found.json", folder / "truth.json");
  }
  void expect_refused(const std::string& results, std::string_view why) const {
    try {
      score(results);
      ADD_FAILURE() << "nothing was thrown for " << results;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }
  TemporaryFolder folder;
  std::string truth = kTruth;
};

TEST_F(CocoResults, AreScoredByBoxes) {
  const CocoReport report = score(R"([{"image_id": 1, "category_id": 7, "bbox": [0, 0, 10, 10], "score": 0.5},
                                      {"image_id": 2, "category_id": 8, "bbox": [0, 0, 10, 10], "score": 0.5}])");
  EXPECT_NEAR(report.boxes->figures.ap, 1, 1e-12);
  EXPECT_EQ(report.boxes->by_category[1].ap, -1);
  EXPECT_FALSE(report.masks.has_value());
  EXPECT_EQ(report.categories, (std::vector<std::string>{"dog", "cat"}));
  EXPECT_EQ(report.unknown, 1u);
  EXPECT_EQ(score("[]").boxes->figures.ap, 0);
}

TEST_F(CocoResults, AreNoAnnotations) { expect_refused("\n" + truth, "found.json: is no list of results"); }

TEST_F(CocoResults, AreScoredByMasksAndTheBoxesAroundThem) {
  // The left half of the object's mask: runs of 10 rows.
  const CocoReport report = score(
      R"([{"image_id": 1, "category_id": 7, "score": 0.5, "segmentation": {"size": [10, 20], "counts": [0, 70, 130]}}])");
  EXPECT_NEAR(report.masks->figures.ap, 0.5, 1e-12);  // 0.7 reaches 0.50 to 0.70
  EXPECT_NEAR(report.boxes->figures.ap, 0.5, 1e-12);
}

TEST_F(CocoResults, SayWhatIsWrongWithThem) {
  expect_refused(R"([{"image_id": 3, "category_id": 7, "bbox": [0, 0, 1, 1], "score": 1}])",
                 "1 results are of images that the annotations do not list: 3");
  expect_refused("7", "found.json: not valid JSON at byte 1");
  expect_refused(R"([{"image_id": 1}])", "found.json: result 1: its \"category_id\" is missing");
  expect_refused(R"([{"image_id": 1, "category_id": 7, "score": 1}])", "has neither \"bbox\" nor \"segmentation\"");
  expect_refused(R"([{"image_id": 1, "category_id": 7, "score": 1, "bbox": [1, 2, 3]}])",
                 "its \"bbox\" is no list of four numbers");
  expect_refused(
      R"([{"image_id": 1, "category_id": 7, "score": 1, "segmentation": {"size": [20, 10], "counts": [0, 200]}}])",
      "its mask is of 10x20 pixels and its picture of 20x10");
  expect_refused(R"([{"image_id": 1, "category_id": 7, "score": 1e999, "bbox": [1, 2, 3, 4]}])", "found.json");
}

TEST_F(CocoResults, MayHaveNullInThePlaceOfABoxOrAMask) {
  const std::string whole = R"("image_id": 1, "category_id": 7, "score": 0.5)";
  const std::string mask = R"("segmentation" : {"size": [10, 20], "counts": [0, 100, 100]})";
  const CocoReport boxes = score("[{" + whole + R"(, "bbox": [0, 0, 10, 10], "segmentation" :null}])");
  EXPECT_NEAR(boxes.boxes->figures.ap, 1, 1e-12);
  EXPECT_FALSE(boxes.masks.has_value());
  for (const char* none : {"null", "[]"}) {
    const CocoReport masks = score("[{" + whole + ", " + mask + R"(, "bbox": )" + none + "}]");
    EXPECT_NEAR(masks.boxes->figures.ap, 1, 1e-12) << none;
    EXPECT_NEAR(masks.masks->figures.ap, 1, 1e-12) << none;
  }
  expect_refused("[{" + whole + ", " + mask + "}, {" + whole + R"(, "bbox": [0, 0, 1, 1], "segmentation": null}])",
                 "a result of image 1 has no \"segmentation\", others have");
  expect_refused("[{" + whole + R"(, "bbox": [], "segmentation": null}])", "has neither");
}

TEST_F(CocoResults, MayHaveMasksOfWhichAPolygonHasNoThreeCorners) {
  truth = R"({"images": [{"id": 1, "height": 10, "width": 20}], "categories": [{"id": 7, "name": "dog"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 7, "bbox": [0, 0, 10, 10], "area": 100,
                     "segmentation": [[3, 3, 4, 4], [0, 0, 10, 0, 10, 10, 0, 10]]},
                    {"id": 2, "image_id": 1, "category_id": 7, "bbox": [15, 0, 5, 5], "area": 25,
                     "segmentation": [[15, 0, 20, 5]]}]})";
  const CocoReport report = score(
      R"([{"image_id": 1, "category_id": 7, "score": 0.9, "segmentation": [[0, 0, 10, 0, 10, 10, 0, 10], [1, 1]]},
          {"image_id": 1, "category_id": 7, "score": 0.8, "bbox": [15, 0, 5, 5], "segmentation": [[15, 0, 20, 5]]}])");
  EXPECT_NEAR(report.boxes->figures.ap, 1, 1e-12);
  EXPECT_NEAR(report.masks->figures.ap, 51.0 / 101, 1e-12);  // a mask of no pixel is never found
}

// Two true objects side by side, each with these members besides its box.
std::string truth_with(const std::string& first, const std::string& second) {
  return R"({"images": [{"id": 1, "height": 10, "width": 20}], "categories": [{"id": 7, "name": "dog"}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 7, "bbox": [0, 0, 10, 10])" +
         first + R"(}, {"id": 2, "image_id": 1, "category_id": 7, "bbox": [10, 0, 10, 10])" + second + "}]}";
}

TEST_F(CocoResults, OfMasksAreScoredByBoxesWhereTheTrueObjectsHaveNone) {
  const std::string found = R"([{"image_id": 1, "category_id": 7, "score": 0.9, "bbox": [0, 0, 10, 10],
                                 "segmentation": [[0, 0, 10, 0, 10, 10, 0, 10]]},
                                {"image_id": 1, "category_id": 7, "score": 0.8, "bbox": [10, 0, 10, 10],
                                 "segmentation": [[10, 0, 20, 0, 20, 10, 10, 10]]}])";
  truth = truth_with(R"(, "segmentation": [])", "");
  const CocoReport boxes = score(found);
  EXPECT_NEAR(boxes.boxes->figures.ap, 1, 1e-12);
  EXPECT_TRUE(boxes.masks_unscored);
  EXPECT_FALSE(boxes.masks.has_value());
  truth = truth_with(R"(, "segmentation": [[0, 0, 10, 0, 10, 10, 0, 10]])", "");
  const CocoReport both = score(found);
  EXPECT_NEAR(both.boxes->figures.ap, 1, 1e-12);
  EXPECT_EQ(both.without_mask, 1u);
  EXPECT_FALSE(both.masks_unscored);
  EXPECT_NEAR(both.masks->figures.ap, 51.0 / 101, 1e-12);  // a mask of no pixel is never found
}

TEST_F(CocoResults, NameTheAnnotationThatCannotBeRead) {
  truth = R"({"images": [{"id": 1}], "categories": [{"id": 7, "name": "dog"}],
              "annotations": [{"id": 5, "image_id": 1, "category_id": 7, "bbox": []}]})";
  expect_refused("[]", "truth.json: annotation 5 of image 1: its \"bbox\" is no list of four numbers");
}

TEST_F(CocoResults, TakeWholeNumbersHoweverTheyAreWritten) {
  const CocoReport report = score(R"([{"image_id": 1.0, "category_id": 7.0, "bbox": [0, 0, 10, 10], "score": 0.5}])");
  EXPECT_NEAR(report.boxes->figures.ap, 1, 1e-12);
  expect_refused(R"([{"image_id": 1, "category_id": "7", "bbox": [0, 0, 10, 10], "score": 0.5}])",
                 "found.json: result 1: its \"category_id\" is no whole number");
}

}  // namespace
}  // namespace dtrain::train
