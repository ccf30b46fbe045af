#include "train_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/nn/freeze.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/nn/synchronized_norms.hpp>

#include "config/resizing/aspect_groups.hpp"

namespace dtrain::job {
namespace {

const Path& needed_prefix(const config::TrainOptions& options, std::string_view flag) {
  if (options.model_prefix) return *options.model_prefix;
  throw UsageError(fmt::format("{}: needs --model-prefix, the start of the checkpoint's name", flag));
}

std::optional<Start> newest_undamaged(const Path& prefix, const train::SharedStore& store, Reporter& reporter) {
  const auto names = train::list_checkpoints(prefix, store);
  for (const train::CheckpointName& name : names) {
    try {
      Start start{.checkpoint = train::load_checkpoint_file(name.stem() + ".json", store),
                  .file = name.stem() + ".json"};
      const train::Cursor& cursor = start.checkpoint.cursor;
      reporter.note(fmt::format("Resuming from \"{}\": epoch {}, step {}", name.stem(), cursor.epoch, cursor.step));
      return start;
    } catch (const DataError& error) {
      reporter.warn(fmt::format("{}; trying the checkpoint before it", error.what()));
    }
  }
  if (names.empty()) {
    reporter.note(fmt::format("No checkpoint of {} yet: starting from the beginning", prefix.string()));
    return std::nullopt;
  }
  throw DataError(fmt::format("{}: every checkpoint is damaged", prefix.string()),
                  "start again with another --model-prefix, or copy the checkpoints from a backup");
}

template <typename Value>
void agree(const config::OptionSet& set, const char* name, Value& mine, const Value& saved) {
  if (set.chosen(name) && mine != saved) {
    throw UsageError(fmt::format("--{} {}: the checkpoint was trained with {}", name, mine, saved),
                     fmt::format("leave --{} out to resume, or use another --model-prefix", name));
  }
  mine = saved;
}

}  // namespace

void refuse_other_starts(const config::TrainOptions& options, std::string_view starter) {
  if (options.load_epoch) {
    throw UsageError(
        fmt::format("--load-epoch: {} continues a job from its newest checkpoint, not from an older one", starter),
        "--resume continues the newest; --pretrained FILE begins with the weights of any checkpoint");
  }
  if (options.force) {
    throw UsageError("--force: after a loss, the job could continue the checkpoints that it was to replace",
                     "choose another --model-prefix, or remove the old checkpoints first");
  }
}

std::optional<Start> find_start(const config::TrainOptions& options, const config::OptionSet& set,
                                const train::SharedStore& store, Reporter& reporter) {
  if (options.resume && options.load_epoch) {
    throw UsageError("--resume and --load-epoch: both choose where to begin", "give one of them");
  }
  if (options.load_epoch && options.pretrained.file) {
    throw UsageError("--load-epoch and --pretrained: both choose where to begin", "give one of them");
  }
  if (options.pretrained.new_head && !options.pretrained.file) {
    throw UsageError("--new-head: there is no last layer to replace without --pretrained", "add --pretrained FILE");
  }
  if (options.resume) return newest_undamaged(needed_prefix(options, "--resume"), store, reporter);
  if (!options.load_epoch) return std::nullopt;
  std::optional<int> classes;
  if (set.chosen("num-classes")) classes = options.data.classes;
  const Path& prefix = needed_prefix(options, "--load-epoch");
  train::Checkpoint checkpoint = train::load_checkpoint(prefix, static_cast<std::uint32_t>(*options.load_epoch),
                                                        options.data.image, classes, store);
  checkpoint.best = {};  // of another run
  reporter.note(fmt::format("Loaded model \"{}-{:04}\"", prefix.string(), *options.load_epoch));
  return Start{.checkpoint = std::move(checkpoint), .file = {}};
}

static void agree_on_local_steps(const train::LocalSteps& saved, const config::OptionSet& set,
                                 train::LocalSteps& mine) {
  agree(set, "local-steps", mine.steps, saved.steps);
  if (!saved.any()) return;
  std::string outer = enum_name(train::kOuterOptimizerNames, mine.outer);
  agree(set, "outer-optimizer", outer, enum_name(train::kOuterOptimizerNames, saved.outer));
  mine.outer = saved.outer;
  if (!set.chosen("outer-lr")) mine.rate = saved.rate;
  if (!set.chosen("outer-mom")) mine.momentum = saved.momentum;
}

// They order the samples of an epoch.
static void agree_on_groups(const std::vector<data::ScaledSize>& saved, const config::OptionSet& set,
                            std::vector<data::ScaledSize>& mine) {
  std::string text = config::aspect_groups_text(mine);
  agree(set, "aspect-groups", text, saved.empty() ? "none" : config::aspect_groups_text(saved));
  mine = saved;
}

// At the end of an epoch each choice is as good as another.
static void agree_on_order(const train::Checkpoint& start, const config::OptionSet& set, config::DataOptions& mine) {
  const std::optional<train::SampleOrder>& saved = start.job.order;
  if (!saved || start.cursor.position == 0) return;
  agree(set, "shuffle-block", mine.shuffle_block, saved->shuffle_block);
  agree(set, "balanced-sampler", mine.balanced_sampler, saved->balanced);
  agree(set, "repeated-augment", mine.repeated_augment, saved->repeats);
}

void agree_with_checkpoint(const train::Checkpoint& start, const config::OptionSet& set,
                           config::TrainOptions& options) {
  if (!options.resume) return;
  agree(set, "seed", options.compute.seed, start.job.seed);
  agree(set, "logical-shards", options.compute.logical_shards, start.job.logical_shards);
  agree_on_local_steps(start.job.local, set, options.local);
  agree_on_groups(config::aspect_groups_of(start.job.preprocessing), set, options.data.aspect_groups);
  agree_on_order(start, set, options.data);
  // Where the batch followed the workers, its size says nothing about this run, and the rates stay those of the first.
  const int batch = start.job.rate_batch > 0 ? start.job.rate_batch : start.job.global_batch;
  const bool chosen = set.chosen("global-batch") || (set.chosen("batch-size") && !options.job.is_job());
  if (chosen && options.compute.samples_per_step() != batch) {
    throw UsageError(fmt::format("--{} {}: the checkpoint was trained with {} samples a step",
                                 set.chosen("global-batch") ? "global-batch" : "batch-size",
                                 options.compute.samples_per_step(), batch),
                     "leave it out to resume, or use another --model-prefix");
  }
  options.compute.global_batch = batch;
  // A part of what was trained.
  if (!set.chosen("ema")) options.optimizer.average = start.job.optimizer.average;
  if (!set.chosen("ema-warmup")) options.optimizer.average_warms_up = start.job.optimizer.average_warms_up;
}

namespace {

// The network without what may differ between a checkpoint and the run that continues it. That includes the initial
// values of weights: the checkpoint replaces them, and a symbol file of MXNet does not hold them.
nn::Graph bare_network(nn::Graph graph) {
  for (nn::Node& node : graph.nodes) {
    node.learns = true;
    if (auto* const norm = std::get_if<nn::BatchNorm>(&node.layer)) norm->synchronized = false;
    if (auto* const convolution = std::get_if<nn::Convolution>(&node.layer)) convolution->initial = {};
    if (auto* const loss = std::get_if<nn::SoftmaxLoss>(&node.layer)) *loss = {};
  }
  return graph;
}

// The defaults come from the recipe, which follows --network where that is given: those for images of classes would
// ruin a detector in silence.
void check_recipe_of_detector(const nn::Graph& graph, const config::OptionSet& set,
                              const config::TrainOptions& options) {
  const bool detects = nn::is_detector(options.network.options.name);
  if (!nn::detection_of(graph) || detects || set.chosen("recipe")) return;
  throw UsageError(
      fmt::format("the checkpoint holds {}, a detector, and the defaults of --recipe {} are for other networks",
                  graph.name, options.recipe),
      "give the --network of the first run again, or --recipe detection");
}

nn::Graph network_of_run(const std::optional<train::Checkpoint>& start, const config::OptionSet& set,
                         config::TrainOptions& options) {
  if (start && !config::network_is_chosen(set)) {
    check_recipe_of_detector(start->graph, set, options);
    if (set.chosen("drop-path")) config::require_drop_path(start->graph, options.network.options.drop_path);
    options.data.image = start->graph.input();
    options.data.classes = start->graph.classes();
    return start->graph;
  }
  if (start && !set.chosen("num-classes")) options.data.classes = start->graph.classes();
  nn::Graph graph = config::choose_graph(options.network, set, options.data);
  if (!start) return graph;
  const std::string difference = config::difference_of(bare_network(start->graph), bare_network(graph));
  if (difference.empty()) return start->graph;
  throw UsageError(fmt::format("the checkpoint holds {}, not the {} that the options describe: {}", start->graph.name,
                               graph.name, difference),
                   "leave --network, --num-layers, --image-shape, --num-classes and --drop-path out to take the "
                   "checkpoint's");
}

// What options change of a network must have been so from the beginning of a run that is resumed.
void require_unchanged(const nn::Graph& graph, const std::optional<train::Checkpoint>& start, bool resume,
                       const std::string& option, const char* how) {
  if (!start || !resume || nn::graph_to_json(graph) == nn::graph_to_json(start->graph)) return;
  throw UsageError(
      fmt::format("{}: the checkpoint was trained {}", option, how),
      fmt::format("leave {} out to resume, or begin a new run with --load-epoch", option.substr(0, option.find(' '))));
}

}  // namespace

nn::Graph graph_of_run(const std::optional<train::Checkpoint>& start, const config::OptionSet& set,
                       config::TrainOptions& options, Reporter& reporter) {
  nn::Graph graph = network_of_run(start, set, options);
  if (options.synchronized_norms) {
    nn::synchronize_norms(graph);
    require_unchanged(graph, start, options.resume, "--sync-bn", "without it");
  }
  if (options.pretrained.freeze.empty()) {
    const std::int64_t held = nn::frozen_tensors(graph);
    if (start && held > 0) {
      reporter.note(fmt::format("{} of the {} tensors of {} stay as they are, as the checkpoint says{}", held,
                                graph.parameters.size(), graph.name,
                                options.resume ? "" : "; --freeze 0 lets all learn"));
    }
    return graph;
  }
  const std::int64_t frozen = nn::freeze(graph, options.pretrained.freeze);
  require_unchanged(graph, start, options.resume, "--freeze " + options.pretrained.freeze, "with other layers frozen");
  reporter.note(
      fmt::format("{} of the {} tensors of {} stay as they are", frozen, graph.parameters.size(), graph.name));
  return graph;
}

// What compressed gradients hold back lies behind the optimizer's own state.
bool complete_optimizer_state(train::Checkpoint& start, const config::TrainOptions& options) {
  const nn::Optimizer& optimizer = options.optimizer;
  if (optimizer.average == 0) start.state.average.clear();
  backend::begin_average(optimizer, start.state);
  const std::size_t weights = start.state.parameters.size();
  const auto floats = [&](int slots) { return static_cast<std::size_t>(slots) * weights; };
  const std::size_t own = floats(train::optimizer_slots(optimizer.kind, options.local));
  const std::size_t needed = floats(train::optimizer_slots(optimizer.kind, options.local, options.job.compression));
  std::vector<float>& state = start.state.optimizer;
  const std::size_t held = start.job.compression.any() ? weights : 0;
  const bool same_rule = start.job.optimizer.kind == optimizer.kind;
  if (!same_rule || state.size() != own + held) {
    state.assign(needed, 0.0f);
    start.state.updates = 0;  // what corrects the bias of moments counts from where they begin
    return true;
  }
  if (state.size() == needed) return false;
  state.resize(own);
  state.resize(needed);
  return false;
}

void fit_optimizer_state(train::Checkpoint& start, config::TrainOptions& options, Reporter& reporter) {
  if (start.job.compression.any() && !options.job.compression.any()) {
    reporter.note("The run goes on without what the checkpoint's compressed gradients held back");
  }
  if (!start.state.average.empty() && options.optimizer.average == 0) {
    reporter.note("The run goes on without the checkpoint's average of weights");
  }
  const bool goes_on_averaging = !start.state.average.empty() && options.optimizer.average > 0;
  if (!complete_optimizer_state(start, options)) return;
  reporter.note("The checkpoint has no state of this optimizer: it begins at zero");
  // A warm-up counts updates, too: it would throw the average away at the first one.
  if (goes_on_averaging && std::exchange(options.optimizer.average_warms_up, false))
    reporter.note("The checkpoint's average of weights goes on without --ema-warmup");
}

}  // namespace dtrain::job
