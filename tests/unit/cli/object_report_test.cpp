#include "cli/commands/train/object_report.hpp"

#include <gtest/gtest.h>

#include <dtrain/data/image.hpp>
#include <dtrain/train/coco_results.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::cli {
namespace {

// The report on two results of one picture of 8 x 6 pixels, which have these members besides their picture and class.
ObjectReport report_on(const TemporaryFolder& folder, const std::string& first, const std::string& second) {
  const data::Image white{3, 6, 8, std::vector<std::uint8_t>(3 * 6 * 8, 255)};
  write_file_atomic(folder / "a.png", data::encode_image(white, data::Encoding::png));
  write_file_atomic(folder / "truth.json", R"({"categories": [{"id": 3, "name": "dog"}], "images": [
    {"id": 7, "file_name": "a.png", "height": 6, "width": 8},
    {"id": 8, "file_name": ")" + std::string(300, 'x') +
                                               R"(.png", "height": 6, "width": 8}],
    "annotations": [{"id": 1, "image_id": 7, "category_id": 3, "area": 12, "bbox": [1, 2, 4, 3], "iscrowd": 0,
                     "segmentation": [[1, 2, 5, 2, 5, 5, 1, 5]]},
                    {"id": 2, "image_id": 8, "category_id": 3, "area": 12, "bbox": [1, 2, 4, 3], "iscrowd": 0}]})");
  const std::string both = R"("image_id": 7, "category_id": 3, "score": 0.9, )";
  write_file_atomic(folder / "found.json", "[{" + both + first + "}, {" + both + second + "}]");
  const Path results = folder / "found.json", truth = folder / "truth.json", pictures = folder.path();
  return write_object_report(folder / "report", train::score_coco_results(results, truth), {results, truth, pictures});
}

TEST(ObjectReport, DrawsResultsWithNullInThePlaceOfABoxOrAMask) {
  const TemporaryFolder folder;
  const std::string mask = R"("segmentation": [[1, 2, 5, 2, 5, 5, 1, 5]])", box = R"("bbox": [1, 2, 4, 3])";
  for (const auto& [first, second] : {std::pair(R"("bbox": [], )" + mask, R"("bbox": null, )" + mask),
                                      std::pair(box, R"("segmentation": null, )" + box)}) {
    const ObjectReport report = report_on(folder, first, second);
    EXPECT_EQ(report.files, (std::vector<Path>{folder / "report/per_class.csv", folder / "report/objects.png"}));
    EXPECT_EQ(report.missing, 1u) << "the picture of a name that no file has";
  }
}

}  // namespace
}  // namespace dtrain::cli
