#include <dtrain/data/coco.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
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

Lists find_lists(std::string_view text, const std::string& source, bool annotated) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin != text.npos && text[begin] == '[')
    throw DataError("is a list, such as of results",
                    fmt::format("{}; results are for setting 'results'", kWhatItHolds));
  Lists lists;
  for_each_member(text, source, [&](std::string_view name, std::string_view value) {
    if (name == "images") lists.images = value;
    if (name == "annotations") lists.annotations = value;
    if (name == "categories") lists.categories = value;
  });
  for (const auto& [list, name] : {std::pair{lists.images, "images"}, std::pair{lists.annotations, "annotations"},
                                   std::pair{lists.categories, "categories"}}) {
    if (list.empty() && (annotated || name != std::string_view("annotations")))
      throw DataError(fmt::format("the key \"{}\" is missing", name));
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

// The member, or nullptr where it is missing or null.
const Json* member_of(const Json& of, std::string_view key) {
  if (!of.is_object()) throw DataError("it is no JSON object");
  const Json* member = of.find(key);
  return member && member->is_null() ? nullptr : member;
}

const Json& required(const Json& of, std::string_view key) {
  const Json* member = member_of(of, key);
  if (!member) throw DataError(fmt::format("its \"{}\" is missing", key));
  return *member;
}

std::optional<std::int64_t> whole_number(const Json& value) {
  constexpr double kFarthest = 9007199254740992;  // 2^53: doubles below it hold every whole number
  if (value.is_integer()) return value.as_integer();
  if (value.is_bool()) return value.as_bool() ? 1 : 0;
  const double number = value.is_number() ? value.as_number() : HUGE_VAL;
  if (!(std::abs(number) <= kFarthest) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

// Calls read(), and puts before what it throws whose members it reads.
template <typename Read>
void read_members(const std::string& owner, const Read& read) try {
  read();
} catch (const DataError& error) {
  throw DataError(fmt::format("{}: {}", owner, error.what()));
}

const std::string& text_in(const Json& member, std::string_view key) {
  if (!member.is_string()) throw DataError(fmt::format("its \"{}\" is no text", key));
  return member.as_string();
}

int side_of(const Json& image, std::string_view key) {
  if (!member_of(image, key)) return 0;
  const double value = coco_real(image, key);
  if (!(value > 0 && value <= static_cast<double>(kMostObjectsSide)))
    throw DataError(fmt::format("its \"{}\" is {}", key, value));
  return static_cast<int>(value);
}

CocoPicture picture_of(const Json& image) {
  CocoPicture picture;
  read_members("an image", [&] { picture.id = coco_whole(image, "id"); });
  if (picture.id < 0) throw DataError(fmt::format("image id {} is negative", picture.id));
  read_members(fmt::format("image {}", picture.id), [&] {
    if (const Json* file = member_of(image, "file_name")) picture.file = text_in(*file, "file_name");
    picture.height = side_of(image, "height");
    picture.width = side_of(image, "width");
  });
  return picture;
}

CocoCategory category_of(const Json& json) {
  CocoCategory category;
  read_members("a category", [&] { category.id = coco_whole(json, "id"); });
  read_members(fmt::format("category {}", category.id),
               [&] { category.name = text_in(required(json, "name"), "name"); });
  return category;
}

void refuse_equal_ids(const std::vector<CocoPicture>& pictures) {
  std::unordered_map<std::int64_t, const CocoPicture*> seen;
  const auto name_of = [](const CocoPicture& picture) { return picture.file.empty() ? "no file_name" : picture.file; };
  for (const CocoPicture& picture : pictures) {
    const auto [first, is_new] = seen.emplace(picture.id, &picture);
    if (is_new) continue;
    throw DataError(
        fmt::format("two images have the id {}: {} and {}", picture.id, name_of(*first->second), name_of(picture)));
  }
}

enum class MasksOf { none, objects_without_box, all };

class ObjectReader {
 public:
  ObjectReader(const CocoSet& set, MasksOf masks) : set_(set), masks_(masks) {
    for (const CocoPicture& picture : set.pictures) pictures_.emplace(picture.id, &picture);
  }

  CocoObject operator()(const Json& json) const {
    CocoObject object;
    try {
      read(json, object);
    } catch (const DataError& error) {
      object.fault = error.what();
    }
    return object;
  }

 private:
  // First what names the object and its picture, so that a fault behind it can say where it is.
  void read(const Json& json, CocoObject& object) const {
    Annotation& annotation = object.annotation;
    const Json* const id = member_of(json, "id");
    const std::optional<std::int64_t> number = id ? whole_number(*id) : std::nullopt;
    object.has_id = number.has_value();
    annotation.id = static_cast<std::uint64_t>(number.value_or(0));
    object.picture = coco_whole(json, "image_id");
    if (id && !number) coco_whole(json, "id");  // throws
    object.category = coco_whole(json, "category_id");
    annotation.label = set_.label_of(object.category);
    const Json* const bbox = member_of(json, "bbox");
    if (bbox) annotation.box = coco_box(*bbox);
    annotation.crowd = member_of(json, "iscrowd") && coco_whole(json, "iscrowd") != 0;
    if (masks_ == MasksOf::all || (masks_ == MasksOf::objects_without_box && !bbox)) read_mask(json, object);
    if (!bbox) annotation.box = box_around_mask(json, annotation);
    annotation.area = member_of(json, "area") ? coco_real(json, "area") : annotation.box.area();
  }

  // Of an object without a box.
  static PixelBox box_around_mask(const Json& json, const Annotation& annotation) {
    PixelBox box;
    if (!annotation.polygons.empty()) box = box_of_polygons(annotation.polygons);
    if (!annotation.runs.empty()) box = mask_box(coco_runs(required(json, "segmentation")));
    if (!(box.area() > 0)) required(json, "bbox");  // throws
    return box;
  }

  void read_mask(const Json& json, CocoObject& object) const {
    const Json* segmentation = member_of(json, "segmentation");
    const auto picture = pictures_.find(object.picture);
    if (!segmentation || picture == pictures_.end()) return;
    object.polygons_left_out =
        read_coco_mask(*segmentation, picture->second->height, picture->second->width, object.annotation);
  }

  const CocoSet& set_;
  MasksOf masks_;
  std::unordered_map<std::int64_t, const CocoPicture*> pictures_;
};

CocoSet read_names(const Lists& lists, const std::string& source) {
  CocoSet set;
  set.categories = parse_all<CocoCategory>(lists.categories, source, {}, category_of);
  std::ranges::stable_sort(set.categories, {}, &CocoCategory::id);
  const auto twice = std::ranges::adjacent_find(set.categories, {}, &CocoCategory::id);
  if (twice != set.categories.end()) throw DataError(fmt::format("two categories have the id {}", twice->id));
  set.pictures = parse_all<CocoPicture>(lists.images, source, {}, picture_of);
  refuse_equal_ids(set.pictures);
  return set;
}

void read_objects(const Lists& lists, const std::string& source, MasksOf masks, CocoSet& set) {
  constexpr std::array<std::string_view, 1> kMasks{"segmentation"};
  const auto without = masks == MasksOf::none ? std::span(kMasks) : std::span<const std::string_view>();
  set.objects = parse_all<CocoObject>(lists.annotations, source, without, ObjectReader(set, masks));
}

[[noreturn]] void refuse(const DataError& error, const std::string& source) {
  const std::string what = error.what();
  throw DataError(what.starts_with(source) ? what : fmt::format("{}: {}", source, what),
                  error.hint().empty() ? kWhatItHolds : error.hint());
}

CocoSet read_set(std::string_view text, const std::string& source, MasksOf masks) try {
  const Lists lists = find_lists(text, source, true);
  CocoSet set = read_names(lists, source);
  read_objects(lists, source, masks, set);
  return set;
} catch (const DataError& error) {
  refuse(error, source);
}

}  // namespace

std::int32_t CocoSet::label_of(std::int64_t category) const {
  const auto found = std::ranges::lower_bound(categories, category, {}, &CocoCategory::id);
  if (found == categories.end() || found->id != category) return -1;
  return static_cast<std::int32_t>(found - categories.begin());
}

std::string CocoSet::name_of(const CocoObject& object) const {
  if (object.has_id) return fmt::format("annotation {}", object.annotation.id);
  return fmt::format("annotation number {}", &object - objects.data() + 1);
}

std::vector<std::string_view> coco_elements(std::string_view text, const std::string& source) {
  std::vector<std::string_view> elements;
  for_each_element(text, source, [&](std::string_view element) { elements.push_back(element); });
  return elements;
}

CocoSet read_coco(std::string_view text, const std::string& source, bool masks) {
  return read_set(text, source, masks ? MasksOf::all : MasksOf::none);
}

CocoSet read_coco_boxes(std::string_view text, const std::string& source) {
  return read_set(text, source, MasksOf::objects_without_box);
}

CocoSet read_coco_names(std::string_view text, const std::string& source) try {
  return read_names(find_lists(text, source, false), source);
} catch (const DataError& error) {
  refuse(error, source);
}

std::int64_t coco_whole(const Json& of, std::string_view key) {
  const std::optional<std::int64_t> number = whole_number(required(of, key));
  if (!number) throw DataError(fmt::format("its \"{}\" is no whole number", key));
  return *number;
}

double coco_real(const Json& of, std::string_view key) {
  const Json& value = required(of, key);
  if (!value.is_number()) throw DataError(fmt::format("its \"{}\" is no number", key));
  return value.as_number();
}

PixelBox coco_box(const Json& bbox) {
  const bool is_list = bbox.is_array() && bbox.as_array().size() == 4;
  if (!is_list || !std::ranges::all_of(bbox.as_array(), &Json::is_number))
    throw DataError("its \"bbox\" is no list of four numbers");
  const Json::Array& sides = bbox.as_array();
  return {sides[0].as_number(), sides[1].as_number(), sides[2].as_number(), sides[3].as_number()};
}

const Json* coco_bbox(const Json& result) {
  const Json* const bbox = member_of(result, "bbox");
  return bbox && *bbox == Json::array() ? nullptr : bbox;
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

std::size_t read_coco_mask(const Json& segmentation, int height, int width, Annotation& object) {
  if (segmentation.is_object()) {
    Rle mask = coco_runs(segmentation);
    if (height > 0 && width > 0 && (mask.h != height || mask.w != width)) {
      throw DataError(
          fmt::format("its mask is of {}x{} pixels and its picture of {}x{}", mask.w, mask.h, width, height));
    }
    object.runs = std::move(mask.runs);
    return 0;
  }
  std::size_t left_out = 0;
  const auto add_polygon = [&](const Json::Array& numbers) {
    std::vector<double> corners;
    corners.reserve(numbers.size());
    for (const Json& number : numbers) corners.push_back(number.as_number());
    if (fault_of_corners(corners)) {
      ++left_out;
    } else {
      object.polygons.push_back(std::move(corners));
    }
  };
  const Json::Array& parts = segmentation.as_array();
  if (!parts.empty() && std::ranges::all_of(parts, &Json::is_number)) {
    add_polygon(parts);  // some programs write the only polygon without the list around it
  } else {
    for (const Json& polygon : parts) add_polygon(polygon.as_array());
  }
  return left_out;
}

}  // namespace dtrain::data
