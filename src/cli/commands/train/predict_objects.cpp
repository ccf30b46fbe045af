#include "predict_objects.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/csv.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/contact_sheet.hpp>

#include "cli/own_outputs.hpp"
#include "cli/printable.hpp"
#include "output_places.hpp"
#include "plot/draw_objects.hpp"

namespace dtrain::cli {
namespace {

constexpr std::string_view kResultsHead = "[";

const std::string& name_of(const train::FoundObject& object, const std::vector<std::string>& names) {
  return names[static_cast<std::size_t>(object.category)];
}

Json box_json(const data::PixelBox& box) { return Json::array({box.left, box.top, box.width, box.height}); }

// As COCO's results have it.
Json mask_json(const data::Rle& mask) {
  return Json::object({{"size", Json::array({mask.h, mask.w})}, {"counts", data::text_of_runs(mask)}});
}

// The mask at the size of a drawn picture; empty where the object has none.
std::vector<std::uint8_t> drawn_mask(const train::FoundObject& object, const data::Image& picture) {
  if (!object.mask) return {};
  return data::mask_at(*object.mask, {picture.h, picture.w});
}

}  // namespace

void bind_objects(config::OptionSet& set, ObjectsChoice& choice) {
  set.group("Answers of a detector");
  set.add("--min-score", choice.min_score, "SHARE", "score from which an object is named and drawn",
          config::between(0, 1));
  set.add("--coco-results", choice.results,
          "JSON file to write with all that is found, also below --min-score, in COCO's results format; needs "
          "--annotations");
  set.add("--annotations", choice.annotations,
          "COCO JSON file whose numbers of pictures and classes --coco-results uses; pictures are found by the names "
          "of their files and folders");
}

std::string draw_found(const std::string& content, const std::vector<train::FoundObject>& found,
                       const std::vector<std::string>& names) {
  constexpr int kLegible = 640;  // names are readable on a picture of this side
  data::Image picture;
  data::decode_image(bytes_of(content), data::kStoredChannels, picture);
  const int height = picture.h, width = picture.w;
  picture = data::thumbnail(bytes_of(content), std::max({height, width, kLegible}));
  const double across = static_cast<double>(picture.w) / width, down = static_cast<double>(picture.h) / height;
  std::vector<plot::ShownObject> shown;
  std::vector<std::vector<std::uint8_t>> masks;
  for (const train::FoundObject& object : found) {
    const data::PixelBox& box = object.box;
    masks.push_back(drawn_mask(object, picture));
    shown.push_back({.box = {box.left * across, box.top * down, box.width * across, box.height * down},
                     .label = object.category,
                     .text = fmt::format("{} {:.2f}", printable_word(name_of(object, names)), object.score),
                     .mask = masks.back(),
                     .mask_width = picture.w});
  }
  plot::draw_objects(shown, {}, picture);
  return data::encode_image(picture, data::Encoding::png);
}

ObjectAnswers::ObjectAnswers(const ObjectsChoice& choice, const std::vector<Path>& files,
                             const std::vector<std::string>& names, const Form& form, Reporter& reporter)
    : choice_(choice), names_(names), form_(form), reporter_(reporter) {
  if (!choice.results) return;
  refuse_to_replace_table("--coco-results", *choice.results, {kResultsHead});
  numbers_ = read_coco_numbers(*choice.annotations, files, names);
  make_folder(choice.results->parent_path());
  remove_abandoned(*choice.results);
  results_file_.emplace(*choice.results);
  results_file_->write(kResultsHead);
  warn_of_unlisted_classes();
}

std::vector<train::FoundObject> ObjectAnswers::shown(const std::vector<train::FoundObject>& all) const {
  std::vector<train::FoundObject> shown = all;
  std::erase_if(
      shown, [&](const train::FoundObject& object) { return object.score < static_cast<double>(choice_.min_score); });
  return shown;
}

void ObjectAnswers::found(const Path& file, const std::vector<train::FoundObject>& all, const Path& drawn) {
  keep_results(file, all);
  if (reporter_.json()) {
    answer_json(file, shown(all), drawn);
  } else {
    answer_lines(file, shown(all));
  }
}

void ObjectAnswers::answer_json(const Path& file, const std::vector<train::FoundObject>& shown, const Path& drawn) {
  Json objects = Json::array();
  for (const train::FoundObject& object : shown) {
    Json json = Json::object({{"label", object.category},
                              {"class", name_of(object, names_)},
                              {"score", object.score},
                              {"box", box_json(object.box)}});
    if (object.mask) json["segmentation"] = mask_json(*object.mask);
    objects.push_back(std::move(json));
  }
  Json answer =
      Json::object({{"schema", "dtrain.predict-objects/1"}, {"path", file.string()}, {"objects", std::move(objects)}});
  if (!drawn.empty()) answer["drawn"] = drawn.string();
  reporter_.answer_json(answer);
}

// A picture without objects has one line, which says so.
void ObjectAnswers::answer_lines(const Path& file, const std::vector<train::FoundObject>& shown) {
  const std::string path = file.string();
  if (!std::exchange(has_heading_, true)) {
    reporter_.answer(
        form_.csv ? std::string("path,label,class,score,left,top,width,height")
                  : reporter_.paint_answer(Style::heading, fmt::format("{:<{}}  {:<{}}     score  box", "path",
                                                                       form_.path_width, "class", form_.class_width)));
  }
  if (shown.empty() && !form_.csv) {
    reporter_.answer(fmt::format("{:<{}}  no object of score {:g} or more", printable_word(path), form_.path_width,
                                 choice_.min_score));
  }
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const data::PixelBox& box = shown[i].box;
    const std::string& name = name_of(shown[i], names_);
    if (form_.csv) {
      reporter_.answer(fmt::format("{},{},{},{:.9g},{:.2f},{:.2f},{:.2f},{:.2f}", csv_field(path), shown[i].category,
                                   csv_field(name), shown[i].score, box.left, box.top, box.width, box.height));
    } else {
      reporter_.answer(fmt::format("{:<{}}  {:<{}}  {:>8.4f}  {:.0f}x{:.0f} at {:.0f},{:.0f}",
                                   i == 0 ? printable_word(path) : "", form_.path_width, printable_word(name),
                                   form_.class_width, shown[i].score, box.width, box.height, box.left, box.top));
    }
  }
}

// Before the first picture: what is found hours later is not lost for one class.
void ObjectAnswers::warn_of_unlisted_classes() const {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> unlisted;
  for (std::size_t label = 0; label < names_.size(); ++label) {
    if (!numbers_->categories[label]) unlisted.push_back(printable_word(names_[label]));
  }
  if (unlisted.empty()) return;
  const std::size_t count = unlisted.size();
  unlisted.resize(std::min(count, kShown));
  reporter_.warn(fmt::format(
      "{} has no category {}{}, which the network finds: {} gets no object of {}; give the annotations of the classes "
      "that the network was trained on",
      choice_.annotations->string(), join(unlisted, ", "),
      count > kShown ? fmt::format(" and {} more", count - kShown) : "", choice_.results->string(),
      count == 1 ? "this class" : "these classes"));
}

void ObjectAnswers::keep_results(const Path& file, const std::vector<train::FoundObject>& all) {
  if (!numbers_) return;
  const auto picture = numbers_->pictures.find(file);
  if (picture == numbers_->pictures.end()) {
    reporter_.warn(fmt::format("{}: {} has no such file, and {} gets nothing of it", printable_word(file.string()),
                               choice_.annotations->string(), choice_.results->string()));
    return;
  }
  for (const train::FoundObject& object : all) {
    const std::optional<std::int64_t>& category = numbers_->categories[static_cast<std::size_t>(object.category)];
    if (!category) continue;
    Json json = Json::object({{"image_id", picture->second},
                              {"category_id", *category},
                              {"bbox", box_json(object.box)},
                              {"score", object.score}});
    if (object.mask) json["segmentation"] = mask_json(*object.mask);
    if (std::exchange(has_results_, true)) results_file_->write(",\n");
    results_file_->write(json.dump());
  }
}

void ObjectAnswers::finish() {
  if (!results_file_) return;
  results_file_->write("]\n");
  results_file_->commit();
}

}  // namespace dtrain::cli
