// Results files of COCO: a list of {"image_id", "category_id", "score", "bbox" and/or "segmentation"}.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/train/coco_ap.hpp>

namespace dtrain::train {

struct CocoScore {
  CocoFigures figures;
  std::vector<CocoFigures> by_category;
};

struct CocoReport {
  std::vector<std::string> categories;
  std::size_t pictures = 0, objects = 0, results = 0;
  std::size_t unknown = 0;       // results of categories that the annotations lack, which do not count
  std::size_t without_mask = 0;  // true objects that lack one, where the results have masks
  bool masks_unscored = false;   // all of them lack one
  std::optional<CocoScore> boxes, masks;
};

// Scores the results as pycocotools does: boxes by "bbox", or where that is missing by the box around the mask; masks
// where the first result has one and a true object as well; a true one without counts with a mask of no pixel. Its
// detail is kept too: with "bbox" a found object's area is that of its box, for masks as well. On as many threads as
// there are processors. Throws DataError: a file that is none, results of images that the annotations do not list,
// masks of another size than their image.
CocoReport score_coco_results(const Path& results, const Path& annotations);

}  // namespace dtrain::train
