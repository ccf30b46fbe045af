#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json_without.hpp>

#include "pack_sources.hpp"

namespace dtrain::data {
namespace {

struct Box {
  float category = 0;
  double left = 0, top = 0, width = 0, height = 0;
  double area() const { return width * height; }
};
using Boxes = std::map<std::int64_t, std::vector<Box>>;  // by image

std::map<std::int64_t, std::string> categories_of(const Json& document) {
  std::map<std::int64_t, std::string> names;
  for (const Json& category : document.at("categories").as_array()) {
    names[category.at("id").as_integer()] = category.at("name").as_string();
  }
  return names;
}

Box box_of(const Json& annotation) {
  const Json::Array& sides = annotation.at("bbox").as_array();
  if (sides.size() != 4) throw DataError("a bbox has four numbers");
  return {0, sides[0].as_number(), sides[1].as_number(), sides[2].as_number(), sides[3].as_number()};
}

Boxes boxes_of(const Json& document, const std::map<std::int64_t, std::string>& categories) {
  Boxes boxes;
  for (const Json& annotation : document.at("annotations").as_array()) {
    const Json* crowd = annotation.find("iscrowd");
    if (crowd && crowd->as_integer() != 0) continue;
    const auto category = categories.find(annotation.at("category_id").as_integer());
    if (category == categories.end()) {
      throw DataError(fmt::format("category {} of an annotation is not among the categories",
                                  annotation.at("category_id").as_integer()));
    }
    Box box = box_of(annotation);
    box.category = static_cast<float>(std::distance(categories.begin(), category));
    boxes[annotation.at("image_id").as_integer()].push_back(box);
  }
  return boxes;
}

std::vector<float> detection_labels(const Json& image, const std::vector<Box>& boxes) {
  const double width = image.at("width").as_number(), height = image.at("height").as_number();
  if (!(width > 0 && height > 0)) throw DataError("an image's width or height is not above 0");
  std::vector<float> labels{2, 5};  // the length of this header, and of each box
  for (const Box& box : boxes) {
    for (const double value : {static_cast<double>(box.category), box.left / width, box.top / height,
                               (box.left + box.width) / width, (box.top + box.height) / height}) {
      labels.push_back(static_cast<float>(value));
    }
  }
  return labels;
}

std::vector<float> labels_of(const Json& image, const std::vector<Box>& boxes, CocoLabels kind) {
  if (kind == CocoLabels::boxes) return detection_labels(image, boxes);
  const auto larger = [](const Box& a, const Box& b) { return a.area() < b.area(); };
  return {std::max_element(boxes.begin(), boxes.end(), larger)->category};  // the first of equal ones
}

void list_pictures(const Json& document, CocoLabels kind, PackList& list) {
  const std::map<std::int64_t, std::string> categories = categories_of(document);
  for (const auto& [id, name] : categories) list.classes.push_back(name);
  const Boxes boxes = boxes_of(document, categories);
  for (const Json& image : document.at("images").as_array()) {
    const std::int64_t id = image.at("id").as_integer();
    const auto found = boxes.find(id);
    if (found == boxes.end()) {
      ++list.unlabelled;
      continue;
    }
    if (id < 0) throw DataError(fmt::format("image id {} is negative", id));
    list.items.push_back(
        {static_cast<std::uint64_t>(id), labels_of(image, found->second, kind), image.at("file_name").as_string()});
  }
}

}  // namespace

std::vector<std::string> coco_label_names() { return {"largest", "boxes"}; }

std::optional<CocoLabels> parse_coco_labels(std::string_view name) {
  if (name == "largest") return CocoLabels::largest;
  return name == "boxes" ? std::optional(CocoLabels::boxes) : std::nullopt;
}

PackList parse_coco(std::string_view text, const Path& json, const Path& root, CocoLabels labels) {
  // Most of a file of 450 MB.
  constexpr std::array<std::string_view, 6> kUnused{"segmentation", "coco_url",      "flickr_url",
                                                    "license",      "date_captured", "licenses"};
  const Json document = parse_json_without(text, json.string(), kUnused);
  PackList list;
  list.root = root;
  try {
    list_pictures(document, labels, list);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", json.string(), error.what()),
                    "COCO's detection files hold images, annotations and categories");
  }
  return list;
}

}  // namespace dtrain::data
