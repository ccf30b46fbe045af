#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/train/weights.hpp>

#include "cli/command.hpp"
#include "config/checkpoint_choice.hpp"
#include "config/network_choice.hpp"
#include "config/option_values.hpp"
#include "config/pretrained.hpp"
#include "job/spec/prefix_claim.hpp"
#include "output_places.hpp"

namespace dtrain::cli {
namespace {

struct ImportCommand {
  Path file, out;
  bool force = false;
  config::NetworkChoice network;
  config::DataOptions data;
};

// An ONNX model is its own network.
void take_network_of_onnx(config::OptionSet& set, ImportCommand& options) {
  if (set.chosen("network") || options.file.extension() != ".onnx") return;
  const config::Option& file = *set.find("FILE");
  config::Option& network = *set.find("network");
  options.network.options.name = options.file.string();
  network.source = file.source;
  network.origin = file.origin;
}

void bind(config::OptionSet& set, ImportCommand& options) {
  set.group("Weights");
  config::Option& file =
      set.add("FILE", options.file,
              "file with the weights: safetensors, a state dict of PyTorch, an ONNX model, which needs no --network, "
              ".npz or MXNet's .params; or URL#sha256=HEX with the file's SHA-256");
  file.required = true;
  file.offers = config::Offers::files;
  config::refuse_folders(
      set.add("--out", options.out, "prefix of the checkpoint: PATH-0000.safetensors and PATH-0000.json"))
      .required = true;
  set.add("--force", options.force, "import over the checkpoints that --out has already").not_from_project = true;
  config::bind_network(set, options.network, "network of the weights");
  config::Option& network = *set.find("network");
  network.required = true;
  network.required_except = "for an ONNX model";
  set.after_sources([&options](config::OptionSet& all) { take_network_of_onnx(all, options); });
  config::bind_image(set, options.data);
  set.find("num-classes")->help = "number of classes; labels are 0 to N-1";
  for (const char* const name : {"image-shape", "resize", "num-classes", "rgb-mean", "rgb-std"}) {
    set.find(name)->help += " (default that of the weights, if they say it)";
    set.find(name)->found_later = true;
  }
}

// Takes the number of classes of the weights, unless the user or a file with the network says another number.
nn::Graph choose_graph(ImportCommand& options, const config::OptionSet& set) {
  nn::Graph graph = config::choose_graph(options.network, set, options.data);
  if (set.chosen("num-classes") || options.network.is_file()) return graph;
  const auto classes = train::classes_of_weights(options.file, graph);
  if (!classes || *classes == graph.classes()) return graph;
  options.data.classes = *classes;
  return config::choose_graph(options.network, set, options.data);
}

// An import would replace the checkpoint of the same name, or never be used beside a newer one.
void refuse_used_prefix(const Path& prefix) {
  const auto names = train::list_checkpoints(prefix);
  const auto orphans = names.empty() ? train::orphaned_tensors(prefix) : std::vector<Path>();
  if (names.empty() && orphans.empty()) return;
  const std::string found =
      names.empty()
          ? fmt::format("{} is there without its manifest, the .json file beside it", orphans.front().string())
          : fmt::format("has checkpoints already, the newest is {}", names.front().stem());
  throw UsageError(fmt::format("--out {}: {}", prefix.string(), found),
                   "--force imports over what is there; or choose another --out");
}

ExitCode act(const ImportCommand& given, const config::OptionSet& set, Reporter& reporter) {
  ImportCommand options = given;
  config::refuse_prefix_of_file(options.out, "--out");
  if (!options.force) refuse_used_prefix(options.out);
  train::fetch_weights(options.file, [&](const std::string& line) { reporter.note(line); });
  const bool says_pixels = config::suit_weights(options.file, options.network.options.name, set, options.data);
  if (!options.network.is_file()) config::suit_network_options(options.file, set, options.network.options);
  config::suit_anchors(options.file, set, options.network.options);
  const nn::Graph graph = choose_graph(options, set);
  config::suit_network(graph, set, options.data);
  train::StartingWeights weights = train::load_weights({.file = options.file, .whole = true}, graph);
  train::require_finite(weights.checkpoint, options.file);
  const Json& stored = weights.checkpoint.job.preprocessing;
  options.data.class_names = config::class_names_of(stored);
  if (nn::detection_of(graph) && !set.chosen("image-shape"))
    options.data.aspect_groups = config::aspect_groups_of(stored);
  weights.checkpoint.job.preprocessing = config::preprocessing_of(options.data);
  const train::CheckpointName name{options.out, 0, 0};
  const auto lock = job::lock_prefix(options.out, "--out");
  if (!options.force) refuse_used_prefix(options.out);  // again: a run may have begun meanwhile
  remove_abandoned(options.out);
  const Path file = train::save_checkpoint(name, weights.checkpoint);
  if (reporter.json()) {
    reporter.answer_json(Json::object({{"schema", "dtrain.import/1"},
                                       {"network", graph.name},
                                       {"classes", graph.classes()},
                                       {"tensors", weights.fit.fitted},
                                       {"unused", weights.fit.unused.size()},
                                       {"file", file.string()}}));
  } else {
    reporter.answer(file.string());
  }
  const auto names = train::list_checkpoints(options.out);
  if (!names.empty() && names.front().stem() != name.stem()) {
    reporter.warn(fmt::format("{} is newer, and stays the one that is used: --load-epoch 0 takes the import",
                              names.front().stem()));
  }
  if (!says_pixels) config::note_assumed_pixels(options.file, set, options.data, reporter);
  if (!weights.fit.set.empty()) reporter.note(fmt::format("{}: {}", options.file.string(), weights.fit.set));
  if (!weights.fit.unused.empty()) {
    reporter.warn(fmt::format("{} of the tensors of {} are not used, such as {}", weights.fit.unused.size(),
                              options.file.string(), weights.fit.unused.front()));
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_import() {
  auto command = make_command<ImportCommand>("import", "make a checkpoint from the weights of another program", act);
  command->examples = {"dtrain import resnet50.safetensors --network resnet50 --out m/imagenet",
                       "dtrain import mobilenet_v2.pth --network mobilenet_v2 --out m/mobile"};
  command->see_also = {"train", "predict", "eval", "export"};
  return command;
}

}  // namespace dtrain::cli
