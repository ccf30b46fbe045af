#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include <dtrain/base/error.hpp>
#include <dtrain/data/coco.hpp>

#include "coco_files.hpp"
#include "pack_sources.hpp"
#include "pictures.hpp"

namespace dtrain::data {
namespace {

constexpr const char* kSizeless =
    "the JSON file has no \"height\" and \"width\" of them, nor can their pictures be read from a folder";

bool has_size(const CocoPicture& picture) { return picture.height > 0 && picture.width > 0; }

// The objects of each picture that can be trained on; the others are counted and named.
class ObjectsByPicture {
 public:
  ObjectsByPicture(CocoSet& set, CocoLabels kind, PackList& list) : set_(set), list_(list) {
    for (const CocoPicture& picture : set.pictures) pictures_.emplace(picture.id, &picture);
    has_masks_ =
        std::ranges::any_of(set.objects, [](const CocoObject& object) { return object.annotation.has_mask(); });
    for (CocoObject& object : set.objects) {
      const auto listed = pictures_.find(object.picture);
      const CocoPicture* const picture = listed == pictures_.end() ? nullptr : listed->second;
      if (const auto fault = fault_in(object, picture, kind)) {
        list_.objects_left_out[*fault].push_back(name_of(object, picture));
      } else {
        if (kind == CocoLabels::boxes && (has_masks_ || object.polygons_left_out > 0)) complete_mask(object, *picture);
        objects_[object.picture].push_back(std::move(object.annotation));
      }
    }
  }

  std::vector<Annotation> take(const CocoPicture& picture) { return std::move(objects_[picture.id]); }

 private:
  static std::optional<std::string> fault_in(const CocoObject& object, const CocoPicture* picture, CocoLabels kind) {
    if (!object.fault.empty()) return object.fault;
    if (!picture) return "its picture is not among the images";
    if (object.annotation.label < 0) return "its category is not among the categories";
    if (has_size(*picture)) return fault_of(object.annotation, picture->height, picture->width);
    return kind == CocoLabels::largest ? std::nullopt : std::optional<std::string>("its picture has no size");
  }

  // The object keeps its box. Where others have masks, a network may learn them, which refuses an object without one.
  void complete_mask(CocoObject& object, const CocoPicture& picture) {
    const bool has_mask = object.annotation.has_mask();
    if (has_masks_ && !has_mask) object.annotation.runs = empty_mask(picture.height, picture.width).runs;
    if (object.polygons_left_out > 0) {
      list_.polygons_left_out.push_back(name_of(object, &picture));
    } else if (!has_mask) {
      list_.without_mask.push_back(name_of(object, &picture));
    }
  }

  std::string name_of(const CocoObject& object, const CocoPicture* picture) const {
    const std::string name = set_.name_of(object);
    if (picture) return fmt::format("{} of {}", name, picture->file);
    return object.picture < 0 ? name : fmt::format("{} of image {}", name, object.picture);
  }

  const CocoSet& set_;
  PackList& list_;
  bool has_masks_ = false;
  std::unordered_map<std::int64_t, const CocoPicture*> pictures_;
  std::unordered_map<std::int64_t, std::vector<Annotation>> objects_;
};

// Of what the picture shows of the box, where its size is known.
double visible_area(const PixelBox& box, const CocoPicture& picture) {
  if (!has_size(picture)) return box.area();
  const auto inside = [](double begin, double length, int end) {
    return std::min(begin + length, static_cast<double>(end)) - std::max(begin, 0.0);
  };
  return inside(box.left, box.width, picture.width) * inside(box.top, box.height, picture.height);
}

// The category of the largest box, the first of equal ones; crowds do not count.
std::vector<float> largest_label(const std::vector<Annotation>& objects, const CocoPicture& picture) {
  std::vector<float> label;
  double largest = 0;
  for (const Annotation& object : objects) {
    const double area = visible_area(object.box, picture);
    if (object.crowd || (!label.empty() && area <= largest)) continue;
    label = {static_cast<float>(object.label)};
    largest = area;
  }
  return label;
}

void give_objects(const CocoPicture& picture, std::vector<Annotation> objects, PackItem& item) {
  const Annotations annotations{picture.height, picture.width, std::move(objects)};
  item.objects = objects_block(annotations);
  item.labels = detection_labels(annotations, item.objects.size());
}

void list_pictures(CocoSet& set, CocoLabels kind, PackList& list) {
  for (const CocoCategory& category : set.categories) list.classes.push_back(category.name);
  ObjectsByPicture objects(set, kind, list);
  for (const CocoPicture& picture : set.pictures) {
    PackItem item{static_cast<std::uint64_t>(picture.id), {}, picture.file};
    if (picture.file.empty()) throw DataError(fmt::format("image {} has no \"file_name\"", picture.id));
    std::vector<Annotation> own = objects.take(picture);
    if (kind == CocoLabels::largest) {
      item.labels = largest_label(own, picture);
    } else {
      if (!has_size(picture)) {
        list.skipped[kSizeless].push_back(picture.file);
        continue;
      }
      if (own.empty()) list.without_objects.push_back(picture.file);
      give_objects(picture, std::move(own), item);
    }
    if (item.labels.empty()) {
      ++list.unlabelled;
    } else {
      list.items.push_back(std::move(item));
    }
  }
}

// The picture would be packed twice, each time with the objects of one image.
void refuse_equal_files(const std::vector<CocoPicture>& pictures) {
  std::unordered_map<std::string_view, std::int64_t> seen;
  for (const CocoPicture& picture : pictures) {
    if (picture.file.empty()) continue;
    const auto [first, is_new] = seen.emplace(picture.file, picture.id);
    if (is_new) continue;
    throw DataError(
        fmt::format("the images {} and {} have the \"file_name\" {}", first->second, picture.id, picture.file),
        "give the annotations of both to one of them");
  }
}

// Pictures in the folder that no image of the file names.
void skip_unlisted(const Path& folder, const CocoSet& set, PackList& list) {
  std::set<Path> listed;
  for (const CocoPicture& picture : set.pictures) listed.insert((list.root / picture.file).lexically_normal());
  std::vector<std::string> others;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (is_picture(entry->path()) && !listed.contains(entry->path().lexically_normal()))
      others.push_back(entry->path().filename().string());
  }
  std::ranges::sort(others);
  if (!others.empty()) list.skipped["no image of the JSON file"] = std::move(others);
}

}  // namespace

std::vector<std::string> coco_label_names() { return {"largest", "boxes"}; }

std::optional<CocoLabels> parse_coco_labels(std::string_view name) {
  if (name == "largest") return CocoLabels::largest;
  return name == "boxes" ? std::optional(CocoLabels::boxes) : std::nullopt;
}

PackList parse_coco(std::string_view text, const Path& json, const Path& root, CocoLabels labels) {
  const bool boxes = labels == CocoLabels::boxes;
  CocoSet set = boxes ? read_coco(text, json.string(), true) : read_coco_boxes(text, json.string());
  CocoPlace place = place_pictures(root, set.pictures);
  PackList list;
  list.root = std::move(place.root);
  list.found_elsewhere = std::move(place.found_elsewhere);
  list.lost_hint = std::move(place.lost_hint);
  try {
    refuse_equal_files(set.pictures);
    if (boxes) read_missing_sizes(list.root, set.pictures);
    list_pictures(set, labels, list);
    if (boxes) skip_unlisted(root, set, list);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", json.string(), error.what()), error.hint());
  }
  return list;
}

}  // namespace dtrain::data
