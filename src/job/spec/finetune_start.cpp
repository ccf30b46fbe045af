#include "finetune_start.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/train/weights.hpp>

#include "config/finetune.hpp"
#include "queued_attempt.hpp"
#include "train_start.hpp"

namespace dtrain::job {
namespace {

void check(const config::TrainOptions& options, const config::OptionSet& set) {
  for (const char* other : {"recipe", "pretrained", "load-epoch"}) {
    if (!set.chosen(other)) continue;
    throw UsageError(fmt::format("{} and {}: both choose how to begin", config::with_origin(*set.find("finetune")),
                                 config::with_origin(*set.find(other))),
                     "give one of them; with --finetune, single options may be given as well");
  }
  if (!set.chosen("data-train")) {
    throw UsageError("--finetune: --data-train is missing",
                     "give the record files to train on; `dtrain data pack` makes them of photographs");
  }
  config::require_records(*options.data.train);
}

int classes_of(const config::TrainOptions& options, const config::OptionSet& set, const std::string& network,
               const std::vector<Path>& records, const train::SharedStore& store) {
  if (set.chosen("num-classes")) return options.data.classes;
  const auto classes = static_cast<int>(data::class_names(records, store).size());
  if (classes == 0) {
    throw UsageError(fmt::format("--finetune: {} does not name its classes", data::shown_files(*options.data.train)),
                     "give --num-classes");
  }
  config::require_classes(network, classes);
  return classes;
}

std::uint64_t pictures_of(const config::TrainOptions& options, const std::vector<Path>& records,
                          const train::SharedStore& store) {
  data::RemoteOptions remote;
  remote.store = store;
  config::set_cache(options.data, remote);
  const std::uint64_t all = data::RecordSet(records, remote).size();
  const auto wanted = static_cast<std::uint64_t>(options.data.num_examples);
  return wanted > 0 ? std::min(all, wanted) : all;
}

// The weights of a detector know its backbone, and those of a classifier may be one.
std::string backbone_of(const nn::NetworkOptions& weights) {
  for (const std::string& name : nn::backbone_names()) {
    const std::string depth = name.substr(name.find('-') + 1);
    const bool has_depth = weights.name == "resnet-v1.5" && fmt::format("{}", weights.num_layers) == depth;
    if (has_depth || weights.name == "resnet" + depth || weights.backbone == name) return name;
  }
  return {};
}

// A detector that the user names, with what the weights know of it.
nn::NetworkOptions named_detector(const config::TrainOptions& options, const config::OptionSet& set) {
  nn::NetworkOptions network = options.network.options;
  const auto known = train::network_of_weights(*options.pretrained.finetune).value_or(nn::NetworkOptions{});
  if (!set.chosen("backbone")) network.backbone = backbone_of(known);
  if (!set.chosen("proposals")) network.proposals = nn::has_proposals(network.name) ? known.proposals : 0;
  if (!set.chosen("anchor-size")) network.anchor_size = known.anchor_size;
  return network;
}

nn::NetworkOptions network_of(const config::TrainOptions& options, const config::OptionSet& set) {
  if (set.chosen("network")) {
    const nn::NetworkOptions& network = options.network.options;
    return nn::is_detector(network.name) ? named_detector(options, set) : network;
  }
  const Path& file = *options.pretrained.finetune;
  const auto known = train::network_of_weights(file);
  if (!known) {
    throw DataError(fmt::format("{}: the weights of no network that dtrain knows by its tensors", file.string()),
                    "name the network with --network; `dtrain help networks` lists those that there are");
  }
  return *known;
}

bool suits_adam(const nn::NetworkOptions& network, const config::OptionSet& set, config::DataOptions data) {
  data.image = network.image;
  data.classes = network.classes;
  const config::NetworkChoice choice{.options = network, .known_classes = network.classes};
  return config::suits_adam(config::choose_graph(choice, set, data));
}

config::FinetuneFacts facts_of(const config::TrainOptions& options, const config::OptionSet& set,
                               const train::SharedStore& store) {
  const std::vector<Path> records = data::find_records(options.data.train->string(), store);
  config::FinetuneFacts facts{.network = network_of(options, set)};
  facts.network.classes = classes_of(options, set, facts.network.name, records, store);
  config::DataOptions data = options.data;
  config::suit_weights(*options.pretrained.finetune, facts.network.name, set, data);
  facts.network.image = data.image;
  facts.suits_adam = suits_adam(facts.network, set, options.data);
  facts.pictures = pictures_of(options, records, store);
  if (set.chosen("batch-size") || set.chosen("global-batch")) facts.batch = options.compute.samples_per_step();
  if (set.chosen("num-epochs")) facts.epochs = options.epochs;
  if (set.chosen("optimizer")) facts.optimizer = options.optimizer.kind;
  facts.has_rate = set.chosen("lr");
  facts.cuts_windows = set.chosen("random-resized-crop") && options.data.augment.random_resized_crop;
  facts.one_cycle = set.chosen("lr-schedule") && options.schedule.kind == nn::ScheduleKind::one_cycle;
  if (set.chosen("freeze")) facts.head_alone = options.pretrained.freeze == "backbone";
  return facts;
}

}  // namespace

void choose_finetuning(config::TrainOptions& options, config::OptionSet& set, Reporter& reporter) {
  drop_weaker_starts(set, options);
  if (!options.pretrained.finetune) return;
  check(options, set);
  config::let_stronger_batch_decide(set, options.compute);
  const bool is_far = data::is_remote(*options.data.train);
  const auto store = is_far ? std::make_shared<net::ObjectStore>() : nullptr;
  // The queue is settled later, by options that are chosen here.
  const bool is_attempt = environment(kManagedVariable).has_value();
  const config::FinetuneFacts facts = with_passing_refusals(is_attempt, [&] {
    train::fetch_weights(
        *options.pretrained.finetune, [&](const std::string& line) { reporter.note(line); }, store);
    return facts_of(options, set, store);
  });
  std::string words;
  for (const auto& [name, text] : config::finetune_choices(facts)) {
    config::Option& option = *set.find(name);
    if (set.chosen(name) || (facts.batch && name == "global-batch")) continue;
    option.set(text);
    option.source = config::Source::recipe;
    option.origin = "--finetune";
    words += option.is_switch() ? fmt::format(" --{}", name) : fmt::format(" --{} {}", name, text);
  }
  options.pretrained.file = options.pretrained.finetune;
  const int classes = facts.network.classes;
  reporter.note(fmt::format("--finetune chose for {} of {} class{}:{}", count_text(facts.pictures, "picture"), classes,
                            classes == 1 ? "" : "es", words));
}

}  // namespace dtrain::job
