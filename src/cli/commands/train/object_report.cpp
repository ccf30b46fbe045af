#include "object_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include <dtrain/base/csv.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/json_without.hpp>
#include <dtrain/data/coco.hpp>
#include <dtrain/data/contact_sheet.hpp>
#include <dtrain/data/image.hpp>

#include "cli/printable.hpp"
#include "output_places.hpp"
#include "plot/draw_objects.hpp"
#include "report_files.hpp"

namespace dtrain::cli {
namespace {

constexpr double kLeastScore = 0.3, kLeastOverlap = 0.5;
constexpr std::size_t kDrawn = 12;
constexpr int kSide = 480, kGap = 4;

struct Found {
  data::Annotation object;
  double score = 0;
  std::string_view text;  // its line of the file, for the mask
};
struct Scene {
  const data::CocoPicture* picture = nullptr;
  std::vector<const data::Annotation*> truths;
  std::vector<Found> found;
  std::size_t mistakes = 0;
};

std::string scores_table(const train::CocoReport& report) {
  std::string table(kObjectBoxHead);
  if (report.masks) table += ",mask_ap,mask_ap50,mask_ap75,mask_ar100";
  const auto figures = [](const train::CocoFigures& of) {
    return fmt::format(",{:.6f},{:.6f},{:.6f},{:.6f}", of.ap, of.ap50, of.ap75, of.ar100);
  };
  for (std::size_t i = 0; i < report.categories.size(); ++i) {
    table += '\n';
    table += csv_field(report.categories[i]);
    if (report.boxes) table += figures(report.boxes->by_category[i]);
    if (report.masks) table += figures(report.masks->by_category[i]);
  }
  return table + "\n";
}

std::map<std::int64_t, Scene> read_scenes(const data::CocoSet& truth, std::string_view results,
                                          const std::string& source) {
  std::map<std::int64_t, Scene> scenes;
  for (const data::CocoPicture& picture : truth.pictures) scenes[picture.id].picture = &picture;
  for (const data::CocoObject& object : truth.objects) {
    const auto scene = scenes.find(object.picture);
    if (scene != scenes.end() && object.annotation.label >= 0) scene->second.truths.push_back(&object.annotation);
  }
  constexpr std::array<std::string_view, 1> kMask{"segmentation"};
  for (const std::string_view text : data::coco_elements(results, source)) {
    const Json json = parse_json_without(text, source, kMask);
    const auto scene = scenes.find(data::coco_whole(json, "image_id"));
    Found found{.object = {}, .score = data::coco_real(json, "score"), .text = text};
    found.object.label = truth.label_of(data::coco_whole(json, "category_id"));
    if (scene == scenes.end() || found.score < kLeastScore || found.object.label < 0) continue;
    const data::CocoPicture& picture = *scene->second.picture;
    if (const Json* box = data::coco_bbox(json)) {
      found.object.box = data::coco_box(*box);
    } else if (picture.height > 0 && picture.width > 0) {
      data::read_coco_mask(Json::parse(text, source).at("segmentation"), picture.height, picture.width, found.object);
      found.object.box = data::mask_box(data::mask_of(found.object, picture.height, picture.width));
    }
    scene->second.found.push_back(std::move(found));
  }
  return scenes;
}

// Found objects take the true one that they cover best, those of the highest score first.
std::size_t mistakes_in(Scene& scene) {
  std::ranges::stable_sort(scene.found, std::greater(), &Found::score);
  std::vector<bool> taken(scene.truths.size());
  std::size_t wrong = 0;
  for (const Found& found : scene.found) {
    std::size_t best = scene.truths.size();
    double most = kLeastOverlap;
    for (std::size_t i = 0; i < scene.truths.size(); ++i) {
      const data::Annotation& truth = *scene.truths[i];
      if (truth.label != found.object.label || (taken[i] && !truth.crowd)) continue;
      const double overlap = data::box_overlap(found.object.box, truth.box, truth.crowd);
      if (overlap >= most) most = overlap, best = i;
    }
    if (best == scene.truths.size()) {
      ++wrong;
    } else {
      taken[best] = true;
    }
  }
  for (std::size_t i = 0; i < scene.truths.size(); ++i) wrong += !taken[i] && !scene.truths[i]->crowd ? 1 : 0;
  return wrong;
}

std::vector<Scene*> worst_of(std::map<std::int64_t, Scene>& scenes) {
  std::vector<Scene*> order;
  for (auto& [id, scene] : scenes) {
    scene.mistakes = mistakes_in(scene);
    if (!scene.truths.empty() || !scene.found.empty()) order.push_back(&scene);
  }
  std::ranges::stable_sort(order, std::greater(), &Scene::mistakes);
  if (order.size() > kDrawn) order.resize(kDrawn);
  return order;
}

// The mask at the size of the drawn picture; empty where the object has none.
std::vector<std::uint8_t> shown_mask(const data::Annotation& object, const data::CocoPicture& picture,
                                     const data::Image& shown) {
  if (!object.has_mask()) return {};
  return data::mask_at(data::mask_of(object, picture.height, picture.width), {shown.h, shown.w});
}

class Sheet {
 public:
  explicit Sheet(int height) {
    picture_ = {.c = 3, .h = height, .w = 2 * (kSide + kGap) + kGap, .pixels = {}};
    picture_.pixels.resize(static_cast<std::size_t>(picture_.h) * static_cast<std::size_t>(picture_.w) * 3, 255);
  }

  // True objects at the left, found ones at the right.
  void add(const Scene& scene, const data::Image& shown, const std::vector<std::string>& names) {
    const auto name_of = [&](std::int32_t label) { return names[static_cast<std::size_t>(label)]; };
    std::vector<std::pair<const data::Annotation*, std::string>> truths, found;
    for (const data::Annotation* truth : scene.truths) truths.emplace_back(truth, name_of(truth->label));
    for (const Found& one : scene.found)
      found.emplace_back(&one.object, fmt::format("{} {:.2f}", name_of(one.object.label), one.score));
    draw(truths, scene, shown, kGap);
    draw(found, scene, shown, 2 * kGap + kSide);
    top_ += shown.h + kGap;
  }
  const data::Image& picture() const { return picture_; }

 private:
  void draw(const std::vector<std::pair<const data::Annotation*, std::string>>& objects, const Scene& scene,
            const data::Image& shown, int left) {
    const data::CocoPicture& picture = *scene.picture;
    for (int y = 0; y < shown.h; ++y) {
      const auto from = shown.pixels.begin() + std::ptrdiff_t{y} * shown.w * 3;
      std::copy(from, from + std::ptrdiff_t{shown.w} * 3,
                picture_.pixels.begin() + (std::ptrdiff_t{top_ + y} * picture_.w + left) * 3);
    }
    const double wide = double(shown.w) / picture.width, high = double(shown.h) / picture.height;
    std::vector<std::vector<std::uint8_t>> masks;
    for (const auto& [object, text] : objects) masks.push_back(shown_mask(*object, picture, shown));
    std::vector<plot::ShownObject> drawn;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      const auto& [object, text] = objects[i];
      const data::PixelBox& box = object->box;
      drawn.push_back({.box = {box.left * wide, box.top * high, box.width * wide, box.height * high},
                       .label = object->label,
                       .text = text,
                       .crowd = object->crowd,
                       .mask = masks[i],
                       .mask_width = shown.w});
    }
    plot::draw_objects(drawn, {left, top_, 1, shown.h, shown.w}, picture_);
  }

  data::Image picture_;
  int top_ = kGap;
};

// Where the folder has the image: as the annotations name it, or without their folders if no other one is called so.
Path file_of(const data::CocoPicture& picture, const data::CocoSet& truth, const Path& pictures) {
  const Path named = Path(picture.file).relative_path();
  const std::string name = named.filename().string();
  std::error_code unreachable;
  if (std::filesystem::exists(pictures / named, unreachable)) return pictures / named;
  const auto is_called_so = [&](const data::CocoPicture& other) {
    return other.file == name || other.file.ends_with("/" + name);
  };
  return std::ranges::count_if(truth.pictures, is_called_so) == 1 ? pictures / name : pictures / named;
}

data::Image draw_worst(const data::CocoSet& truth, std::vector<Scene*> worst, const ObjectReportPlaces& places,
                       ObjectReport& report) {
  std::vector<std::string> names;
  for (const data::CocoCategory& category : truth.categories) names.push_back(printable_word(category.name));
  std::vector<std::pair<Scene*, data::Image>> readable;
  for (Scene* scene : worst) {
    const data::CocoPicture& picture = *scene->picture;
    try {
      if (picture.height < 1 || picture.width < 1) throw DataError("no size");
      readable.emplace_back(scene,
                            data::thumbnail(bytes_of(read_file(file_of(picture, truth, places.pictures))), kSide));
    } catch (const Error&) {  // it is not there, or is no picture: the others are drawn
      ++report.missing;
      continue;
    }
    for (Found& found : scene->found) {
      const Json json = Json::parse(found.text, places.results.string());
      const Json* mask = json.find("segmentation");
      if (mask && !mask->is_null()) data::read_coco_mask(*mask, picture.height, picture.width, found.object);
    }
  }
  int height = kGap;
  for (const auto& [scene, shown] : readable) height += shown.h + kGap;
  Sheet sheet(height);
  for (const auto& [scene, shown] : readable) sheet.add(*scene, shown, names);
  return sheet.picture();
}

}  // namespace

ObjectReport write_object_report(const Path& folder, const train::CocoReport& report,
                                 const ObjectReportPlaces& places) {
  make_folder(folder);
  ObjectReport written;
  const auto write = [&](const char* name, const std::string& content) {
    written.files.push_back(folder / name);
    write_output(written.files.back(), content);
  };
  write("per_class.csv", scores_table(report));
  if (places.pictures.empty()) return written;
  const MappedFile results(places.results), annotations(places.annotations);
  const data::CocoSet truth = data::read_coco(text_of(annotations.bytes()), places.annotations.string(), true);
  auto scenes = read_scenes(truth, text_of(results.bytes()), places.results.string());
  const data::Image sheet = draw_worst(truth, worst_of(scenes), places, written);
  if (sheet.h > kGap) write("objects.png", data::encode_own_png(sheet));
  return written;
}

}  // namespace dtrain::cli
