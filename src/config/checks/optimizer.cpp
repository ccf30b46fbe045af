#include "optimizer.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include <dtrain/base/text.hpp>

#include "config/finetune.hpp"
#include "config/gpu/gpu_choice.hpp"
#include "config/recipes.hpp"

namespace dtrain::config {
namespace {

constexpr const char* kDetection = "detection";
constexpr double kDetectorRateOfSample = 0.00125;  // torchvision's 0.02 for a step of 16

nn::OptimizerKind kind_of_recipe(const std::string& recipe) {
  const auto named = value_in_recipe(recipe, "optimizer");
  return named ? nn::parse_optimizer(*named) : nn::Optimizer{}.kind;
}

float decay_of(nn::OptimizerKind kind) {
  const char* const usual = usual_decay(kind);
  return usual ? static_cast<float>(parse_number(usual).value()) : nn::Optimizer{}.weight_decay;
}

// Workers of servers update by a batch of their own each.
int samples_of_update(const TrainOptions& options) {
  return options.job.is_asynchronous() ? batch_of_worker(options.compute) : options.compute.samples_per_step();
}

// Numbers that --finetune chose stay: it knows the optimizer.
class NumbersOfRecipe {
 public:
  NumbersOfRecipe(const OptionSet& set, const std::string& recipe)
      : set_(set), origin_(fmt::format("recipe {}", recipe)) {}
  template <typename Number>
  void replace(const char* option, Number& number, Number by) {
    if (set_.find(option)->origin != origin_ || number == by) return;
    words_.push_back(fmt::format("--{} {:g} instead of {:g}", option, by, std::exchange(number, by)));
  }
  const std::vector<std::string>& words() const { return words_; }

 private:
  const OptionSet& set_;
  std::string origin_;
  std::vector<std::string> words_;
};

}  // namespace

bool takes_momentum(nn::OptimizerKind kind) {
  using enum nn::OptimizerKind;
  return kind == sgd || kind == nag || kind == muon || kind == lars || kind == signum;
}

std::string settle_optimizer(const OptionSet& set, TrainOptions& options) {
  nn::Optimizer& rule = options.optimizer;
  const nn::OptimizerKind meant = kind_of_recipe(options.recipe);
  if (!set.chosen("optimizer") || rule.kind == meant) return {};
  const nn::Optimizer plain;
  NumbersOfRecipe numbers(set, options.recipe);
  const bool is_plain_descent = rule.kind == nn::OptimizerKind::sgd || rule.kind == nn::OptimizerKind::nag;
  if (options.recipe == kDetection && is_plain_descent)
    numbers.replace("lr", options.schedule.base, kDetectorRateOfSample * samples_of_update(options));
  numbers.replace("wd", rule.weight_decay, decay_of(rule.kind));
  numbers.replace("bias-lr-factor", rule.bias_lr_factor, plain.bias_lr_factor);
  numbers.replace("head-lr-factor", rule.head_lr_factor, plain.head_lr_factor);
  if (numbers.words().empty()) return {};
  return fmt::format("--optimizer {}: {}; --recipe {} is meant for {}", nn::optimizer_name(rule.kind),
                     join(numbers.words(), ", "), options.recipe, nn::optimizer_name(meant));
}

}  // namespace dtrain::config
