#include "train_start.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/ssh.hpp>
#include <dtrain/nn/freeze.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/nn/synchronized_norms.hpp>

#include "config/checkpoint_choice.hpp"
#include "config/checks/idle_options.hpp"
#include "config/checks/schedule.hpp"
#include "first_run.hpp"
#include "shared_folders.hpp"

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

std::string command_of_first_run(const Path& file) {
  return fmt::format("dtrain train --config {} --resume", net::shell_quoted(file.string()));
}

// The recipe's records are not meant where the first run had others, whose options are in a file.
void require_data_to_resume(const config::TrainOptions& options, const config::OptionSet& set, const Path& prefix) {
  if (set.chosen("data-train") || !options.data.train || options.benchmark) return;
  const auto file = configuration_of_first_run(folder_of_prefix(prefix));
  if (!file) return;
  try {
    config::require_records(*options.data.train);
  } catch (const DataError& error) {
    throw DataError(error.what(),
                    fmt::format("`{}` takes the options of the first run again, --data-train among them; options "
                                "after it replace those of the file",
                                command_of_first_run(*file)));
  }
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

std::vector<std::string> let_stronger_start_decide(const config::OptionSet& set, config::TrainOptions& options) {
  using config::Source;
  std::vector<std::string> dropped;
  const auto source_of = [&](const char* name) { return set.find(name)->source; };
  const auto drop = [&](const char* name, auto& field) {
    field = {};
    dropped.emplace_back(name);
  };
  const auto decide = [&](const char* one, auto& field, const char* other, auto& of_other) {
    if (!field || !of_other || source_of(one) == source_of(other)) return;
    source_of(one) < source_of(other) ? drop(one, field) : drop(other, of_other);
  };
  config::Pretrained& weights = options.pretrained;
  const bool had_weights = weights.file || weights.finetune;
  decide("resume", options.resume, "load-epoch", options.load_epoch);
  decide("load-epoch", options.load_epoch, "finetune", weights.finetune);
  // Once --finetune has chosen the options, its file is that of --pretrained, which is not chosen then.
  if (set.chosen("pretrained")) decide("pretrained", weights.file, "finetune", weights.finetune);
  if (set.chosen("pretrained")) decide("load-epoch", options.load_epoch, "pretrained", weights.file);
  if (had_weights && source_of("load-epoch") > source_of("new-head"))
    decide("load-epoch", options.load_epoch, "new-head", weights.new_head);
  return dropped;
}

void drop_weaker_starts(config::OptionSet& set, config::TrainOptions& options) {
  for (const std::string& name : let_stronger_start_decide(set, options)) {
    config::Option& option = *set.find(name);
    option.source = config::Source::fallback;
    option.given.reset();
  }
}

void settle_load_epoch(const config::OptionSet& set, const train::SharedStore& store, config::TrainOptions& options) {
  let_stronger_start_decide(set, options);
  if (options.load_epoch && options.model_prefix && !options.resume)
    options.load_epoch = config::settled_epoch(*options.model_prefix, *options.load_epoch, store);
}

std::optional<Start> find_start(const config::TrainOptions& options, const config::OptionSet& set,
                                const train::SharedStore& store, Reporter& reporter) {
  constexpr const char* kWhy = "both choose where to begin";
  if (options.resume && options.load_epoch) config::first_decides(set, "resume", "load-epoch", kWhy);
  if (options.load_epoch && options.pretrained.file) config::first_decides(set, "load-epoch", "pretrained", kWhy);
  if (options.pretrained.new_head && !options.pretrained.file) {
    throw UsageError("--new-head: there is no last layer to replace without --pretrained", "add --pretrained FILE");
  }
  if (options.resume) {
    const Path& prefix = needed_prefix(options, "--resume");
    require_data_to_resume(options, set, prefix);
    require_latest_checkpoint(options, store);
    return newest_undamaged(prefix, store, reporter);
  }
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

namespace {

constexpr double kMostEpochs = std::numeric_limits<int>::max();

struct Shown {
  explicit Shown(const config::TrainOptions& values) {
    config::bind(set, options);
    options = values;
  }
  config::TrainOptions options;
  config::OptionSet set;
};

// With any optimizer alike.
bool is_of_schedule(std::string_view name) {
  return name.starts_with("lr") || name.starts_with("warmup-") || name.starts_with("clip-");
}

// An option counts where the first run used it. One that the user's own choice of a schedule or of an optimizer leaves
// without effect or without comparison is not missing.
bool is_comparable(const std::string& name, const config::TrainOptions& saved, const config::TrainOptions& mine,
                   const config::OptionSet& set) {
  const bool chose_another = set.chosen("lr-schedule") && saved.schedule.kind != mine.schedule.kind;
  const bool chose_optimizer = set.chosen("optimizer") && saved.optimizer.kind != mine.optimizer.kind;
  if (chose_optimizer && !is_of_schedule(name)) return false;
  if (!config::has_effect(saved, name) || (chose_another && !config::has_effect(mine, name))) return false;
  return name != "warmup-epochs" || !config::warmups_may_differ(set, saved.schedule, mine.schedule);
}

}  // namespace

// Checkpoints keep the rates that the options give, not those that follow the number of workers.
std::vector<OtherRate> other_rates(const train::Checkpoint& start, const config::OptionSet& set,
                                   const config::TrainOptions& options) {
  const bool is_trained = start.cursor.samples_seen > 0;
  if (!options.resume || options.benchmark || !is_trained) return {};
  // The same options twice, but for optimizer and schedule: what shows another text learns in another way.
  Shown saved(options), mine(options);
  saved.options.optimizer = start.job.optimizer;
  saved.options.schedule = start.job.schedule;
  mine.options.schedule.total_epochs = options.epochs;
  saved.options.epochs = static_cast<int>(std::min(start.job.schedule.total_epochs, kMostEpochs));
  std::vector<OtherRate> others;
  for (const config::Option& option : saved.set.options()) {
    const std::string name = option.name(), first = option.show(), now = mine.set.find(name)->show();
    if (first != now && !set.chosen(name) && is_comparable(name, saved.options, mine.options, set))
      others.push_back({name, first, now});
  }
  return others;
}

// At one place of a run, a schedule that ends with the run has other rates for other lengths.
static void note_other_length(const train::Checkpoint& start, const config::OptionSet& set,
                              const config::TrainOptions& options, Reporter& reporter) {
  const nn::Schedule& saved = start.job.schedule;
  nn::Schedule mine = saved;  // what else the user changed is no doing of the length
  mine.total_epochs = options.epochs;
  const bool chose_length = options.resume && !options.benchmark && set.chosen("num-epochs");
  if (!chose_length || saved.kind != options.schedule.kind || saved.kind == nn::ScheduleKind::step) return;
  const auto has_rates = [](const nn::Schedule& each) { return each.total_epochs > each.warmup_epochs; };
  if (saved.total_epochs == mine.total_epochs || !has_rates(saved) || !has_rates(mine)) return;
  const std::uint64_t seen = start.cursor.samples_seen, epoch = std::max<std::uint64_t>(start.job.samples, 1);
  const double before = saved.rate(seen, epoch), now = mine.rate(seen, epoch);
  if (before == now) return;
  reporter.note(fmt::format("The {} schedule takes {} instead of {}: the learning rate was {:.4g} and becomes {:.4g}",
                            nn::schedule_name(mine.kind), count_text(options.epochs, "epoch"), saved.total_epochs,
                            before, now));
}

void warn_of_other_rates(const train::Checkpoint& start, const config::OptionSet& set,
                         const config::TrainOptions& options, Reporter& reporter) {
  note_other_length(start, set, options, reporter);
  std::vector<OtherRate> others = other_rates(start, set, options);
  const auto first = find_first_run(options, set);
  if (first && start.cursor.samples_seen > 0)
    std::ranges::move(other_options(first->options, set, options), std::back_inserter(others));
  std::vector<std::string> saved, mine;
  for (const OtherRate& other : others) {
    saved.push_back(other.saved.empty() ? fmt::format("no --{}", other.option)
                                        : fmt::format("--{} {}", other.option, other.saved));
    mine.push_back(other.mine.empty() ? "none" : other.mine);
  }
  if (saved.empty()) return;
  std::string way;
  if (first) {  // whose options this run moves to that file, once it has begun
    const Path file = options.dry_run ? first->file : JobFolder{first->file.parent_path()}.first_configuration();
    way = fmt::format(", as `{}` does", command_of_first_run(file));
  }
  reporter.warn(
      fmt::format("--resume: the checkpoint was trained with {}, and this run goes on with {}: give the options of the "
                  "first run again{}",
                  join(saved, ", "), join(mine, ", "), way));
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

// What the user did not choose of the network: number of classes and size of the images, as a fresh run has them from
// its data, its weights or a model, and what a network of this name has of its own. The images of a network of another
// name stay those of the options that describe it.
void take_from(const nn::Graph& saved, const config::OptionSet& set, config::TrainOptions& options) {
  nn::NetworkOptions& network = options.network.options;
  if (!set.chosen("num-classes")) options.network.known_classes = options.data.classes = saved.classes();
  const auto known = nn::options_of_network(saved);
  const bool has_name = known && known->name == network.name;
  if (!set.chosen("image-shape") && (has_name || !known || options.network.is_file()))
    options.data.image = saved.input();
  if (!has_name) return;
  if (!set.chosen("backbone")) network.backbone = known->backbone;
  if (!set.chosen("proposals")) network.proposals = known->proposals;
  if (!set.chosen("anchor-size")) network.anchor_size = known->anchor_size;
}

// Without its name, a detector would get the defaults of other networks.
std::vector<std::string> options_to_leave_out(const config::OptionSet& set, const nn::Graph& saved,
                                              const config::TrainOptions& options) {
  std::vector<std::string> given = config::chosen_network_options(set);
  const bool are_detectors = nn::detection_of(saved) && nn::is_detector(options.network.options.name);
  if (are_detectors && given.size() > 1) std::erase(given, "--network");
  return given;
}

// A model that dtrain exported has the loss of the run that made it; a new run has that of its options, as with a
// network by its name.
void take_loss_of_options(const config::NetworkChoice& network, nn::Graph& graph) {
  if (network.is_onnx() && !nn::detection_of(graph))
    nn::set_loss(graph, {.label_smoothing = network.options.label_smoothing});
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
  if (start) take_from(start->graph, set, options);
  nn::Graph graph = config::choose_graph(options.network, set, options.data);
  if (!start) {
    take_loss_of_options(options.network, graph);
    return graph;
  }
  const std::string difference = config::difference_of(bare_network(start->graph), bare_network(graph));
  if (difference.empty()) return start->graph;
  throw UsageError(fmt::format("the checkpoint holds {}, not the {} that the options describe: {}", start->graph.name,
                               graph.name, difference),
                   fmt::format("leave {} out to take the checkpoint's",
                               join(options_to_leave_out(set, start->graph, options), ", ")));
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
  const auto unusual = config::unusual_image(options.network, set, options.data.image);
  if (unusual && !start && !options.pretrained.file) reporter.note(*unusual);
  if (options.synchronized_norms) {
    nn::synchronize_norms(graph);
    require_unchanged(graph, start, options.resume, "--sync-bn", "without it");
  }
  if (options.pretrained.freeze.empty()) {
    const std::int64_t held = nn::frozen_tensors(graph);
    if (held > 0) {
      reporter.note(fmt::format("{} of the {} tensors of {} stay as they are, as {} says{}", held,
                                graph.parameters.size(), graph.name, start ? "the checkpoint" : "its file",
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
