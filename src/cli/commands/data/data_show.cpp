#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/temporaries.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/contact_sheet.hpp>

#include "cli/command.hpp"
#include "cli/commands/train/output_places.hpp"
#include "cli/own_outputs.hpp"
#include "cli/printable.hpp"
#include "config/data_options.hpp"
#include "plot/draw_objects.hpp"

namespace dtrain::cli {
namespace {

constexpr int kLargestSide = 224;
constexpr int kLargestScene = 480;  // of pictures with boxes, which are shown whole

struct ShowCommand {
  config::DataOptions data;
  Path files, out = "sheet.png";
  int count = 32, first = 0, columns = 8, zoom = 1, epoch = 0;
  std::uint64_t seed = 0;
};

void bind(config::OptionSet& set, ShowCommand& options) {
  options.data.threads = usable_cpus();
  set.group("Options")
      .add("FILES", options.files, "record files: a prefix, a pattern, or names separated by commas")
      .required = true;
  set.add("--out", options.out, "PNG file to write; only a picture that dtrain drew is replaced");
  set.add("--count", options.count, "N", "number of images to show", config::between(1, 10000));
  set.add("--first", options.first, "N", "index of the first image to show, counted from 0", config::at_least(0));
  set.add("--columns", options.columns, "N", "number of images in a row", config::between(1, 1000));
  set.add("--zoom", options.zoom, "N", "magnification: side of the square that shows one pixel",
          config::between(1, 64));
  set.add("--epoch", options.epoch, "N", "epoch for which the augmentation is drawn", config::at_least(0));
  set.add("--seed", options.seed, "N", "random seed for the augmentation");
  config::bind_image_of_any_class(set, options.data);
  set.find("image-shape")->help =
      "size of the network's input: channels, height, width (default the size of the first image)";
  config::bind_augmentation(set, options.data);
}

// What the files are shown as.
struct Shown {
  nn::Shape shape;                                // without --image-shape
  std::optional<data::DetectionInput> detection;  // of records with boxes
};

// The first image's own size, as far as that makes a sheet one can look at.
nn::Shape own_shape(const data::Image& image, bool boxes) {
  if (!boxes) return {image.c, std::min(image.h, kLargestSide), std::min(image.w, kLargestSide)};
  const data::ScaledSize size = data::scaled_size(image.h, image.w, {.longest_edge = kLargestScene}, image.h, image.w);
  return {image.c, size.height, size.width};
}

// Masks are drawn where all objects of the first pictures have one.
Shown look_at(const Path& files) {
  constexpr std::size_t kLookAt = 64;
  const data::RecordSet set(data::find_records(files.string()));
  data::Record record;
  data::Image image;
  set.read(0, record);
  data::decode_image(record.payload, data::kStoredChannels, image);
  const bool boxes = data::has_boxes(record.labels);
  Shown shown{own_shape(image, boxes), {}};
  if (!boxes) return shown;
  shown.detection = data::DetectionInput{.masks = true};
  for (std::size_t i = 0; i < std::min(kLookAt, set.size()); ++i) {
    set.read(i, record);
    if (record.objects.empty()) {
      shown.detection->masks = false;
      continue;
    }
    for (const data::Annotation& object : data::read_objects_block(record.objects).objects)
      shown.detection->masks = shown.detection->masks && object.has_mask();
  }
  return shown;
}

struct SheetObject {
  std::int32_t label = 0;
  bool crowd = false;
  nn::Box box;
};

std::string object_name(std::int32_t label, std::span<const std::string> names) {
  return label >= 0 && label < std::ssize(names) ? names[static_cast<std::size_t>(label)] : fmt::format("{}", label);
}

struct Sheet {
  data::Image picture;
  std::vector<std::int32_t> labels;               // of its images, row by row
  std::vector<std::vector<SheetObject>> objects;  // of each image; empty: the records have no boxes
};

using Names = std::vector<std::string>;

void draw_scene(const nn::PictureObjects& scene, const nn::Shape& shape, const plot::ShownAt& at, const Names& names,
                Sheet& sheet) {
  const auto pixels = static_cast<std::size_t>(shape.h) * static_cast<std::size_t>(shape.w);
  std::vector<plot::ShownObject> shown;
  for (std::size_t k = 0; k < scene.boxes.size(); ++k) {
    const nn::Box& box = scene.boxes[k];
    sheet.objects.back().push_back({scene.classes[k], scene.crowd[k] != 0, box});
    plot::ShownObject object{.box = {box.left, box.top, box.right - box.left, box.bottom - box.top},
                             .label = scene.classes[k],
                             .text = object_name(scene.classes[k], names),
                             .crowd = scene.crowd[k] != 0};
    if (!scene.masks.empty()) object.mask = std::span(scene.masks).subspan(k * pixels, pixels);
    object.mask_width = shape.w;
    shown.push_back(std::move(object));
  }
  plot::draw_objects(shown, at, sheet.picture);
}

// Boxes have colours, also on grey pictures.
void give_colour(data::Image& picture) {
  if (picture.c == 3) return;
  std::vector<std::uint8_t> pixels;
  for (const std::uint8_t value : picture.pixels) pixels.insert(pixels.end(), 3, value);
  picture.c = 3;
  picture.pixels = std::move(pixels);
}

// All of it is held in memory, and few programs open a larger picture.
void refuse_large_sheet(int count, const nn::Shape& shape, const data::ContactSheet& layout) {
  constexpr std::int64_t kMostPixels = 1 << 28;
  const std::int64_t columns = std::min(count, layout.columns), rows = (count + columns - 1) / columns;
  const std::int64_t width = columns * (std::int64_t{shape.w} * layout.zoom + layout.gap) + layout.gap;
  const std::int64_t height = rows * (std::int64_t{shape.h} * layout.zoom + layout.gap) + layout.gap;
  if (width * height <= kMostPixels) return;
  throw UsageError(
      fmt::format("the sheet would have {} x {} pixels, more than the {} that are drawn", width, height, kMostPixels),
      layout.zoom > 1 ? "give a smaller --zoom, --count or --image-shape" : "give a smaller --count or --image-shape");
}

Sheet draw_sheet(const ShowCommand& options, const config::DataOptions& data, const Shown& shown, const Names& names) {
  data::LoaderOptions loading = training_loader(data, options.seed);
  loading.shuffle = false;
  loading.names_bad_limit = false;
  loading.detection = shown.detection;
  data::Loader loader(options.files, loading);
  const int left = static_cast<int>(loader.size()) - options.first;
  if (left <= 0) {
    throw UsageError(fmt::format("--first {}: the files hold only {} records", options.first, loader.size()));
  }
  const int count = std::min(left, options.count);
  const data::ContactSheet layout{.columns = options.columns, .zoom = options.zoom};
  refuse_large_sheet(count, loading.shape, layout);
  const auto first = static_cast<std::uint64_t>(options.first);
  loader.start(static_cast<std::uint32_t>(options.epoch), {{first, count}});
  const data::Batch batch = *loader.next();
  Sheet sheet{
      data::contact_sheet(batch, loading.shape, loading.augment, layout), {batch.labels, batch.labels + batch.n}, {}};
  if (batch.objects) give_colour(sheet.picture);
  for (int i = 0; batch.objects && i < batch.n; ++i) {
    const data::SheetPlace place = data::sheet_place(i, batch.n, loading.shape, layout);
    sheet.objects.emplace_back();
    draw_scene(batch.objects[i], loading.shape,
               {place.left, place.top, options.zoom, options.zoom * loading.shape.h, options.zoom * loading.shape.w},
               names, sheet);
  }
  return sheet;
}

Json label_json(std::int32_t label, const Names& names) {
  Json json = Json::object({{"label", label}});
  if (label < std::ssize(names)) json["name"] = names[static_cast<std::size_t>(label)];
  return json;
}

// Boxes are in pixels of the network's input.
Json objects_json(const std::vector<SheetObject>& objects, const Names& names) {
  Json list = Json::array();
  for (const SheetObject& object : objects) {
    Json json = label_json(object.label, names);
    json["crowd"] = object.crowd;
    json["box"] = Json::array({static_cast<double>(object.box.left), static_cast<double>(object.box.top),
                               static_cast<double>(object.box.right), static_cast<double>(object.box.bottom)});
    list.push_back(std::move(json));
  }
  return Json::object({{"objects", list}});
}

Json images_json(const Sheet& sheet, const Names& names) {
  Json images = Json::array();
  for (std::size_t i = 0; i < sheet.labels.size(); ++i)
    images.push_back(sheet.objects.empty() ? label_json(sheet.labels[i], names)
                                           : objects_json(sheet.objects[i], names));
  return images;
}

// One line for each row of the sheet.
void answer_labels(const Sheet& sheet, int columns, const Names& names, Reporter& reporter) {
  const auto in_row = static_cast<std::size_t>(columns);
  for (std::size_t first = 0; first < sheet.labels.size(); first += in_row) {
    std::vector<std::string> row;
    for (std::size_t i = first; i < std::min(first + in_row, sheet.labels.size()); ++i) {
      row.push_back(data::label_text(sheet.labels[i], names));
    }
    reporter.answer(fmt::format("row {}: {}", first / in_row + 1, join(row, ", ")));
  }
}

// One line for each image.
void answer_objects(const Sheet& sheet, const ShowCommand& options, const Names& names, Reporter& reporter) {
  for (std::size_t i = 0; i < sheet.objects.size(); ++i) {
    std::vector<std::string> shown;
    for (const SheetObject& object : sheet.objects[i])
      shown.push_back(printable_word(object_name(object.label, names)) + (object.crowd ? " (crowd)" : ""));
    reporter.answer(fmt::format("record {}: {}", static_cast<std::size_t>(options.first) + i,
                                shown.empty() ? "no objects" : join(shown, ", ")));
  }
}

ExitCode act(const ShowCommand& options, const config::OptionSet& set, Reporter& reporter) {
  require_on_this_machine({"--out", options.out}, "file");
  config::require_records(options.files);
  require_ending("--out", options.out, {".png"});
  refuse_to_replace_picture("--out", options.out);
  config::DataOptions data = options.data;
  const Shown shown = look_at(options.files);
  if (!set.chosen("image-shape")) data.image = shown.shape;
  const Names names = data::class_names_to_show(data::find_records(options.files.string()),
                                                [&](const std::string& text) { reporter.warn(text); });
  make_folder(options.out.parent_path());
  const Sheet sheet = draw_sheet(options, data, shown, names);
  remove_abandoned_temporaries(options.out.parent_path(), options.out.filename().string());
  write_file_atomic(options.out, data::encode_own_png(sheet.picture));
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.data-show/1"},
                                       {"file", options.out.string()},
                                       {"image_shape", Json::array({data.image.c, data.image.h, data.image.w})},
                                       {"height", sheet.picture.h},
                                       {"width", sheet.picture.w},
                                       {"images", images_json(sheet, names)}}));
  } else {
    reporter.answer(fmt::format("{}  {}x{} pixels", options.out.string(), sheet.picture.w, sheet.picture.h));
    if (shown.detection) {
      answer_objects(sheet, options, names, reporter);
    } else {
      answer_labels(sheet, options.columns, names, reporter);
    }
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_data_show() {
  auto command = make_command<ShowCommand>(
      "data show", "draw augmented samples, with their boxes and masks, as the network sees them", act);
  command->first_options = {"out", "count", "image-shape", "zoom"};
  command->examples = {"dtrain data show d/shapes_train.rec --out sheet.png --pad-size 4 --zoom 2",
                       "dtrain data show p --image-shape 3,224,224 --random-resized-crop 1"};
  command->see_also = {"data ls", "data verify"};
  return command;
}

}  // namespace dtrain::cli
