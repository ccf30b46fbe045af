#include <dtrain/data/coco.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json_elements.hpp>
#include <dtrain/base/json_without.hpp>
#include <dtrain/base/parallel.hpp>

#include "objects_block.hpp"

namespace dtrain::data {
namespace {

constexpr std::size_t kParsedAtOnce = 2048;
constexpr const char* kWhatItHolds = "COCO's detection files hold images, annotations and categories";

// The three lists of a file, as texts. A file of 450 MB is mostly the corners of polygons, which are parsed one
// annotation at a time.
struct Lists {
  std::string_view images, annotations, categories;
};

Lists find_lists(std::string_view text, const std::string& source) {
  Lists lists;
  for_each_member(text, source, [&](std::string_view name, std::string_view value) {
    if (name == "images") lists.images = value;
    if (name == "annotations") lists.annotations = value;
    if (name == "categories") lists.categories = value;
  });
  for (const auto& [list, name] : {std::pair{lists.images, "images"}, std::pair{lists.annotations, "annotations"},
                                   std::pair{lists.categories, "categories"}}) {
    if (list.empty()) throw DataError(fmt::format("the key \"{}\" is missing", name));
  }
  return lists;
}

// Calls make(json) for each element, in any order, and returns what it makes in their order.
template <typename Value, typename Make>
std::vector<Value> parse_all(std::string_view list, const std::string& source,
                             std::span<const std::string_view> without, const Make& make) {
  const std::vector<std::string_view> elements = coco_elements(list, source);
  std::vector<Value> values(elements.size());
  for_each_in_parallel((elements.size() + kParsedAtOnce - 1) / kParsedAtOnce, [&](std::size_t block) {
    const std::size_t end = std::min(elements.size(), (block + 1) * kParsedAtOnce);
    for (std::size_t i = block * kParsedAtOnce; i < end; ++i)
      values[i] = make(parse_json_without(elements[i], source, without));
  });
  return values;
}

int side_of(const Json& image, std::string_view key) {
  const Json* side = image.find(key);
  if (!side) return 0;
  const double value = side->as_number();
  if (!(value > 0 && value <= static_cast<double>(kMostObjectsSide)))
    throw DataError(fmt::format("an image's width or height is {}", value));
  return static_cast<int>(value);
}

CocoPicture picture_of(const Json& image) {
  CocoPicture picture;
  picture.id = image.at("id").as_integer();
  if (picture.id < 0) throw DataError(fmt::format("image id {} is negative", picture.id));
  if (const Json* file = image.find("file_name")) picture.file = file->as_string();
  picture.height = side_of(image, "height");
  picture.width = side_of(image, "width");
  return picture;
}

class ObjectReader {
 public:
  ObjectReader(const CocoSet& set, bool masks) : set_(set), masks_(masks) {
    for (const CocoPicture& picture : set.pictures) pictures_.emplace(picture.id, &picture);
  }

  CocoObject operator()(const Json& json) const {
    CocoObject object;
    object.picture = json.at("image_id").as_integer();
    object.category = json.at("category_id").as_integer();
    Annotation& annotation = object.annotation;
    annotation.label = set_.label_of(object.category);
    if (const Json* id = json.find("id")) annotation.id = static_cast<std::uint64_t>(id->as_integer());
    annotation.box = coco_box(json.at("bbox"));
    const Json* crowd = json.find("iscrowd");
    annotation.crowd = crowd && crowd->as_integer() != 0;
    const Json* area = json.find("area");
    annotation.area = area ? area->as_number() : annotation.box.area();
    if (masks_) read_mask(json, object);
    return object;
  }

 private:
  void read_mask(const Json& json, CocoObject& object) const {
    const Json* segmentation = json.find("segmentation");
    const auto picture = pictures_.find(object.picture);
    if (!segmentation || segmentation->is_null() || picture == pictures_.end()) return;
    try {
      read_coco_mask(*segmentation, picture->second->height, picture->second->width, object.annotation);
    } catch (const DataError& error) {
      object.fault = error.what();
    }
  }

  const CocoSet& set_;
  bool masks_;
  std::unordered_map<std::int64_t, const CocoPicture*> pictures_;
};

CocoSet read_lists(const Lists& lists, const std::string& source, bool masks) {
  constexpr std::array<std::string_view, 1> kMasks{"segmentation"};
  CocoSet set;
  set.categories = parse_all<CocoCategory>(lists.categories, source, {}, [](const Json& json) {
    return CocoCategory{json.at("id").as_integer(), json.at("name").as_string()};
  });
  std::ranges::stable_sort(set.categories, {}, &CocoCategory::id);
  const auto twice = std::ranges::adjacent_find(set.categories, {}, &CocoCategory::id);
  if (twice != set.categories.end()) throw DataError(fmt::format("two categories have the id {}", twice->id));
  set.pictures = parse_all<CocoPicture>(lists.images, source, {}, picture_of);
  set.objects =
      parse_all<CocoObject>(lists.annotations, source, masks ? std::span<const std::string_view>() : std::span(kMasks),
                            ObjectReader(set, masks));
  return set;
}

}  // namespace

std::int32_t CocoSet::label_of(std::int64_t category) const {
  const auto found = std::ranges::lower_bound(categories, category, {}, &CocoCategory::id);
  if (found == categories.end() || found->id != category) return -1;
  return static_cast<std::int32_t>(found - categories.begin());
}

std::vector<std::string_view> coco_elements(std::string_view text, const std::string& source) {
  std::vector<std::string_view> elements;
  for_each_element(text, source, [&](std::string_view element) { elements.push_back(element); });
  return elements;
}

CocoSet read_coco(std::string_view text, const std::string& source, bool masks) try {
  return read_lists(find_lists(text, source), source, masks);
} catch (const DataError& error) {
  const std::string what = error.what();
  throw DataError(what.starts_with(source) ? what : fmt::format("{}: {}", source, what), kWhatItHolds);
}

PixelBox coco_box(const Json& bbox) {
  const Json::Array& sides = bbox.as_array();
  if (sides.size() != 4) throw DataError("a bbox has four numbers");
  return {sides[0].as_number(), sides[1].as_number(), sides[2].as_number(), sides[3].as_number()};
}

Rle coco_runs(const Json& segmentation) {
  const Json::Array& size = segmentation.at("size").as_array();
  if (size.size() != 2) throw DataError("the size of a mask has two numbers");
  for (const Json& side : size) {
    if (side.as_integer() < 1 || side.as_integer() > kMostObjectsSide)
      throw DataError(fmt::format("the height or width of a mask is {}", side.as_integer()));
  }
  const int h = static_cast<int>(size[0].as_integer()), w = static_cast<int>(size[1].as_integer());
  const Json& counts = segmentation.at("counts");
  if (counts.is_string()) return runs_of_text(counts.as_string(), h, w);
  Rle mask{h, w, {}};
  for (const Json& count : counts.as_array()) {
    const std::int64_t run = count.as_integer();
    if (run < 0 || run > UINT32_MAX) throw DataError(fmt::format("a run of a mask is {} pixels long", run));
    mask.runs.push_back(static_cast<std::uint32_t>(run));
  }
  check_runs(mask);
  return mask;
}

void read_coco_mask(const Json& segmentation, int height, int width, Annotation& object) {
  if (segmentation.is_object()) {
    Rle mask = coco_runs(segmentation);
    if (height > 0 && width > 0 && (mask.h != height || mask.w != width)) {
      throw DataError(
          fmt::format("its mask is of {}x{} pixels and its picture of {}x{}", mask.w, mask.h, width, height));
    }
    object.runs = std::move(mask.runs);
    return;
  }
  for (const Json& polygon : segmentation.as_array()) {
    std::vector<double>& corners = object.polygons.emplace_back();
    corners.reserve(polygon.as_array().size());
    for (const Json& number : polygon.as_array()) corners.push_back(number.as_number());
  }
}

}  // namespace dtrain::data
