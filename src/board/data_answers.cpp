#include "data_answers.hpp"

#include <algorithm>

#include <dtrain/base/text.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/contact_sheet.hpp>
#include <dtrain/data/dataset_stats.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/net/objects.hpp>
#include <dtrain/nn/detection.hpp>

#include "config/data_options.hpp"
#include "reply.hpp"
#include "run.hpp"

namespace dtrain::board {
namespace {

constexpr int kShown = 32, kColumns = 8, kLargeEnough = 64;
constexpr int kMostPixels = 8'000'000;  // of a sheet: a detector's pictures are large
constexpr std::size_t kDecoded = 16;

// A run behind s3:// may name records there: to read these opens nothing of this machine.
bool are_behind_s3(const RunPlace& run, const std::string& named) {
  const auto is_there = [](std::string_view part) { return net::is_s3_url(trim(part)); };
  return net::is_s3_url(run.folder) && std::ranges::all_of(split(named, ','), is_there);
}

std::string records_of(const RunPlace& run) {
  const std::string named = configured(run.settings, "data-train");
  if (named.empty()) throw Missing("this run trains on no records of a file");
  if (!are_behind_s3(run, named) && !run.distrust().empty()) refuse_to_open(run, "records");
  return run.find_records(named);
}

// Without what a recipe or a default chose.
std::string chosen_settings(std::string_view toml) {
  std::string chosen;
  for (const std::string& line : split(toml, '\n')) {
    if (!trim(line).starts_with('#')) chosen += line + '\n';
  }
  return chosen;
}

// The options of the training about images. What came with the weights of --finetune or --pretrained stands in no
// train.toml, but in the checkpoints, which also know whether the network is a detector.
config::DataOptions options_of(const RunPlace& run) {
  const std::string chosen = chosen_settings(run.settings);
  config::DataOptions data;
  config::OptionSet set;
  config::bind_image(set, data);
  config::bind_augmentation(set, data);
  for (config::Option& option : set.options()) {
    const std::string value = configured(run.settings, option.name());
    if (value.empty()) continue;
    try {
      option.set(value);
      option.source = configured(chosen, option.name()).empty() ? config::Source::recipe : config::Source::flag;
    } catch (const UsageError&) {  // of another version: its default is closer than nothing
    }
  }
  data.threads = 1;
  if (const auto saved = newest_network(run)) {
    data.image = saved->graph.input();
    const nn::Detections* const found = nn::detection_of(saved->graph);
    data.classes = found ? found->classes : saved->graph.classes();
    config::take_preprocessing(saved->preprocessing, {}, data);
    config::suit_network(saved->graph, set, data);
  }
  return data;
}

}  // namespace

Json data_of(const RunPlace& run) {
  const auto files = data::find_records(records_of(run));
  const data::RecordSet set(files);
  const data::DatasetStats stats = data::read_dataset_stats(set, kDecoded);
  std::string warning;
  const std::vector<std::string> names =
      data::class_names_to_show(files, [&](const std::string& text) { warning = text; });
  Json list = Json::array(), paths = Json::array();
  for (const auto& [label, records] : stats.classes) {
    const bool named = label >= 0 && label < std::ssize(names);
    list.push_back(Json::object({{"label", label},
                                 {"name", named ? names[static_cast<std::size_t>(label)] : std::string()},
                                 {"records", std::uint64_t{records}}}));
  }
  for (const Path& path : files) paths.push_back(data::shown_path(path).string());
  return Json::object({{"files", paths},
                       {"records", std::uint64_t{stats.records}},
                       {"bytes", stats.payload_bytes},
                       {"classes", list},
                       {"warning", warning}});
}

net::HttpResponse sheet_of(const RunPlace& run) {
  const std::string records = records_of(run);
  const config::DataOptions data = options_of(run);
  data::LoaderOptions loading = config::training_loader(data, 0);
  loading.shuffle = false;
  data::Loader loader(records, loading);
  const int room = std::max(1, kMostPixels / std::max(1, loading.shape.h * loading.shape.w));
  loader.start(0, {{0, std::min({kShown, room, static_cast<int>(loader.size())})}});
  const data::Batch batch = *loader.next();
  const data::Image sheet = data::contact_sheet(batch, loading.shape, loading.augment,
                                                {.columns = kColumns, .zoom = loading.shape.w < kLargeEnough ? 2 : 1});
  return reply(data::encode_image(sheet, data::Encoding::png), kPngType);
}

}  // namespace dtrain::board
