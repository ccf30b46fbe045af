#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/text.hpp>
#include <dtrain/data/survey.hpp>

#include "cli/command.hpp"
#include "config/data_options.hpp"

namespace dtrain::cli {
namespace {

struct ListCommand {
  Path files;
  int sample = 1000;
};

void bind(config::OptionSet& set, ListCommand& options) {
  set.group("What").add("FILES", options.files, "record files: names with commas, a pattern or a prefix").required =
      true;
  set.add("--sample", options.sample, "N", "images to decode for sizes, mean and deviation; 0: all",
          config::at_least(0));
}

Json numbers(const std::array<double, 3>& values) { return Json::array({values[0], values[1], values[2]}); }

Json document(const Path& path, const data::Survey& survey) {
  Json classes = Json::object(), encodings = Json::object();
  for (const auto& [label, count] : survey.classes) classes[std::to_string(label)] = std::uint64_t{count};
  for (const auto& [name, count] : survey.encodings) encodings[name] = std::uint64_t{count};
  return Json::object(
      {{"schema", "dtrain.data-ls/1"},
       {"file", path.string()},
       {"records", std::uint64_t{survey.records}},
       {"payload_bytes", survey.payload_bytes},
       {"image_shape", Json::array({survey.first_c, survey.first_h, survey.first_w})},
       {"decoded", std::uint64_t{survey.decoded}},
       {"undecodable", std::uint64_t{survey.undecodable}},
       {"height", Json::object({{"min", survey.min_h}, {"mean", survey.mean_h}, {"max", survey.max_h}})},
       {"width", Json::object({{"min", survey.min_w}, {"mean", survey.mean_w}, {"max", survey.max_w}})},
       {"rgb_mean", numbers(survey.mean)},
       {"rgb_std", numbers(survey.std)},
       {"encodings", encodings},
       {"classes", classes}});
}

void answer_pixels(const data::Survey& survey, Reporter& reporter) {
  const auto channels = [](const std::array<double, 3>& values) {
    return fmt::format("{:.2f},{:.2f},{:.2f}", values[0], values[1], values[2]);
  };
  reporter.answer(fmt::format("first image: {}x{}x{}", survey.first_c, survey.first_h, survey.first_w));
  reporter.answer(fmt::format("of {} decoded: height {} to {} (mean {:.0f}), width {} to {} (mean {:.0f})",
                              survey.decoded, survey.min_h, survey.max_h, survey.mean_h, survey.min_w, survey.max_w,
                              survey.mean_w));
  reporter.answer(fmt::format("--rgb-mean {} --rgb-std {}", channels(survey.mean), channels(survey.std)));
  if (survey.undecodable > 0) reporter.answer(fmt::format("cannot be decoded: {}", survey.undecodable));
}

void answer_table(const Path& path, const data::Survey& survey, Reporter& reporter) {
  reporter.answer(fmt::format("{}: {} records, {}", path.string(), survey.records, format_bytes(survey.payload_bytes)));
  answer_pixels(survey, reporter);
  for (const auto& [name, count] : survey.encodings) reporter.answer(fmt::format("encoding {}: {}", name, count));
  std::size_t largest = 1;
  for (const auto& [label, count] : survey.classes) largest = std::max(largest, count);
  for (const auto& [label, count] : survey.classes) {
    reporter.answer(fmt::format("class {:>4} {:>8}  {}", label, count, std::string(40 * count / largest, '#')));
  }
}

ExitCode act(const ListCommand& options, const config::OptionSet&, Reporter& reporter) {
  config::require_records(options.files);
  const data::RecordSet set(data::find_records(options.files.string()));
  const data::Survey survey = data::survey_records(set, static_cast<std::size_t>(options.sample));
  if (reporter.json()) {
    reporter.answer_json(document(options.files, survey));
  } else {
    answer_table(options.files, survey, reporter);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_data_ls() {
  auto command =
      make_command<ListCommand>("data ls", "what record files hold: records, sizes, mean and deviation, classes", act);
  command->examples = {"dtrain data ls d/shapes_train.rec"};
  command->see_also = {"data verify", "data bench"};
  return command;
}

}  // namespace dtrain::cli
