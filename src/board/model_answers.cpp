#include "model_answers.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>

#include <dtrain/base/link_free_folder.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/net/objects.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/train/checkpoint.hpp>
#include <dtrain/train/gradient_compression.hpp>

#include "explain.hpp"
#include "reply.hpp"
#include "run.hpp"

namespace dtrain::board {
namespace {

constexpr std::size_t kBins = 40;
constexpr std::uint64_t kLargestManifest = 256 << 20;

std::vector<train::CheckpointName> checkpoints_of(const RunPlace& run) {
  const std::string prefix = run.prefix();
  if (prefix.empty() && !configured(run.settings, "model-prefix").empty()) refuse_to_open(run, "checkpoints");
  auto names = prefix.empty() ? std::vector<train::CheckpointName>() : train::list_checkpoints(prefix);
  if (names.empty()) {
    throw Missing(prefix.empty() ? "this run saves no checkpoints" : fmt::format("{}: no checkpoint yet", prefix),
                  "the newest one is shown here as soon as it is saved");
  }
  return names;
}

// Without the folder.
std::string short_name(const train::CheckpointName& name) { return Path(name.stem()).filename().string(); }

train::CheckpointName choose(const std::vector<train::CheckpointName>& names, const std::string& stem) {
  if (stem.empty()) return names.front();
  const auto found = std::ranges::find_if(names, [&](const auto& name) { return short_name(name) == stem; });
  if (found == names.end()) throw Missing(fmt::format("{}: no such checkpoint any more", stem));
  return *found;
}

Path manifest_of(const train::CheckpointName& name) { return name.stem() + ".json"; }

// Beside the run of another user no link is followed.
std::string manifest_text(const RunPlace& run, const train::CheckpointName& name) {
  const Path path = manifest_of(name);
  const std::string distrust = run.distrust();
  if (distrust.empty()) return read_file(path);
  const LinkFreeFolder beside(path.parent_path());
  const auto text = beside.read(path.string(), 0, kLargestManifest);
  if (!text || !beside.status(name.stem() + ".safetensors"))
    throw Missing(
        fmt::format("{}, so the board does not follow the links of the checkpoint {}", distrust, name.stem()));
  return *text;
}

// A folder with what is not this user's own, and where the run's checkpoints may be all the same.
bool stands_beside(const RunPlace& run, const std::string& prefix) {
  const Path own = run.folder, there = Path(prefix).parent_path();
  return !net::is_object_url(prefix) && (there == own || there == own.parent_path());
}

// Records with this name are there, or files that a pattern or the prefix of a set stands for.
bool are_records(const Path& path) {
  try {
    return !data::find_records(path.string()).empty();
  } catch (const Error&) {
    return false;
  }
}

// The path below the nearest folder above the run's that has it; nullopt: none has.
template <typename Test>
std::optional<std::string> find_above(const std::string& folder, const std::string& path, const Test& is_there) {
  for (Path above = folder; above.has_relative_path(); above = above.parent_path()) {
    const Path there = above.parent_path() / path;
    if (is_there(there)) return there.string();
  }
  return std::nullopt;
}

// The first of the buffers that an optimizer keeps beside the weights.
struct OptimizerState {
  const char *name, *meaning;
};

OptimizerState first_state_of(nn::OptimizerKind kind) {
  switch (kind) {
    case nn::OptimizerKind::sgd:
    case nn::OptimizerKind::lars:
      return {"Last update",
              "the last change of the weights: momentum times the change before, minus the learning rate times the "
              "gradient"};
    case nn::OptimizerKind::nag:
    case nn::OptimizerKind::muon:
      return {"Momentum", "the sum of the gradients, each of which shrinks by the factor momentum at every later step"};
    case nn::OptimizerKind::adam:
    case nn::OptimizerKind::adamw:
    case nn::OptimizerKind::adamax:
    case nn::OptimizerKind::nadam:
    case nn::OptimizerKind::lamb:
    case nn::OptimizerKind::signum:
      return {"Averaged gradients", "the running average of the gradients"};
    case nn::OptimizerKind::rmsprop:
    case nn::OptimizerKind::adadelta:
    case nn::OptimizerKind::ftml:
      return {"Averaged squares", "the running average of the squared gradients"};
    case nn::OptimizerKind::adagrad:
      return {"Sum of squares", "the sum of the squared gradients of all steps"};
  }
  return {"First state", "the first numbers that the optimizer keeps"};
}

// The layer that a tensor is called after, unless the layer lists its tensors: the longest such name.
std::string layer_of(const std::string& tensor, const Json& nodes) {
  std::string longest;
  for (const Json& node : nodes.as_array()) {
    std::string name = member_text(node, "name");
    const Json* const own = node.find("tensors");
    if (own && std::ranges::any_of(own->as_array(), [&](const Json& one) { return one.as_string() == tensor; }))
      return name;
    if (name.size() > longest.size() && tensor.starts_with(name + "_")) longest = name;
  }
  return longest;
}

// Learned numbers by layer; running statistics are none.
std::map<std::string, std::int64_t> parameters_of(const nn::Graph& graph, const Json& nodes) {
  std::map<std::string, std::int64_t> counts;
  for (const nn::TensorView& view : graph.parameters) counts[layer_of(view.name, nodes)] += view.size;
  return counts;
}

// What each worker adds to a step and gets back as the sum.
std::int64_t bytes_of_step(const nn::Graph& graph, const RunPlace& run) {
  const bool halved = configured(run.settings, "gradient-dtype") == "bfloat16";
  const std::string text = configured(run.settings, "gradient-compression");
  const train::GradientCompression compression = train::compression_from(text.empty() ? "none" : text);
  const std::int64_t gradients = compression.any() ? train::bytes_of_leaf(compression, graph.parameters)
                                                   : graph.parameter_count * (halved ? 2 : 4);
  return gradients + graph.statistic_count * 4;
}

Json spread(std::span<const float> values) {
  double sum = 0, squares = 0, low = 0, high = 0;
  std::size_t finite = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    low = finite == 0 ? value : std::min<double>(low, value);
    high = finite == 0 ? value : std::max<double>(high, value);
    sum += value;
    squares += double{value} * value;
    ++finite;
  }
  std::vector<std::uint64_t> bins(kBins);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double place = high > low ? (value - low) / (high - low) * kBins : 0;
    ++bins[std::min(static_cast<std::size_t>(place), kBins - 1)];
  }
  const double count = std::max<double>(1, static_cast<double>(finite)), mean = sum / count;
  Json list = Json::array();
  for (const std::uint64_t bin : bins) list.push_back(bin);
  return Json::object({{"mean", mean},
                       {"deviation", std::sqrt(std::max(0.0, squares / count - mean * mean))},
                       {"low", low},
                       {"high", high},
                       {"not_finite", std::uint64_t{values.size() - finite}},
                       {"bins", list}});
}

}  // namespace

std::string RunPlace::distrust() const {
  if (net::is_object_url(folder)) return "nothing says who wrote train.toml behind s3://";
  const std::string path = folder + "/train.toml";
  try {
    const LinkFreeFolder below{folder};
    const auto status = below.status(path);
    if (!status) return "the run has no train.toml of its own";
    const bool is_own = status->st_uid == ::geteuid() || status->st_uid == 0;
    const auto size = static_cast<std::uint64_t>(status->st_size);
    // Of a file server that gives all files to one user, read_own_file() knows more. The rights of a group are no sign:
    // on many machines each user has one alone.
    const bool is_kept = is_own && (status->st_mode & S_IWOTH) == 0;
    const std::string text = is_kept ? below.read(path, 0, size).value_or("") : read_own_file(path);
    return text == settings ? "" : "train.toml has just changed";
  } catch (const ForeignFile&) {
    const std::string owner = owner_of(path), self = user_name(::geteuid());
    return owner == self ? "other users may write train.toml" : fmt::format("train.toml belongs to {}", owner);
  } catch (const Error& error) {
    return error.what();
  }
}

void refuse_to_open(const RunPlace& run, std::string_view what) {
  throw Missing(fmt::format("{}, so the board does not open the {} that it names", run.distrust(), what),
                "outside a run's folder the board opens only what a train.toml of its own user names");
}

std::string RunPlace::find(const std::string& path) const {
  if (path.empty() || Path(path).is_absolute() || net::is_object_url(path)) return path;
  std::error_code ignored;
  return find_above(folder, path, [&](const Path& there) { return std::filesystem::exists(there, ignored); })
      .value_or(path);
}

std::string RunPlace::find_records(const std::string& named) const {
  std::vector<std::string> found;
  for (const std::string& part : split(named, ',')) {
    const std::string name(trim(part));
    if (name.empty()) break;
    const bool is_fixed = Path(name).is_absolute() || data::is_remote(name);
    auto there = is_fixed ? std::optional(name) : find_above(folder, name, are_records);
    if (!there) break;
    found.push_back(*std::move(there));
  }
  const auto parts = static_cast<std::size_t>(1 + std::ranges::count(named, ','));
  return found.size() == parts ? join(found, ",") : find(named);
}

std::string RunPlace::prefix() const {
  if (folder.ends_with(kRunSuffix)) return folder.substr(0, folder.size() - kRunSuffix.size());
  const std::string named = prefix_named();
  return named.empty() || stands_beside(*this, named) || distrust().empty() ? named : std::string();
}

std::string RunPlace::prefix_named() const {
  std::string named = configured(settings, "model-prefix");
  if (named.empty() || Path(named).is_absolute() || net::is_object_url(named)) return named;
  const Path parent = Path(named).parent_path();
  return parent.empty() ? (Path(folder).parent_path() / named).string()
                        : (Path(find(parent.string())) / Path(named).filename()).string();
}

Json model_of(const RunPlace& run, const Target& target) {
  const auto names = checkpoints_of(run);
  const train::CheckpointName chosen = choose(names, target.text("checkpoint"));
  if (net::is_object_url(chosen.prefix.string())) throw Missing("the model of a run behind s3:// is not shown");
  const Json manifest = Json::parse(manifest_text(run, chosen), manifest_of(chosen).string());
  Json nodes = Json::array(), stems = Json::array();
  const nn::Graph graph = nn::graph_from_json(manifest.at("graph"), manifest_of(chosen).string());
  const auto counts = parameters_of(graph, manifest.at("graph").at("nodes"));
  for (const Json& node : manifest.at("graph").at("nodes").as_array()) {
    Json copy = node;
    const auto own = counts.find(member_text(node, "name"));
    copy["parameters"] = own == counts.end() ? std::int64_t{0} : own->second;
    nodes.push_back(std::move(copy));
  }
  for (const train::CheckpointName& name : names) stems.push_back(short_name(name));
  return Json::object({{"checkpoint", short_name(chosen)},
                       {"checkpoints", stems},
                       {"network", member_text(manifest.at("graph"), "name")},
                       {"parameters", graph.parameter_count},
                       {"optimizer", member_text(manifest.at("optimizer"), "kind")},
                       {"dtype", member_text(manifest, "dtype")},
                       {"weights_sha256", member_text(manifest, "weights_sha256")},
                       {"nodes", nodes}});
}

std::optional<SavedNetwork> newest_network(const RunPlace& run) {
  try {
    const train::CheckpointName chosen = checkpoints_of(run).front();
    if (net::is_object_url(chosen.prefix.string())) return std::nullopt;
    const Json manifest = Json::parse(manifest_text(run, chosen), manifest_of(chosen).string());
    return SavedNetwork{.graph = nn::graph_from_json(manifest.at("graph"), manifest_of(chosen).string()),
                        .preprocessing = manifest.at("preprocessing")};
  } catch (const Error&) {  // no checkpoint yet, or none that can be read
    return std::nullopt;
  }
}

Json step_bytes_of(const RunPlace& run) {
  Json answer = Json::object({{"step", Json()}});
  try {
    if (const auto saved = newest_network(run)) answer["step"] = bytes_of_step(saved->graph, run);
  } catch (const Error&) {  // settings of another version
  }
  return answer;
}

Json spread_of(const RunPlace& run, const Target& target) {
  const train::CheckpointName chosen = choose(checkpoints_of(run), target.text("checkpoint"));
  if (net::is_object_url(chosen.prefix.string())) throw Missing("the weights of a run behind s3:// are not shown");
  manifest_text(run, chosen);  // refuses links
  const train::Checkpoint checkpoint = train::load_checkpoint_file(manifest_of(chosen));
  const std::span<const float> weights = checkpoint.state.parameters, kept = checkpoint.state.optimizer;
  Json tensors = Json::array();
  for (const nn::TensorView& view : checkpoint.graph.parameters) {
    const auto from = static_cast<std::size_t>(view.offset), count = static_cast<std::size_t>(view.size);
    Json shape = Json::array();
    for (const std::int64_t extent : view.shape) shape.push_back(extent);
    tensors.push_back(
        Json::object({{"name", view.name},
                      {"shape", shape},
                      {"weights", spread(weights.subspan(from, count))},
                      {"state", kept.size() >= from + count ? spread(kept.subspan(from, count)) : Json()}}));
  }
  const OptimizerState state = first_state_of(checkpoint.job.optimizer.kind);
  return Json::object({{"checkpoint", short_name(chosen)},
                       {"state", Json::object({{"name", state.name}, {"meaning", state.meaning}})},
                       {"tensors", tensors}});
}

}  // namespace dtrain::board
