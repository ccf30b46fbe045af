#include <dtrain/train/checkpoint.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/train/export.hpp>

#include "checkpoint_tensors.hpp"
#include "far_checkpoint.hpp"
#include "manifest.hpp"
#include "safetensors.hpp"

namespace dtrain::train {
namespace {

constexpr std::size_t kTrialBytes = 4096;  // a block of most file systems
constexpr const char* kDamagedHint =
    "use an older checkpoint, or setting 'resume', which finds the newest undamaged one";

[[noreturn]] void damaged(const Path& file, std::string_view what) {
  throw DataError(fmt::format("{}: damaged: {}", file.string(), what), kDamagedHint);
}

Path data_path(Path manifest) { return manifest.replace_extension(".safetensors"); }

void check_size(const Path& path, std::uint64_t size, const Manifest& manifest) {
  if (size != manifest.data.size) damaged(path, fmt::format("{} bytes in place of {}", size, manifest.data.size));
}

SafetensorsFile open_far(const Path& path, const Manifest& manifest, const SharedStore& store) {
  const SharedStore used = store ? store : std::make_shared<net::ObjectStore>();
  const auto found = find_far(path, used);
  if (!found) throw DataError(path.string() + ": is not there, though its manifest is", kDamagedHint);
  check_size(path, found->size, manifest);
  return SafetensorsFile(read_beginning(path, *found, found->size, used), path);
}

SafetensorsFile open_near(const Path& path, const Manifest& manifest) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) {
    throw DataError(fmt::format("{}: {}, though its manifest is there", path.string(), error.message()), kDamagedHint);
  }
  check_size(path, size, manifest);
  return SafetensorsFile(path);
}

// Checks what can be checked before the tensors are read.
SafetensorsFile open_data(const Path& path, const Manifest& manifest, const SharedStore& store) {
  SafetensorsFile file = is_far(path) ? open_far(path, manifest, store) : open_near(path, manifest);
  if (sha256_hex(file.header()) != manifest.data.header_sha256) damaged(path, "its table of tensors was changed");
  return file;
}

// How many optimizer slots and averages fill a list as long as the manifest's.
StateParts parts_of(const nn::Graph& graph, const std::vector<TensorHash>& listed, const Path& path) {
  const bool averaged =
      std::ranges::any_of(listed, [](const TensorHash& tensor) { return tensor.name.starts_with(kAverageTensors); });
  const std::size_t slot = graph.parameters.size(), weights = slot + graph.statistics.size();
  const std::size_t tensors = listed.size(), model = averaged ? 2 * weights : weights;
  const std::size_t slots = slot == 0 || tensors < model ? 0 : (tensors - model) / slot;
  if (model + slots * slot != tensors) damaged(path, fmt::format("{} tensors do not fit the network", tensors));
  return {.slots = slots, .averaged = averaged};
}

backend::ModelState empty_state(const nn::Graph& graph, const StateParts& parts) {
  const auto parameter_count = static_cast<std::size_t>(graph.parameter_count);
  backend::ModelState state;
  state.parameters.resize(parameter_count);
  state.statistics.resize(static_cast<std::size_t>(graph.statistic_count));
  state.optimizer.resize(parts.slots * parameter_count);
  if (parts.averaged) state.average.resize(parameter_count + state.statistics.size());
  return state;
}

void check_tensor(const SafetensorsFile& file, const SafetensorsEntry& entry, const TensorHash& expected,
                  const NamedTensor& target, const Path& path) {
  if (entry.name != target.name || expected.name != target.name) {
    damaged(path, fmt::format("tensor '{}' stands where '{}' belongs", entry.name, target.name));
  }
  if (entry.shape != target.shape || entry.dtype != "F32") {
    damaged(path, fmt::format("tensor '{}' is {} [{}], the network needs F32 [{}]", entry.name, entry.dtype,
                              fmt::join(entry.shape, ", "), fmt::join(target.shape, ", ")));
  }
  if (sha256_hex(file.bytes(entry)) != expected.sha256) {
    damaged(path, fmt::format("tensor '{}' was changed", entry.name));
  }
}

// Copies the next flat buffer out of `bytes`, which holds them one after the other in the order of state_tensors.
void take(ByteView& bytes, std::vector<float>& buffer) {
  const std::size_t size = buffer.size() * sizeof(float);
  if (size != 0) std::memcpy(buffer.data(), bytes.data(), size);
  bytes = bytes.subspan(size);
}

backend::ModelState read_state(const SafetensorsFile& file, const Manifest& manifest, const Path& path) {
  const std::size_t count = manifest.tensors.size();
  if (file.entries().size() != count) {
    damaged(path, fmt::format("{} tensors, the manifest lists {}", file.entries().size(), count));
  }
  // The manifest may describe a network that is far larger than the file: room is made for what the file does hold.
  const nn::Graph& graph = manifest.checkpoint.graph;
  const StateParts parts = parts_of(graph, manifest.tensors, path);
  const std::vector<NamedTensor> targets = state_layout(graph, parts);
  for (std::size_t i = 0; i < count; ++i) check_tensor(file, file.entries()[i], manifest.tensors[i], targets[i], path);
  backend::ModelState state = empty_state(graph, parts);
  ByteView bytes = file.data();
  for (const auto buffer : backend::kStateBuffers) take(bytes, state.*buffer);
  state.updates = manifest.updates;
  state.loss_scale = manifest.loss_scale;
  return state;
}

void remove_file(const Path& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (error) throw Error(fmt::format("{}: cannot remove: {}", path.string(), error.message()));
}

std::uint64_t bytes_in(std::string_view header, std::span<const NamedTensor> tensors) {
  std::uint64_t size = header.size();
  for (const NamedTensor& tensor : tensors) size += tensor.values.size_bytes();
  return size;
}

Checkpoint load(std::string_view text, const Path& manifest_file, const SharedStore& store) {
  Manifest manifest = parse_manifest(text, manifest_file.string());
  const Path path = data_path(manifest_file);
  manifest.checkpoint.state = read_state(open_data(path, manifest, store), manifest, path);
  return std::move(manifest.checkpoint);
}

// Why MXNet's files of a prefix cannot be loaded; empty: they can, or there are none.
std::string fault_of_mxnet(const Path& prefix, const MxnetExports& there) {
  if (there.has_symbol && there.epochs.empty())
    return fmt::format("{}-symbol.json is there, without a .params file of any epoch", prefix.string());
  if (there.has_symbol || there.epochs.empty()) return {};
  return fmt::format("{0}.params is there, but {1}-symbol.json, which it needs, is not",
                     CheckpointName{prefix, there.epochs.front()}.stem(), prefix.string());
}

// What there is of the prefix in place of an epoch that is not.
std::string hint_of_others(const Path& prefix, const SharedStore& store) {
  constexpr std::size_t kShown = 5;
  std::vector<CheckpointName> others = list_checkpoints(prefix, store);
  const MxnetExports mxnet = list_mxnet(prefix, store);
  std::set<std::uint32_t, std::greater<>> epochs;
  for (const CheckpointName& name : others) {
    if (name.step == 0) epochs.insert(name.epoch);
  }
  if (mxnet.has_symbol) epochs.insert(mxnet.epochs.begin(), mxnet.epochs.end());
  const std::string fault = fault_of_mxnet(prefix, mxnet);
  if (others.empty() && epochs.empty())
    return fault.empty() ? fmt::format("there is none of the prefix {}", prefix.string()) : fault;

  const bool is_own = !others.empty() && (epochs.empty() || others.front().epoch >= *epochs.begin());
  const CheckpointName newest = is_own ? others.front() : CheckpointName{prefix, *epochs.begin()};
  std::string hint = fmt::format("the newest is {}", newest.stem());
  std::vector<std::string> numbers;
  for (const std::uint32_t epoch : epochs) numbers.push_back(std::to_string(epoch));
  if (epochs.empty()) hint += ", which stands inside an epoch";
  if (epochs.size() > 1 || (newest.step > 0 && !epochs.empty()))
    hint += fmt::format("; complete epochs that are there: {}", join_first(numbers, kShown, ", "));
  return mxnet.has_symbol || fault.empty() ? hint : fmt::format("{}; {}", hint, fault);
}

}  // namespace

void use_average(Checkpoint& checkpoint) {
  backend::ModelState& state = checkpoint.state;
  state.optimizer.clear();
  if (state.average.empty()) return;
  const auto statistics = state.average.begin() + std::ssize(state.parameters);
  state.parameters.assign(state.average.begin(), statistics);
  state.statistics.assign(statistics, state.average.end());
  state.average.clear();
}

Path save_checkpoint(const CheckpointName& name, const Checkpoint& checkpoint, const SharedStore& store) {
  const std::vector<NamedTensor> tensors = state_tensors(checkpoint.graph, checkpoint.state);
  const std::string header = safetensors_header(tensors, Json::object({{"format", "dtrain"}}));
  Path data_file = name.stem() + ".safetensors";
  const Path manifest_file = name.stem() + ".json";
  const DataFile about{bytes_in(header, tensors), sha256_hex(bytes_of(header))};
  const std::string text = write_manifest(checkpoint, about, hash_tensors(tensors));
  if (is_far(name.prefix)) {
    write_far(name.stem(), header, tensors, text, store);
    return data_file;
  }

  make_folder(name.prefix.parent_path());
  AtomicFile data(data_file);
  write_safetensors(data, header, tensors);
  AtomicFile manifest(manifest_file);
  manifest.write(text);

  // Both are on disk before an older checkpoint of this name is touched, and no manifest ever stands beside tensors
  // that it does not describe.
  data.sync();
  manifest.sync();
  remove_file(manifest_file);
  data.commit();
  manifest.commit();
  return data_file;
}

void try_prefix(const Path& prefix, const SharedStore& store) {
  Path trial = prefix;
  trial += ".trial";
  if (is_far(prefix)) {
    list_checkpoints(prefix, store);
    try_far(trial, store);
    return;
  }
  make_folder(prefix.parent_path());
  AtomicFile file(trial);  // without commit() it is removed again
  file.write(std::string(kTrialBytes, '\0'));
  file.sync();
}

static void remove_anywhere(const Path& file, const SharedStore& store) {
  if (is_far(file)) {
    remove_far(file, store);
  } else {
    remove_file(file);
  }
}

void remove_checkpoint(const CheckpointName& name, const SharedStore& store, bool with_mxnet) {
  std::vector<const char*> endings{".json", ".safetensors"};
  if (with_mxnet) endings.push_back(".params");
  for (const char* ending : endings) remove_anywhere(name.stem() + ending, store);
}

void remove_replaced_mxnet(const CheckpointName& first, MxnetUse use, const SharedStore& store) {
  const MxnetExports there = list_mxnet(first.prefix, store);
  const auto is_replaced = [&](std::uint32_t epoch) {
    const auto place = std::pair(epoch, std::uint64_t{0}), of_first = std::pair(first.epoch, first.step);
    return place > of_first || (place == of_first && !use.writes_params);
  };
  std::size_t removed = 0;
  for (const std::uint32_t epoch : there.epochs) {
    if (!is_replaced(epoch)) break;
    remove_anywhere(CheckpointName{first.prefix, epoch}.stem() + ".params", store);
    ++removed;
  }
  // A symbol that never had a .params beside it may be a network that the user wrote.
  const bool took_the_last = removed > 0 && removed == there.epochs.size();
  if (there.has_symbol && took_the_last && !use.writes_params && !use.needs_symbol) {
    remove_anywhere(first.prefix.string() + "-symbol.json", store);
  }
}

static bool is_there(const Path& file, const SharedStore& store) {
  return is_far(file) ? find_far(file, store).has_value() : std::filesystem::is_regular_file(file);
}

bool is_checkpoint_file(const Path& file, const SharedStore& store) {
  const Path manifest = Path(file).replace_extension(".json");
  if (file.extension() != ".json" && file.extension() != ".safetensors") return false;
  if (!is_there(file, store) || !is_there(manifest, store)) return false;
  try {
    const auto text = read_manifest(manifest, store);
    if (!text) return false;
    parse_manifest(*text, manifest.string());
    return true;
  } catch (const DataError&) {
    return false;
  }
}

Checkpoint load_checkpoint_file(const Path& manifest_file, const SharedStore& store) {
  if (!is_far(manifest_file)) return load(read_file(manifest_file), manifest_file, store);
  const auto text = read_manifest(manifest_file, store);
  if (!text) throw DataError(manifest_file.string() + ": is not there", "check the name");
  return load(*text, manifest_file, store);
}

CheckpointName best_checkpoint(const Path& prefix, const SharedStore& store) {
  const std::vector<CheckpointName> names = list_checkpoints(prefix, store);
  const Path newest = names.empty() ? Path() : Path(names.front().stem() + ".json");
  const auto text = names.empty() ? std::nullopt : read_manifest(newest, store);
  if (!text) throw DataError(fmt::format("{}: no checkpoint of this prefix", prefix.string()), "check the prefix");
  const BestEpoch best = parse_manifest(*text, newest.string()).checkpoint.best;
  if (best.accuracy >= 0) return {prefix, best.epoch};
  throw DataError(fmt::format("{}: names no best epoch: its run had no validation data, or an older dtrain wrote it",
                              newest.string()),
                  "give the number of an epoch; a run with setting 'data-val' finds the best one");
}

Checkpoint load_checkpoint(const Path& prefix, std::uint32_t epoch, std::optional<nn::Shape> image,
                           std::optional<int> classes, const SharedStore& store) {
  const std::string stem = CheckpointName{prefix, epoch}.stem();
  if (const auto text = read_manifest(stem + ".json", store)) return load(*text, stem + ".json", store);
  if (mxnet_is_there(prefix, epoch, store)) return import_mxnet(prefix, epoch, image, classes, store);
  throw DataError(fmt::format("{}.json: there is no such checkpoint", stem), hint_of_others(prefix, store));
}

}  // namespace dtrain::train
