// dtrain_dump_step BACKEND FOLDER [layers|host|shards|muon|recipes|networks|CASE...]: lets a backend compute the steps
// of every case (or of those named) and writes one folder a case: what went in and what came out, as .npy files and
// case.json. The judges beside this file read them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>

#include "common/matrix_problem.hpp"
#include "common/problem.hpp"
#include "common/replay_device.hpp"
#include "common/trace.hpp"
#include "npy.hpp"

namespace dtrain::testing {
namespace {

struct Case {
  Problem problem;
  TraceOptions options;
};

// An epsilon that matters, so that its place in the formula shows and rounding noise is not blown up to a whole step.
backend::Update update_of(nn::OptimizerKind kind, float rate) {
  constexpr float momentum = 0.9f, weight_decay = 0.01f, beta1 = 0.8f, beta2 = 0.95f, epsilon = 1e-2f;
  constexpr float bias_lr_factor = 3, head_lr_factor = 0.5f;
  return {{kind, momentum, weight_decay, beta1, beta2, epsilon, bias_lr_factor, head_lr_factor}, rate};
}

// The layers take the optimizers in turn.
std::vector<Case> cases_of(std::vector<Problem> problems) {
  constexpr std::array kinds = {nn::OptimizerKind::sgd, nn::OptimizerKind::nag, nn::OptimizerKind::adam,
                                nn::OptimizerKind::adamw};
  std::vector<Case> cases;
  for (Problem& problem : problems) {
    const backend::Update update = update_of(kinds[cases.size() % kinds.size()], 0.05f);
    cases.push_back({std::move(problem), {.update = update}});
  }
  return cases;
}

// The blocks again, with batch norm over each of several shards.
std::vector<Case> sharded_cases() {
  std::vector<Case> cases;
  for (Problem& problem : layer_problems()) {
    if (problem.name != "residual_v1" && problem.name != "dropout_after_dense") continue;
    problem.name += "_4_shards";
    cases.push_back(
        {make_problem(problem.graph, 21), {.shards = 4, .update = update_of(nn::OptimizerKind::sgd, 0.05f)}});
    cases.back().problem.name = problem.name;
  }
  return cases;
}

// Muon on weights of every shape, with default and other numbers, and in networks.
std::vector<Case> muon_cases() {
  const backend::Update usual{{.kind = nn::OptimizerKind::muon}, 0.05f}, odd{muon_of_odd_numbers(), 0.05f};
  std::vector<Case> cases = {{matrix_problem(), {.update = usual}}, {matrix_problem(), {.update = odd}}};
  cases.back().problem.name += "_odd_numbers";
  for (const nn::NetworkOptions& network : {nn::NetworkOptions{.name = "resnet", .num_layers = 8, .width = 8},
                                            {.name = "resnet-v1", .num_layers = 8, .width = 8},
                                            {.name = "lenet", .image = {1, 28, 28}},
                                            {.name = "speednet", .image = {3, 32, 32}, .width = 4}}) {
    cases.push_back({make_problem(nn::build_network(network), 6), {.update = odd, .updates = 1}});
  }
  for (Case& of : cases) of.problem.name = "muon_" + of.problem.name;
  return cases;
}

// Two labels a sample, gradients that are cut, and the rules that the layers do not take.
std::vector<Case> recipe_cases() {
  using nn::OptimizerKind;
  std::vector<Case> cases;
  for (const OptimizerKind kind :
       {OptimizerKind::rmsprop, OptimizerKind::adagrad, OptimizerKind::lamb, OptimizerKind::lars, OptimizerKind::nag,
        OptimizerKind::adamw, OptimizerKind::muon, OptimizerKind::adamax, OptimizerKind::nadam, OptimizerKind::adadelta,
        OptimizerKind::signum, OptimizerKind::ftml}) {
    const bool cuts = cases.size() % 2 == 0;
    Problem problem = make_problem(
        nn::build_network({.name = "resnet-v1", .num_layers = 8, .width = 8, .label_smoothing = cuts ? 0.1f : 0.0f}),
        9);
    problem = with_two_labels(std::move(problem));
    problem.name = fmt::format("recipe_{}", nn::optimizer_name(kind));
    backend::Update update = update_of(kind, 0.05f);
    update.rule.clip_norm = 0.5f;
    update.rule.clip_gradient = cuts ? 0.02f : 0;
    cases.push_back({std::move(problem), {.shards = 2, .update = update, .updates = 1}});
  }
  return cases;
}

// One update only: in a deep network the next step multiplies what rounding left behind.
std::vector<Case> network_cases() {
  const std::vector<std::pair<nn::NetworkOptions, int>> networks = {
      {{.name = "resnet", .num_layers = 8, .width = 8}, 6},
      {{.name = "resnet", .num_layers = 20, .image = {3, 16, 16}, .width = 4}, 6},
      {{.name = "resnet", .num_layers = 18, .image = {3, 48, 48}, .width = 4}, 6},
      {{.name = "resnet", .num_layers = 50, .image = {3, 40, 40}, .width = 8}, 8},
      {{.name = "resnet-v1", .num_layers = 8, .width = 8}, 6},
      {{.name = "resnet-v1", .num_layers = 20, .image = {3, 16, 16}, .width = 4, .label_smoothing = 0.1f}, 6},
      {{.name = "resnet-v1", .num_layers = 50, .image = {3, 40, 40}, .width = 8}, 8},
      {{.name = "mobilenet", .image = {3, 64, 64}}, 8},
      {{.name = "lenet", .image = {1, 28, 28}}, 6},
      {{.name = "mlp", .image = {1, 28, 28}}, 6},
      {{.name = "speednet", .image = {3, 32, 32}, .width = 4, .label_smoothing = 0.2f}, 6},
      {{.name = "resnext50_32x4d", .image = {3, 40, 40}, .width = 32}, 8},
      {{.name = "seresnet50", .image = {3, 40, 40}, .width = 16}, 8},
      {{.name = "mobilenet_v2", .image = {3, 64, 64}}, 8},
      {{.name = "mobilenet_v3_small", .image = {3, 64, 64}}, 8},
      {{.name = "squeezenet1_1", .image = {3, 64, 64}}, 6},
      {{.name = "googlenet", .image = {3, 64, 64}}, 8},
      {{.name = "efficientnet_b0", .image = {3, 64, 64}}, 8},
      {{.name = "regnet_y_400mf", .image = {3, 64, 64}}, 8},
      {{.name = "convnext_tiny", .image = {3, 32, 32}, .drop_path = 0.4f}, 4},
      {{.name = "vit_tiny_patch16_224", .image = {3, 48, 48}, .drop_path = 0.4f}, 4},
  };
  std::vector<Case> cases;
  for (const auto& [options, n] : networks) {
    Problem problem = make_problem(nn::build_network(options), n);
    problem.name = fmt::format("network_{}_{}", options.name, options.num_layers);
    cases.push_back({std::move(problem), {.update = update_of(nn::OptimizerKind::sgd, 0.05f), .updates = 1}});
  }
  return cases;
}

Json views_json(const std::vector<nn::TensorView>& views) {
  Json list = Json::array();
  for (const nn::TensorView& view : views) {
    Json shape = Json::array();
    for (const std::int64_t extent : view.shape) shape.push_back(extent);
    list.push_back(Json::object({{"name", view.name},
                                 {"shape", shape},
                                 {"offset", view.offset},
                                 {"size", view.size},
                                 {"decays", view.decays()}}));
  }
  return list;
}

Json nodes_json(const nn::Graph& graph) {
  Json list = Json::array();
  for (const nn::Node& node : graph.nodes) {
    Json parameters = Json::array(), statistics = Json::array();
    for (const int index : node.parameters) parameters.push_back(index);
    for (const int index : node.statistics) statistics.push_back(index);
    list.push_back(Json::object({{"parameters", parameters}, {"statistics", statistics}}));
  }
  return list;
}

Json case_json(const Case& of, const Trace& trace) {
  const nn::Graph& graph = of.problem.graph;
  Json shards = Json::array();
  for (const backend::ShardRange& shard : split_samples(of.problem.n, of.options.shards)) {
    shards.push_back(Json::array({shard.first, shard.count}));
  }
  return Json::object({{"graph", nn::graph_to_json(graph)},
                       {"nodes", nodes_json(graph)},
                       {"parameters", views_json(graph.parameters)},
                       {"statistics", views_json(graph.statistics)},
                       {"seed", of.problem.key.seed},
                       {"epoch", of.problem.key.epoch},
                       {"shards", shards},
                       {"top_k", of.options.top_k},
                       {"optimizer", nn::to_json(of.options.update.rule)},
                       {"learning_rate", double{of.options.update.learning_rate}},
                       {"updates", of.options.updates},
                       {"evaluated", Json::object({{"loss_sum", trace.evaluated.loss_sum},
                                                   {"correct", trace.evaluated.correct},
                                                   {"top_k_correct", trace.evaluated.top_k_correct},
                                                   {"count", trace.evaluated.count}})}});
}

void dump(const Case& of, const backend::Backend& backend, const Path& folder) {
  const Problem& problem = of.problem;
  const Trace trace = trace_steps(backend, problem, of.options);
  make_folder(folder);
  const auto flat = [&](const char* name, std::span<const float> values) {
    write_npy(folder / name, {static_cast<std::int64_t>(values.size())}, values);
  };
  const nn::Shape& image = problem.graph.input();
  write_npy(folder / "images.npy", {problem.n, image.c, image.h, image.w}, std::span<const float>(problem.images));
  write_npy(folder / "labels.npy", {problem.n}, std::span<const std::int32_t>(problem.labels));
  write_npy(folder / "sample_ids.npy", {problem.n}, std::span<const std::uint32_t>(problem.sample_ids));
  if (!problem.shares.empty()) {
    write_npy(folder / "partners.npy", {problem.n}, std::span<const std::int32_t>(problem.partners));
    flat("shares.npy", problem.shares);
  }
  flat("parameters.npy", problem.state.parameters);
  flat("statistics.npy", problem.state.statistics);
  flat("contribution.npy", trace.contribution);
  flat("logits.npy", trace.logits);
  flat("after_parameters.npy", trace.after.parameters);
  flat("after_statistics.npy", trace.after.statistics);
  write_file_atomic(folder / "case.json", case_json(of, trace).dump(1) + "\n");
}

std::unique_ptr<backend::Backend> backend_named(std::string_view name) {
  if (name == "reference") return backend::make_reference_backend();
  if (name == "cpu") return backend::make_cpu_backend();
  if (name == "replay") return backend::cuda::make_large_replay_backend();
  throw UsageError(fmt::format("no backend is called {}", name));
}

void run(std::span<char*> arguments) {
  if (arguments.size() < 2) throw UsageError("usage: dtrain_dump_step BACKEND FOLDER [GROUP|CASE...]");
  const auto backend = backend_named(arguments[0]);
  const auto chosen = arguments.subspan(2);
  const auto is_chosen = [&](std::string_view name) {
    return std::ranges::any_of(chosen, [&](const char* choice) { return name == choice; });
  };
  const std::pair<const char*, std::vector<Case>> groups[] = {{"layers", cases_of(layer_problems())},
                                                              {"host", cases_of(host_problems())},
                                                              {"shards", sharded_cases()},
                                                              {"muon", muon_cases()},
                                                              {"recipes", recipe_cases()},
                                                              {"networks", network_cases()}};
  for (const auto& [group, cases] : groups) {
    for (const Case& of : cases) {
      const std::string& name = of.problem.name;
      const bool is_known = arguments[0] != std::string_view("replay") || group != std::string_view("host");
      if (is_known && (chosen.empty() || is_chosen(group) || is_chosen(name)))
        dump(of, *backend, Path(arguments[1]) / name);
    }
  }
}

}  // namespace
}  // namespace dtrain::testing

int main(int argc, char** argv) {
  try {
    dtrain::testing::run(std::span(argv + 1, static_cast<std::size_t>(argc - 1)));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "dtrain_dump_step: {}\n", error.what());
    return 1;
  }
}
