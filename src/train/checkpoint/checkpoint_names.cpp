#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "far_checkpoint.hpp"

namespace dtrain::train {
namespace {

constexpr std::string_view kStep = "-step";

// "0001" or "0001-step00000120"; nothing for any other text.
std::optional<CheckpointName> parse_position(const Path& prefix, std::string_view text) {
  const std::size_t cut = text.find(kStep);
  const auto epoch = parse_integer(text.substr(0, cut));
  const auto step = cut == text.npos ? std::optional<std::int64_t>(0) : parse_integer(text.substr(cut + kStep.size()));
  if (!epoch || !step || *epoch < 0 || *epoch > UINT32_MAX || *step < 0) return {};
  return CheckpointName{prefix, static_cast<std::uint32_t>(*epoch), static_cast<std::uint64_t>(*step)};
}

// The checkpoint whose file of this ending it is, if it is one.
std::optional<CheckpointName> parse_name(const Path& prefix, const Path& file, std::string_view ending) {
  if (file.extension() != ending) return {};
  const std::string stem = file.stem().string(), start = prefix.filename().string() + "-";
  if (!stem.starts_with(start)) return {};
  const auto name = parse_position(prefix, std::string_view(stem).substr(start.size()));
  // The name must be the one that save_checkpoint would give: this refuses "+1", "1" and "0001-step0".
  if (!name || Path(name->stem()).filename() != stem) return {};
  return name;
}

// Everything in the folder of the prefix, or behind a URL all there that begins with it.
std::vector<Path> files_by(const Path& prefix, const SharedStore& store) {
  if (is_far(prefix)) return list_far(prefix, store);
  const Path folder = prefix.has_parent_path() ? prefix.parent_path() : Path(".");
  std::vector<Path> files;
  std::error_code error;
  for (auto file = std::filesystem::directory_iterator(folder, error); !error && file != end(file);
       file.increment(error)) {
    files.push_back(file->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw Error(fmt::format("{}: cannot list the folder: {}", folder.string(), error.message()));
  }
  return files;
}

}  // namespace

std::string CheckpointName::stem() const {
  const std::string end_of_epoch = fmt::format("{}-{:04}", prefix.string(), epoch);
  return step == 0 ? end_of_epoch : fmt::format("{}{}{:08}", end_of_epoch, kStep, step);
}

std::optional<CheckpointName> name_of_manifest(const Path& prefix, const Path& manifest) {
  return parse_name(prefix, manifest, ".json");
}

std::vector<Path> orphaned_tensors(const Path& prefix) {
  if (is_far(prefix)) return {};
  const std::vector<Path> files = files_by(prefix, {});
  std::vector<Path> orphans;
  for (const Path& file : files) {
    if (file.extension() != ".safetensors") continue;
    const std::string manifest = Path(file).replace_extension(".json").filename().string();
    if (!name_of_manifest(prefix, Path(file).replace_extension(".json"))) continue;
    const bool has_manifest = std::ranges::any_of(  // or was about to get it: NAME.json.tmp.PID
        files, [&](const Path& other) { return other.filename().string().starts_with(manifest); });
    if (!has_manifest) orphans.push_back(file);
  }
  return orphans;
}

std::vector<CheckpointName> list_checkpoints(const Path& prefix, const SharedStore& store) {
  const std::vector<Path> files = files_by(prefix, store);
  std::unordered_set<std::string> names;
  for (const Path& file : files) names.insert(file.filename().string());
  std::vector<CheckpointName> found;
  for (const Path& file : files) {
    const auto name = name_of_manifest(prefix, file);
    if (name && names.contains(Path(name->stem() + ".safetensors").filename().string())) found.push_back(*name);
  }
  std::ranges::sort(found, std::greater(),
                    [](const CheckpointName& name) { return std::tuple(name.epoch, name.step); });
  return found;
}

MxnetExports list_mxnet(const Path& prefix, const SharedStore& store) {
  const std::string symbol = prefix.filename().string() + "-symbol.json";
  MxnetExports there;
  for (const Path& file : files_by(prefix, store)) {
    there.has_symbol |= file.filename() == symbol;
    const auto name = parse_name(prefix, file, ".params");
    if (name && name->step == 0) there.epochs.push_back(name->epoch);
  }
  std::ranges::sort(there.epochs, std::greater());
  return there;
}

std::optional<std::uint32_t> newest_mxnet_epoch(const Path& prefix, const SharedStore& store) {
  const MxnetExports there = list_mxnet(prefix, store);
  if (!there.has_symbol || there.epochs.empty()) return {};
  return there.epochs.front();
}

}  // namespace dtrain::train
