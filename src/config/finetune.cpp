#include "finetune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <variant>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "recipes.hpp"

namespace dtrain::config {
namespace {

constexpr int kSmallImage = 64;   // pixels of an image that is shifted, not cut out
constexpr int kFewPictures = 10;  // of a class
constexpr int kWarmUpShare = 10;
constexpr double kRateBatch = 32;  // samples that the rates are meant for
constexpr int kHeadFactor = 10;
constexpr double kDetectionWarmUpShare = 20;

int batch_of(const FinetuneFacts& facts) {
  if (facts.batch) return *facts.batch;
  const std::uint64_t most = facts.network.image.h <= kSmallImage ? 128 : 32;
  return static_cast<int>(std::clamp<std::uint64_t>(std::bit_floor(facts.pictures / 8), 8, most));
}

struct Length {
  std::uint64_t steps, fewest_epochs, most_epochs;
};
constexpr Length kOfClassifier{600, 5, 30}, kOfDetector{1500, 6, 36};

int epochs_of(const FinetuneFacts& facts, int batch, const Length& length) {
  if (facts.epochs) return *facts.epochs;
  const auto samples = static_cast<std::uint64_t>(batch);
  const std::uint64_t steps = std::max<std::uint64_t>((facts.pictures + samples - 1) / samples, 1);
  const std::uint64_t epochs = (length.steps + steps - 1) / steps;
  return static_cast<int>(std::clamp(epochs, length.fewest_epochs, length.most_epochs));
}

class Choices {
 public:
  template <typename Value>
  void add(std::string option, const Value& value) {
    choices_.push_back({std::move(option), fmt::format("{}", value)});
  }
  std::vector<FinetuneChoice> take() { return std::move(choices_); }

 private:
  std::vector<FinetuneChoice> choices_;
};

void add_network(const nn::NetworkOptions& network, Choices& choices) {
  if (network.name.empty()) return;
  choices.add("network", network.name);
  if (network.num_layers > 0) choices.add("num-layers", network.num_layers);
  if (network.width > 0) choices.add("width", network.width);
  if (network.batch_norm) choices.add("batch-norm", "1");
  if (!network.backbone.empty()) choices.add("backbone", network.backbone);
  if (network.proposals > 0) choices.add("proposals", network.proposals);
  if (network.anchor_size > 0) choices.add("anchor-size", network.anchor_size);
}

// A new layer alone has nothing to spoil, so it learns faster than a whole network.
struct UsualRates {
  double rate, head_rate;
  const char* decay;
};
constexpr UsualRates kOfSgd{0.01, 0.05, "0.0001"}, kOfAdam{1e-4, 1e-3, "0.0001"}, kOfAdamw{1e-4, 1e-3, "0.05"};

std::optional<UsualRates> usual_rates(nn::OptimizerKind kind) {
  switch (kind) {
    case nn::OptimizerKind::sgd:
    case nn::OptimizerKind::nag:
      return kOfSgd;
    case nn::OptimizerKind::adam:
    case nn::OptimizerKind::nadam:
      return kOfAdam;
    case nn::OptimizerKind::adamw:
      return kOfAdamw;
    default:
      return std::nullopt;
  }
}

void require_rate(const FinetuneFacts& facts, nn::OptimizerKind kind) {
  if (facts.has_rate) return;
  throw UsageError(fmt::format("--finetune: knows no learning rate for --optimizer {}", nn::optimizer_name(kind)),
                   "give --lr as well, or leave --optimizer out");
}

void add_warmup(const FinetuneFacts& facts, const std::string& epochs, Choices& choices) {
  if (!facts.one_cycle) choices.add("warmup-epochs", epochs);
}

void add_rates(const FinetuneFacts& facts, int batch, bool head_alone, Choices& choices) {
  const auto suited = facts.suits_adam ? nn::OptimizerKind::adamw : nn::OptimizerKind::sgd;
  const nn::OptimizerKind kind = facts.optimizer.value_or(suited);
  choices.add("optimizer", nn::optimizer_name(kind));
  if (const auto usual_of_kind = usual_rates(kind)) {
    const double rate = head_alone ? usual_of_kind->head_rate : usual_of_kind->rate;
    choices.add("lr", fmt::format("{:.2g}", rate * std::sqrt(batch / kRateBatch)));
    choices.add("wd", usual_of_kind->decay);
  } else {
    require_rate(facts, kind);
  }
  if (head_alone) {
    choices.add("freeze", "backbone");
  } else {
    choices.add("head-lr-factor", kHeadFactor);
  }
  choices.add("lr-schedule", "cosine");
  choices.add("label-smoothing", "0.1");
}

void add_augmentation(const FinetuneFacts& facts, Choices& choices) {
  const nn::Shape& image = facts.network.image;
  if (image.h <= kSmallImage) {
    choices.add("pad-size", facts.cuts_windows ? 0 : image.h / 8);
  } else {
    choices.add("pad-size", 0);
    choices.add("random-resized-crop", 1);
    choices.add("min-random-area", "0.35");
  }
  for (const char* colour : {"max-random-h", "max-random-s", "max-random-l"}) choices.add(colour, 0);
}

// Of the recipe that detectors have.
std::string usual(std::string_view option) { return value_in_recipe("detection", option).value(); }

// Batch norms of a detector that learns from few pictures are better left alone with all of its backbone.
std::vector<FinetuneChoice> choices_of_detector(const FinetuneFacts& facts, bool backbone_stays) {
  const double usual_batch = parse_number(usual("batch-size")).value();
  const int batch = facts.batch.value_or(static_cast<int>(usual_batch));
  const int epochs = epochs_of(facts, batch, kOfDetector);
  Choices choices;
  nn::NetworkOptions network = facts.network;
  if (network.proposals == 0 && nn::has_proposals(network.name))
    network.proposals = static_cast<int>(parse_integer(usual("proposals")).value());
  add_network(network, choices);
  choices.add("global-batch", batch);
  choices.add("num-epochs", epochs);
  add_warmup(facts, fmt::format("{:.2g}", epochs / kDetectionWarmUpShare), choices);
  const nn::OptimizerKind usual_kind = nn::parse_optimizer(usual("optimizer"));
  if (facts.optimizer.value_or(usual_kind) == usual_kind) {
    choices.add("optimizer", usual("optimizer"));
    choices.add("lr", fmt::format("{:.2g}", parse_number(usual("lr")).value() * std::sqrt(batch / usual_batch)));
    choices.add("wd", usual("wd"));
  } else {
    require_rate(facts, *facts.optimizer);
    if (const auto usual_of_kind = usual_rates(*facts.optimizer)) choices.add("wd", usual_of_kind->decay);
  }
  choices.add("lr-schedule", usual("lr-schedule"));
  if (backbone_stays) choices.add("freeze", "backbone");
  return choices.take();
}

}  // namespace

const char* usual_decay(nn::OptimizerKind kind) {
  const auto rates = usual_rates(kind);
  return rates ? rates->decay : nullptr;
}

bool suits_adam(const nn::Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const nn::Node& node) {
    return std::holds_alternative<nn::Attention>(node.layer) || std::holds_alternative<nn::LayerNorm>(node.layer);
  });
}

std::vector<FinetuneChoice> finetune_choices(const FinetuneFacts& facts) {
  const auto classes = static_cast<std::uint64_t>(std::max(facts.network.classes, 1));
  const bool head_alone = facts.head_alone.value_or(facts.pictures < kFewPictures * classes);
  if (nn::is_detector(facts.network.name)) return choices_of_detector(facts, head_alone);
  const int batch = batch_of(facts);
  const int epochs = epochs_of(facts, batch, kOfClassifier);
  Choices choices;
  add_network(facts.network, choices);
  choices.add("global-batch", batch);
  choices.add("num-epochs", epochs);
  add_warmup(facts, fmt::format("{}", epochs / kWarmUpShare), choices);
  add_rates(facts, batch, head_alone, choices);
  add_augmentation(facts, choices);
  return choices.take();
}

}  // namespace dtrain::config
