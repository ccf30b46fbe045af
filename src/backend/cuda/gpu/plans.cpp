#include "plans.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "../product.hpp"

namespace dtrain::backend::cuda {
namespace {

std::string name_of(const Descriptor& engine, const Descriptor& settings) {
  std::string name = fmt::format("{}", engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  char separator = ':';
  for (const Descriptor& knob : settings.get_at_most(CUDNN_KNOB_TYPE_COUNTS, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                     CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)) {
    name += fmt::format("{}{}={}", separator,
                        static_cast<int>(knob.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE)),
                        knob.get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
    separator = ',';
  }
  return name;
}

// The notes of one kind that cuDNN has on an engine.
template <typename Note, std::size_t kMost>
class Notes {
 public:
  Notes(const Descriptor& engine, cudnnBackendAttributeName_t kind)
      : count_(engine.get_some(kind, std::span<Note>(room_))) {}
  bool has(Note note) const {
    const auto notes = std::span(room_).first(count_);
    return std::ranges::find(notes, note) != notes.end();
  }

 private:
  std::array<Note, kMost> room_{};
  std::size_t count_;
};

EngineFacts facts_of(const Descriptor& settings) {
  const Descriptor engine =
      std::move(settings.get_all(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR).front());
  const Notes<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> numbers(engine,
                                                                                    CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
  const Notes<cudnnBackendBehaviorNote_t, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT> behaviour(engine,
                                                                                    CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
  return {.name = name_of(engine, settings),
          .same_bits = !numbers.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC),
          .made_at_run_time = behaviour.has(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION),
          .tensor_cores = numbers.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE),
          .narrows_inputs = numbers.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS),
          .narrows_sums = numbers.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)};
}

// What only dtrain's own engines compute is described to cuDNN without what it may not do.
Convolution for_cudnn(Convolution work) {
  if (!asks_cudnn(work)) work.moments = nullptr;
  return work;
}

}  // namespace

Plans::Plans(const CudnnTarget& target, const Convolution& work, const EngineRules& rules, const std::string& preferred)
    : target_(target),
      graph_(target, for_cudnn(work)),
      work_(work),
      most_workspace_(rules.most_workspace),
      facts_(own_engines_for(work, rules, preferred)) {
  if (asks_cudnn(work)) {
    ask(CUDNN_HEUR_MODE_A);
    ask(CUDNN_HEUR_MODE_FALLBACK);
  }
  order_ = engines_to_try(facts_, work.dtype, rules_for(work, rules), preferred);
}

std::optional<Plan> Plans::next() {
  while (tried_ < order_.size()) {
    std::optional<Plan> plan = make(order_[tried_++]);
    if (plan && plan->workspace <= most_workspace_) return plan;
  }
  return std::nullopt;
}

void Plans::forget() {
  engines_.clear();
  facts_.clear();
  order_.clear();
}

void Plans::ask(cudnnBackendHeurMode_t mode) {
  Descriptor question(target_.cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  question.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_.descriptor());
  question.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (target_.described) question.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target_.described);
  if (!question.try_finish()) return;
  for (Descriptor& settings : question.get_all(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)) {
    facts_.push_back(facts_of(settings));
    engines_.push_back(std::move(settings));
  }
}

std::optional<Plan> Plans::make(std::size_t engine) const {
  if (facts_[engine].own)
    return Plan{facts_[engine], std::nullopt, product_workspace(work_, tile_of_engine(facts_[engine].name).value())};
  const std::size_t own = facts_.size() - engines_.size();
  Descriptor plan(target_.cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engines_[engine - own]);
  if (target_.handle) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target_.handle);
  if (target_.described) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target_.described);
  if (!plan.try_finish()) return std::nullopt;
  const auto workspace = plan.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  return Plan{facts_[engine], std::move(plan), static_cast<std::uint64_t>(workspace)};
}

}  // namespace dtrain::backend::cuda
