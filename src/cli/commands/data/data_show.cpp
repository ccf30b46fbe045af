#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/temporaries.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/contact_sheet.hpp>

#include "cli/command.hpp"
#include "config/data_options.hpp"

namespace dtrain::cli {
namespace {

constexpr int kMostClasses = 1 << 20;  // labels are not looked at here
constexpr int kLargestSide = 224;

struct ShowCommand {
  config::DataOptions data;
  Path files, out = "sheet.png";
  int count = 32, first = 0, columns = 8, zoom = 1, epoch = 0;
  std::uint64_t seed = 0;
};

void bind(config::OptionSet& set, ShowCommand& options) {
  options.data.threads = usable_cpus();
  options.data.classes = kMostClasses;
  set.group("Options")
      .add("FILES", options.files, "record files: a prefix, a pattern, or names separated by commas")
      .required = true;
  set.add("--out", options.out, "PNG file to write");
  set.add("--count", options.count, "N", "number of images to show", config::between(1, 10000));
  set.add("--first", options.first, "N", "index of the first image to show, counted from 0", config::at_least(0));
  set.add("--columns", options.columns, "N", "number of images in a row", config::between(1, 1000));
  set.add("--zoom", options.zoom, "N", "magnification: side of the square that shows one pixel",
          config::between(1, 64));
  set.add("--epoch", options.epoch, "N", "epoch for which the augmentation is drawn", config::at_least(0));
  set.add("--seed", options.seed, "N", "random seed for the augmentation");
  config::bind_image(set, options.data);
  set.find("image-shape")->help =
      "size of the network's input: channels, height, width (default the size of the first image)";
  config::bind_augmentation(set, options.data);
}

// Without --image-shape: the first image's own size, as far as that makes a sheet one can look at.
nn::Shape own_shape(const Path& files) {
  const data::RecordSet set(data::find_records(files.string()));
  data::Record record;
  data::Image image;
  set.read(0, record);
  data::decode_image(record.payload, data::kStoredChannels, image);
  return {image.c, std::min(image.h, kLargestSide), std::min(image.w, kLargestSide)};
}

struct Sheet {
  data::Image picture;
  std::vector<std::int32_t> labels;  // of its images, row by row
};

Sheet draw_sheet(const ShowCommand& options, const config::DataOptions& data) {
  data::LoaderOptions loading = training_loader(data, options.seed);
  loading.shuffle = false;
  data::Loader loader(options.files, loading);
  const int left = static_cast<int>(loader.size()) - options.first;
  if (left <= 0) {
    throw UsageError(fmt::format("--first {}: the files hold only {} records", options.first, loader.size()));
  }
  const auto first = static_cast<std::uint64_t>(options.first);
  loader.start(static_cast<std::uint32_t>(options.epoch), {{first, std::min(left, options.count)}});
  const data::Batch batch = *loader.next();
  return {
      data::contact_sheet(batch, loading.shape, loading.augment, {.columns = options.columns, .zoom = options.zoom}),
      {batch.labels, batch.labels + batch.n}};
}

// A picture that was drawn before may be replaced; nothing else is.
void refuse_to_overwrite(const Path& out) {
  if (!std::filesystem::is_regular_file(out)) return;
  if (data::detect_encoding(bytes_of(read_file(out))) == data::Encoding::png) return;
  throw UsageError(fmt::format("--out {}: is there and is no PNG file", out.string()),
                   "name a new file, or remove that one first");
}

Json label_json(std::int32_t label, const std::vector<std::string>& names) {
  Json json = Json::object({{"label", label}});
  if (label < std::ssize(names)) json["name"] = names[static_cast<std::size_t>(label)];
  return json;
}

// One line for each row of the sheet.
void answer_labels(const Sheet& sheet, int columns, const std::vector<std::string>& names, Reporter& reporter) {
  const auto in_row = static_cast<std::size_t>(columns);
  for (std::size_t first = 0; first < sheet.labels.size(); first += in_row) {
    std::vector<std::string> row;
    for (std::size_t i = first; i < std::min(first + in_row, sheet.labels.size()); ++i) {
      row.push_back(data::label_text(sheet.labels[i], names));
    }
    reporter.answer(fmt::format("row {}: {}", first / in_row + 1, join(row, ", ")));
  }
}

ExitCode act(const ShowCommand& options, const config::OptionSet& set, Reporter& reporter) {
  config::require_records(options.files);
  refuse_to_overwrite(options.out);
  config::DataOptions data = options.data;
  if (!set.chosen("image-shape")) data.image = own_shape(options.files);
  const Sheet sheet = draw_sheet(options, data);
  remove_abandoned_temporaries(options.out.parent_path(), options.out.filename().string());
  write_file_atomic(options.out, data::encode_image(sheet.picture, data::Encoding::png));
  const std::vector<std::string> names = data::class_names(data::find_records(options.files.string()));
  if (reporter.json()) {
    Json images = Json::array();
    for (const std::int32_t label : sheet.labels) images.push_back(label_json(label, names));
    reporter.answer_json(Json::object({{"schema", "dtrain.data-show/1"},
                                       {"file", options.out.string()},
                                       {"image_shape", Json::array({data.image.c, data.image.h, data.image.w})},
                                       {"height", sheet.picture.h},
                                       {"width", sheet.picture.w},
                                       {"images", images}}));
  } else {
    reporter.answer(fmt::format("{}  {}x{} pixels", options.out.string(), sheet.picture.w, sheet.picture.h));
    answer_labels(sheet, options.columns, names, reporter);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_data_show() {
  auto command = make_command<ShowCommand>("data show", "draw augmented samples as the network sees them", act);
  command->first_options = {"out", "count", "image-shape", "zoom"};
  command->examples = {"dtrain data show d/shapes_train.rec --out sheet.png --pad-size 4 --zoom 2",
                       "dtrain data show p --image-shape 3,224,224 --random-resized-crop 1"};
  command->see_also = {"data ls", "data verify"};
  return command;
}

}  // namespace dtrain::cli
