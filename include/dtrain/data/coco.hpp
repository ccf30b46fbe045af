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
  std::int64_t picture = -1;  // -1: it does not say
  std::int64_t category = 0;
  bool has_id = false;
  Annotation annotation;              // label: the category's position, -1 where there is none of this id
  std::size_t polygons_left_out = 0;  // of its mask: those with fewer than three corners
  std::string fault;                  // why it could not be read ("its \"bbox\" is missing"); empty: it could
};

struct CocoSet {
  std::vector<CocoCategory> categories;  // by id
  std::vector<CocoPicture> pictures;     // in the order of the file
  std::vector<CocoObject> objects;       // in the order of the file

  std::int32_t label_of(std::int64_t category) const;  // -1: there is none of this id
  // "annotation 8" by its id, or "annotation number 3" by its place in `objects`, of which it is one.
  std::string name_of(const CocoObject& object) const;
};

// `source` is for messages. masks: reads "segmentation" too. On as many threads as there are processors. Throws
// DataError for what is no such file, and for two images or categories of one id. An annotation that cannot be read
// has a fault. One without a box gets that around its mask, where masks are read.
CocoSet read_coco(std::string_view text, const std::string& source, bool masks);
// The same for those who need boxes alone: reads "segmentation" only of annotations without a box.
CocoSet read_coco_boxes(std::string_view text, const std::string& source);
// The same without the objects, also of a file that has no annotations, as those of COCO's test images.
CocoSet read_coco_names(std::string_view text, const std::string& source);

// Members of an image, a category, an annotation or a result. Those that are null are missing. They throw DataError
// ("its \"image_id\" is missing"). A whole number may be written as 1.0, and 1 and 0 as true and false.
std::int64_t coco_whole(const Json& of, std::string_view key);
double coco_real(const Json& of, std::string_view key);
// A "bbox" of four numbers.
PixelBox coco_box(const Json& bbox);
// The "bbox" of a result; nullptr: it has none, for which programs also write null or an empty list.
const Json* coco_bbox(const Json& result);
// A "segmentation" for a picture of this size, or of its own where that is 0: polygons, or runs as a list or a text.
// One polygon may stand there without a list around it. Fills the object's polygons or runs. Returns how many polygons
// are left out, which have fewer than three corners. Throws DataError.
std::size_t read_coco_mask(const Json& segmentation, int height, int width, Annotation& object);
// The runs of a segmentation that is no polygon.
Rle coco_runs(const Json& segmentation);

// The elements of the array as texts, which are parts of `text`.
std::vector<std::string_view> coco_elements(std::string_view text, const std::string& source);

}  // namespace dtrain::data
