// COCO's JSON files for object detection (cocodataset.org/#format-data).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/data/objects.hpp>

namespace dtrain::data {

struct CocoCategory {
  std::int64_t id = 0;
  std::string name;
};

struct CocoPicture {
  std::int64_t id = 0;
  std::string file;           // empty: the file names none
  int height = 0, width = 0;  // 0: it does not say
};

struct CocoObject {
  std::int64_t picture = 0;
  std::int64_t category = 0;
  Annotation annotation;  // label: the category's position, -1 where there is none of this id
  std::string fault;      // of a mask that could not be read; empty: none
};

struct CocoSet {
  std::vector<CocoCategory> categories;  // by id
  std::vector<CocoPicture> pictures;     // in the order of the file
  std::vector<CocoObject> objects;       // in the order of the file

  std::int32_t label_of(std::int64_t category) const;  // -1: there is none of this id
};

// `source` is for messages. masks: reads "segmentation" too. On as many threads as there are processors. Throws
// DataError for what is no such file.
CocoSet read_coco(std::string_view text, const std::string& source, bool masks);

// A "bbox" of four numbers.
PixelBox coco_box(const Json& bbox);
// A "segmentation" for a picture of this size, or of its own where that is 0: polygons, or runs as a list or a text.
// Fills the object's polygons or runs. Throws DataError.
void read_coco_mask(const Json& segmentation, int height, int width, Annotation& object);
// The runs of a segmentation that is no polygon.
Rle coco_runs(const Json& segmentation);

// The elements of the array as texts, which are parts of `text`.
std::vector<std::string_view> coco_elements(std::string_view text, const std::string& source);

}  // namespace dtrain::data
