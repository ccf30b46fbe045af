// Updates as recorded work: recorded once, and still each with its own numbers.
#include "update/state_update.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <dtrain/nn/networks.hpp>

#include "common/matrix_problem.hpp"
#include "common/replay_device.hpp"
#include "common/trace.hpp"

namespace dtrain::testing {
namespace {

using backend::cuda::make_replay_backend;
using nn::OptimizerKind;

constexpr std::array kKinds = {
    OptimizerKind::sgd,     OptimizerKind::nag,      OptimizerKind::adam,   OptimizerKind::adamw, OptimizerKind::muon,
    OptimizerKind::rmsprop, OptimizerKind::adagrad,  OptimizerKind::lamb,   OptimizerKind::lars,  OptimizerKind::adamax,
    OptimizerKind::nadam,   OptimizerKind::adadelta, OptimizerKind::signum, OptimizerKind::ftml};

std::unique_ptr<backend::Executable> compiled_for_update(const backend::Backend& backend, const Problem& problem) {
  auto executable = backend.compile(problem.graph, {.max_samples = problem.n});
  executable->write_state(problem.state);
  return executable;
}

// Gradients that differ from step to step, and the number of samples, too.
std::vector<float> sum_of_step(const Problem& problem, int step) {
  std::vector<float> sum(static_cast<std::size_t>(backend::ContributionLayout(problem.graph).size()));
  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] = 0.1f * static_cast<float>((k * 7919 + 13 * step) % 201) - 10;
  sum.back() = static_cast<float>(5 + step);
  return sum;
}

// Every number of the rule moves.
backend::Update update_of_step(OptimizerKind kind, int step) {
  nn::Optimizer rule = muon_of_odd_numbers();
  rule.kind = kind;
  const float more = 1 + 0.1f * static_cast<float>(step);
  for (float* number : {&rule.momentum, &rule.weight_decay, &rule.bias_lr_factor, &rule.head_lr_factor,
                        &rule.rest_momentum, &rule.newton_schulz.a, &rule.newton_schulz.b, &rule.newton_schulz.c}) {
    *number *= more;
  }
  rule.beta1 = 0.7f / more;
  rule.beta2 = 0.9f / more;
  rule.epsilon *= more;
  return {rule, 0.02f * more};
}

// Shards that are added up on the device leave their sum elsewhere than apply() does.
void step_by(backend::Executable& executable, const Problem& problem, const backend::Update& update, int shards) {
  executable.enqueue(problem.batch(), split_samples(problem.n, shards), problem.key, backend::OwnSum{});
  executable.set_sum(backend::OwnSum{});
  executable.apply(update);
}

TEST(CudaStateUpdate, GivesEachStepItsOwnNumbers) {
  const Problem problem = matrix_problem();
  for (const OptimizerKind kind : kKinds) {
    const auto actual = compiled_for_update(*make_replay_backend(), problem);
    const auto expected = compiled_for_update(*backend::make_reference_backend(), problem);
    for (int step = 0; step < 4; ++step) {
      actual->apply(sum_of_step(problem, step), update_of_step(kind, step));
      expected->apply(sum_of_step(problem, step), update_of_step(kind, step));
    }
    const char* const name = nn::optimizer_name(kind);
    EXPECT_LT(relative_difference(actual->state().parameters, expected->state().parameters), 1e-4) << name;
    EXPECT_LT(relative_difference(actual->state().statistics, expected->state().statistics), 1e-4) << name;
    EXPECT_LT(relative_difference(actual->state().optimizer, expected->state().optimizer), 1e-4) << name;
  }
}

// What an update may do beside the rule: cut the norm, cut values, keep an average.
backend::Update with_cuts(backend::Update update) {
  update.rule.clip_norm = 2;
  update.rule.clip_gradient = 0.05f;
  update.rule.average = 0.8f;
  return update;
}

TEST(CudaStateUpdate, CutsGradientsAndAveragesWeightsAsTheReferenceDoes) {
  const Problem problem = matrix_problem();
  for (const OptimizerKind kind : kKinds) {
    const auto actual = compiled_for_update(*make_replay_backend(), problem);
    const auto expected = compiled_for_update(*backend::make_reference_backend(), problem);
    for (int step = 0; step < 3; ++step) {
      backend::Update update = with_cuts(update_of_step(kind, step));
      if (step == 1) update.rule.clip_norm = 1e9f;  // more than there is
      actual->apply(sum_of_step(problem, step), update);
      expected->apply(sum_of_step(problem, step), update);
    }
    const char* const name = nn::optimizer_name(kind);
    EXPECT_LT(relative_difference(actual->state().parameters, expected->state().parameters), 1e-4) << name;
    EXPECT_LT(relative_difference(actual->state().optimizer, expected->state().optimizer), 1e-4) << name;
    EXPECT_LT(relative_difference(actual->state().average, expected->state().average), 1e-4) << name;
  }
}

TEST(CudaStateUpdate, LetsRatesDecayByLayerAsTheReferenceDoes) {
  const Problem problem = matrix_problem();
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::nag, OptimizerKind::adamw}) {
    const auto actual = compiled_for_update(*make_replay_backend(), problem);
    const auto expected = compiled_for_update(*backend::make_reference_backend(), problem);
    for (const float decay : {0.5f, 0.75f, 1.0f}) {
      backend::Update update = update_of_step(kind, 0);
      update.rule.layer_decay = decay;
      actual->apply(sum_of_step(problem, 0), update);
      expected->apply(sum_of_step(problem, 0), update);
      EXPECT_LT(relative_difference(actual->state().parameters, expected->state().parameters), 1e-4)
          << nn::optimizer_name(kind) << ' ' << decay;
    }
  }
}

TEST(CudaStateUpdate, AdaptsLarsWithoutDecayAsTheReferenceDoes) {
  const Problem problem = matrix_problem();
  const auto actual = compiled_for_update(*make_replay_backend(), problem);
  const auto expected = compiled_for_update(*backend::make_reference_backend(), problem);
  backend::Update update = update_of_step(OptimizerKind::lars, 0);
  update.rule.weight_decay = 0;
  actual->apply(sum_of_step(problem, 0), update);
  expected->apply(sum_of_step(problem, 0), update);
  EXPECT_LT(relative_difference(actual->state().parameters, expected->state().parameters), 1e-4);
}

// The norm is computed where the step is recorded: nothing is recorded again for another norm.
TEST(CudaStateUpdate, CutsTheNormInTheSameRecording) {
  const Problem problem = matrix_problem();
  int recordings = 0;
  const auto executable =
      compiled_for_update(*make_replay_backend(std::uint64_t{8} << 30, {.recordings = &recordings}), problem);
  for (int step = 0; step < 4; ++step) {
    executable->apply(sum_of_step(problem, step), with_cuts(update_of_step(OptimizerKind::nag, step)));
  }
  EXPECT_EQ(recordings, 1);
}

TEST(CudaStateUpdate, IsRecordedOnceWhereverTheSumIsAndWhateverTheNumbersAre) {
  const Problem problem = matrix_problem();
  for (const OptimizerKind kind : kKinds) {
    int recordings = 0;
    const auto executable =
        compiled_for_update(*make_replay_backend(std::uint64_t{8} << 30, {.recordings = &recordings}), problem);
    executable->apply(sum_of_step(problem, 0), update_of_step(kind, 0));
    EXPECT_EQ(recordings, 1);
    for (int step = 1; step < 4; ++step) executable->apply(sum_of_step(problem, step), update_of_step(kind, step));
    EXPECT_EQ(recordings, 1) << nn::optimizer_name(kind);
    step_by(*executable, problem, update_of_step(kind, 4), 2);
    const int with_steps = recordings;
    executable->apply(sum_of_step(problem, 5), update_of_step(kind, 5));
    EXPECT_EQ(recordings, with_steps) << nn::optimizer_name(kind);
  }
}

TEST(CudaStateUpdate, AStepOfOneShardRecordsNothingAfterTheFirst) {
  const Problem problem = matrix_problem();
  int recordings = 0;
  const auto executable =
      compiled_for_update(*make_replay_backend(std::uint64_t{8} << 30, {.recordings = &recordings}), problem);
  step_by(*executable, problem, update_of_step(OptimizerKind::muon, 0), 1);
  const int first = recordings;
  for (int step = 1; step < 4; ++step) {
    step_by(*executable, problem, update_of_step(OptimizerKind::muon, step), 1);
  }
  EXPECT_EQ(recordings, first);
}

TEST(CudaStateUpdate, AnotherNumberOfIterationsIsAnotherRecording) {
  const Problem problem = matrix_problem();
  int recordings = 0;
  const auto executable =
      compiled_for_update(*make_replay_backend(std::uint64_t{8} << 30, {.recordings = &recordings}), problem);
  for (const int iterations : {2, 5, 2}) {
    backend::Update update = update_of_step(OptimizerKind::muon, 0);
    update.rule.newton_schulz.steps = iterations;
    executable->apply(sum_of_step(problem, 0), update);
  }
  EXPECT_EQ(recordings, 2);
}

// A rank with one shard and a rule that was announced: what the optimizer reads where backward left it, against what it
// reads in the sum. The same bits, also of the copies, by which the next step computes.
TEST(CudaStateUpdate, ReadsGradientsWhereTheyAreAsItReadsThemInTheSum) {
  const Problem problem =
      make_problem(nn::build_network({.name = "resnet-v1", .num_layers = 8, .image = {3, 16, 16}}), 2);
  for (const backend::DType dtype : {backend::DType::float32, backend::DType::bfloat16}) {
    for (const OptimizerKind kind : kKinds) {
      backend::CompileOptions options{.dtype = dtype, .max_samples = problem.n};
      const auto in_sum = make_replay_backend()->compile(problem.graph, options);
      options.optimizer = kind;
      const auto in_place = make_replay_backend()->compile(problem.graph, options);
      for (const auto& executable : {&in_sum, &in_place}) {
        (*executable)->write_state(problem.state);
        for (int step = 0; step < 2; ++step) step_by(**executable, problem, update_of_step(kind, step), 1);
        step_by(**executable, problem, with_cuts(update_of_step(kind, 2)), 1);
      }
      const char* const name = nn::optimizer_name(kind);
      EXPECT_EQ(in_place->state().parameters, in_sum->state().parameters) << name;
      EXPECT_EQ(in_place->state().optimizer, in_sum->state().optimizer) << name;
      EXPECT_EQ(in_place->state().statistics, in_sum->state().statistics) << name;
    }
  }
}

// Whatever the rule is in the end, and wherever the sum comes from.
TEST(CudaStateUpdate, TakesAnotherRuleThanWasAnnouncedAndAnotherSum) {
  const Problem problem = matrix_problem();
  const auto announced =
      make_replay_backend()->compile(problem.graph, {.max_samples = problem.n, .optimizer = OptimizerKind::nag});
  announced->write_state(problem.state);
  const auto plain = compiled_for_update(*make_replay_backend(), problem);
  for (const auto& executable : {&announced, &plain}) {
    step_by(**executable, problem, update_of_step(OptimizerKind::muon, 0), 1);
    (*executable)->enqueue(problem.batch(), split_samples(problem.n, 1), problem.key, backend::OwnSum{});
    (*executable)->apply(sum_of_step(problem, 1), update_of_step(OptimizerKind::nag, 1));
    step_by(**executable, problem, update_of_step(OptimizerKind::nag, 2), 1);
    step_by(**executable, problem, update_of_step(OptimizerKind::nag, 3), 2);
  }
  EXPECT_EQ(announced->state().parameters, plain->state().parameters);
  EXPECT_EQ(announced->state().optimizer, plain->state().optimizer);
}

// What was recorded does not know where the optimizer's state was.
TEST(CudaStateUpdate, GoesOnFromAnotherStateThatWasWritten) {
  const Problem problem = matrix_problem();
  const backend::Update update = update_of_step(OptimizerKind::muon, 1);
  const auto backend = make_replay_backend();
  const auto one = compiled_for_update(*backend, problem), other = compiled_for_update(*backend, problem);
  for (int step = 0; step < 2; ++step) one->apply(sum_of_step(problem, step), update);
  for (int step = 4; step < 6; ++step) other->apply(sum_of_step(problem, step), update);
  other->write_state(one->read_state());
  for (const auto& executable : {&one, &other}) (*executable)->apply(sum_of_step(problem, 2), update);
  EXPECT_EQ(other->state().parameters, one->state().parameters);
  EXPECT_EQ(other->state().optimizer, one->state().optimizer);
}

// Weights that convolutions read are copies: the update renews them.
TEST(CudaStateUpdate, WhatIsEvaluatedNextSeesTheNewWeights) {
  const Problem problem = matrix_problem();
  const auto executable = compiled_for_update(*make_replay_backend(), problem);
  executable->apply(sum_of_step(problem, 0), update_of_step(OptimizerKind::nag, 0));
  const auto fresh = compiled_for_update(*make_replay_backend(), problem);
  fresh->write_state(executable->read_state());
  EXPECT_EQ(executable->evaluate(problem.batch()).loss_sum, fresh->evaluate(problem.batch()).loss_sum);
}

TEST(CudaStateUpdate, MeasuresTheGradientOfASum) {
  const Problem problem = matrix_problem();
  const auto executable = compiled_for_update(*make_replay_backend(), problem);
  for (int step = 0; step < 2; ++step) {
    const std::vector<float> sum = sum_of_step(problem, step);
    double squares = 0;
    for (std::int64_t k = 0; k < backend::ContributionLayout(problem.graph).gradients; ++k)
      squares += std::pow(sum[static_cast<std::size_t>(k)], 2);
    executable->set_sum(std::span<const float>(sum));
    const double expected = std::sqrt(squares) / sum.back();
    EXPECT_NEAR(executable->gradient_norm().value_or(-1), expected, 1e-5 * expected);
    executable->apply(update_of_step(OptimizerKind::sgd, step));
  }
}

// A rank's only shard leaves gradients beside the copies of the weights.
TEST(CudaStateUpdate, MeasuresWithoutAChangeOfTheStepWhereverGradientsLie) {
  const Problem problem = matrix_problem();
  const auto compile = [&](std::optional<OptimizerKind> rule) {
    auto executable = make_replay_backend()->compile(
        problem.graph, {.dtype = backend::DType::bfloat16, .max_samples = problem.n, .optimizer = rule});
    executable->write_state(problem.state);
    return executable;
  };
  const auto calm = compile(OptimizerKind::sgd), measured = compile(OptimizerKind::sgd), packed = compile(std::nullopt);
  for (int step = 0; step < 3; ++step) {
    const backend::Update update = update_of_step(OptimizerKind::sgd, step);
    step_by(*calm, problem, update, 1);
    std::vector<double> norms;
    for (backend::Executable* const each : {measured.get(), packed.get()}) {
      each->enqueue(problem.batch(), split_samples(problem.n, 1), problem.key, backend::OwnSum{});
      each->set_sum(backend::OwnSum{});
      norms.push_back(each->gradient_norm().value_or(-1));
      each->apply(update);
    }
    EXPECT_GT(norms[0], 0);
    EXPECT_EQ(norms[0], norms[1]);
  }
  EXPECT_EQ(measured->state().parameters, calm->state().parameters);
}

}  // namespace
}  // namespace dtrain::testing
