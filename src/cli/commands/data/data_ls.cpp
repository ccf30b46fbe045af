#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/text.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/dataset_stats.hpp>
#include <dtrain/data/remote.hpp>

#include "cli/command.hpp"
#include "config/data_options.hpp"

namespace dtrain::cli {
namespace {

struct ListCommand {
  Path files;
  int sample = 1000;
};

void bind(config::OptionSet& set, ListCommand& options) {
  set.group("Options")
      .add("FILES", options.files, "record files: a prefix, a pattern, or names separated by commas")
      .required = true;
  set.add("--sample", options.sample, "N", "number of images to decode for sizes, mean and deviation; 0 for all",
          config::at_least(0));
}

Json numbers(const std::array<double, 3>& values) { return Json::array({values[0], values[1], values[2]}); }

using Names = std::vector<std::string>;

Json counts_json(const std::map<std::int64_t, std::size_t>& counts) {
  Json json = Json::object();
  for (const auto& [label, count] : counts) json[std::to_string(label)] = std::uint64_t{count};
  return json;
}

Json labels_json(const data::DatasetStats& stats) {
  Json json = counts_json(stats.classes);
  for (const auto& [label, count] : stats.other_labels) json[fmt::format("{}", label)] = std::uint64_t{count};
  return json;
}

Json objects_json(const data::DatasetStats::Objects& objects) {
  const bool has_areas = objects.sized > 0 || objects.records == 0;
  const auto of_area = [&](std::size_t count) { return has_areas ? Json(std::uint64_t{count}) : Json(); };
  return Json::object({{"records", std::uint64_t{objects.records}},
                       {"without", std::uint64_t{objects.without}},
                       {"boxes", std::uint64_t{objects.boxes}},
                       {"crowds", std::uint64_t{objects.crowds}},
                       {"masks", std::uint64_t{objects.masks}},
                       {"most", std::uint64_t{objects.most}},
                       {"small", of_area(objects.small)},
                       {"medium", of_area(objects.medium)},
                       {"large", of_area(objects.large)},
                       {"classes", counts_json(objects.classes)}});
}

Json shape_json(const data::DatasetStats& stats) {
  return stats.first_c > 0 ? Json::array({stats.first_c, stats.first_h, stats.first_w}) : Json();
}

Json document(const Path& path, const data::DatasetStats& stats, const Names& names) {
  Json encodings = Json::object();
  for (const auto& [name, count] : stats.encodings) encodings[name] = std::uint64_t{count};
  return Json::object({{"schema", "dtrain.data-ls/1"},
                       {"file", data::shown_files(path)},
                       {"records", std::uint64_t{stats.records}},
                       {"payload_bytes", stats.payload_bytes},
                       {"image_shape", shape_json(stats)},
                       {"decoded", std::uint64_t{stats.decoded}},
                       {"undecodable", std::uint64_t{stats.undecodable}},
                       {"height", Json::object({{"min", stats.min_h}, {"mean", stats.mean_h}, {"max", stats.max_h}})},
                       {"width", Json::object({{"min", stats.min_w}, {"mean", stats.mean_w}, {"max", stats.max_w}})},
                       {"rgb_mean", numbers(stats.mean)},
                       {"rgb_std", numbers(stats.std)},
                       {"encodings", encodings},
                       {"classes", labels_json(stats)},
                       {"objects", objects_json(stats.objects)},
                       {"class_names", Json(Json::Array(names.begin(), names.end()))}});
}

void answer_pixels(const data::DatasetStats& stats, Reporter& reporter) {
  const auto channels = [](const std::array<double, 3>& values) {
    return fmt::format("{:.2f},{:.2f},{:.2f}", values[0], values[1], values[2]);
  };
  if (stats.first_c == 0) return reporter.answer(fmt::format("no image of {} can be decoded", stats.records));
  reporter.answer(fmt::format("first image: {}x{}x{}", stats.first_c, stats.first_h, stats.first_w));
  reporter.answer(fmt::format("of {} decoded: height {} to {} (mean {:.0f}), width {} to {} (mean {:.0f})",
                              stats.decoded, stats.min_h, stats.max_h, stats.mean_h, stats.min_w, stats.max_w,
                              stats.mean_w));
  reporter.answer(fmt::format("--rgb-mean {} --rgb-std {}", channels(stats.mean), channels(stats.std)));
  if (stats.undecodable > 0) reporter.answer(fmt::format("cannot be decoded: {}", stats.undecodable));
}

void answer_objects(const data::DatasetStats::Objects& objects, Reporter& reporter) {
  const double mean = static_cast<double>(objects.boxes) / static_cast<double>(objects.records);
  reporter.answer(fmt::format("objects: {} boxes, {} masks; {:.1f} in a record on average, {} at most, none in {}",
                              objects.boxes, objects.masks, mean, objects.most, objects.without));
  if (objects.sized == 0) return;
  reporter.answer(fmt::format("objects by COCO's areas: {} small, {} medium, {} large; {} are crowds", objects.small,
                              objects.medium, objects.large, objects.crowds));
}

void answer_classes(const std::map<std::int64_t, std::size_t>& classes, const Names& names, Reporter& reporter) {
  std::size_t largest = 1;
  for (const auto& [label, count] : classes) largest = std::max(largest, count);
  for (const auto& [label, count] : classes) {
    const std::string name = data::label_text(label, names).substr(std::to_string(label).size());
    reporter.answer(
        fmt::format("class {:>4} {:>8}  {:<40}{}", label, count, std::string(40 * count / largest, '#'), name));
  }
}

void answer_table(const Path& path, const data::DatasetStats& stats, const Names& names, Reporter& reporter) {
  reporter.answer(
      fmt::format("{}: {} records, {}", data::shown_files(path), stats.records, format_bytes(stats.payload_bytes)));
  answer_pixels(stats, reporter);
  for (const auto& [name, count] : stats.encodings) reporter.answer(fmt::format("encoding {}: {}", name, count));
  if (stats.objects.records > 0) answer_objects(stats.objects, reporter);
  answer_classes(stats.objects.records > 0 ? stats.objects.classes : stats.classes, names, reporter);
  for (const auto& [label, count] : stats.other_labels)
    reporter.answer(fmt::format("label {:>4} {:>8}  which is no class", label, count));
}

ExitCode act(const ListCommand& options, const config::OptionSet&, Reporter& reporter) {
  config::require_records(options.files);
  const std::vector<Path> files = data::find_records(options.files.string());
  const Names names = data::class_names_to_show(files, [&](const std::string& text) { reporter.warn(text); });
  const data::RecordSet set(files);
  const data::DatasetStats stats = data::read_dataset_stats(set, static_cast<std::size_t>(options.sample));
  if (reporter.json()) {
    reporter.answer_json(document(options.files, stats, names));
  } else {
    answer_table(options.files, stats, names, reporter);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_data_ls() {
  auto command = make_command<ListCommand>(
      "data ls", "show the content of record files: records, sizes, mean and deviation, classes", act);
  command->examples = {"dtrain data ls d/shapes_train.rec"};
  command->see_also = {"data verify", "data bench"};
  return command;
}

}  // namespace dtrain::cli
