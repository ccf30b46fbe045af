// Writes what the judges of dtrain's files read: dtrain_dump_checkpoint FOLDER CASE | --events FOLDER | --list
// FOLDER/CASE-0001.safetensors, .json and .params, CASE-symbol.json, CASE.onnx and CASE.safetensors hold one model of
// random numbers; CASE.case.json says the shapes of CASE.images.f32 and of CASE.logits.f32, what the model makes of the
// images.
#include <fmt/format.h>

#include <cstdio>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/export.hpp>
#include <dtrain/train/tensorboard.hpp>

#include "common/problem.hpp"

namespace dtrain {
namespace {

using testing::Problem;

constexpr int kSamples = 2;
constexpr std::int64_t kMostWithOptimizer = 1'000'000;  // parameters; larger cases leave the optimizer out

struct NetworkCase {
  const char* name;
  nn::NetworkOptions options;
};

// One of each network and of each kind of block.
const std::vector<NetworkCase>& network_cases() {
  static const std::vector<NetworkCase> cases = {
      {"resnet-8", {.name = "resnet", .num_layers = 8, .image = {3, 28, 28}}},
      {"resnet-20", {.name = "resnet", .num_layers = 20, .image = {3, 32, 32}}},
      {"resnet-164", {.name = "resnet", .num_layers = 164, .image = {3, 12, 12}}},
      {"resnet-18", {.name = "resnet", .num_layers = 18, .image = {3, 48, 40}, .classes = 100}},
      {"resnet-v1-20", {.name = "resnet-v1", .num_layers = 20, .image = {3, 28, 28}}},
      {"resnet-v1-50", {.name = "resnet-v1", .num_layers = 50, .image = {3, 48, 48}, .classes = 100}},
      {"lenet", {.name = "lenet", .image = {1, 28, 28}}},
      {"mlp", {.name = "mlp", .image = {1, 28, 28}}},
      {"vgg-11-bn", {.name = "vgg", .num_layers = 11, .image = {3, 32, 32}, .batch_norm = true}},
      {"mobilenet", {.name = "mobilenet", .image = {3, 40, 40}}},
      {"speednet", {.name = "speednet", .image = {3, 32, 32}, .width = 16}},
      {"resnext50_32x4d", {.name = "resnext50_32x4d", .image = {3, 40, 40}, .width = 32}},
      {"seresnet50", {.name = "seresnet50", .image = {3, 40, 40}, .width = 16}},
      {"mobilenet_v2", {.name = "mobilenet_v2", .image = {3, 40, 40}}},
      {"mobilenet_v3_small", {.name = "mobilenet_v3_small", .image = {3, 40, 40}}},
      {"squeezenet1_0", {.name = "squeezenet1_0", .image = {3, 60, 60}}},
      {"densenet121", {.name = "densenet121", .image = {3, 40, 40}}},
      {"googlenet", {.name = "googlenet", .image = {3, 40, 40}}},
      {"inception_v3", {.name = "inception_v3", .image = {3, 75, 75}}},
      {"efficientnet_b0", {.name = "efficientnet_b0", .image = {3, 40, 40}}},
      {"regnet_y_400mf", {.name = "regnet_y_400mf", .image = {3, 40, 40}}},
      {"convnext_tiny", {.name = "convnext_tiny", .image = {3, 40, 40}}},
      {"vit_tiny_patch16_224", {.name = "vit_tiny_patch16_224", .image = {3, 48, 32}, .drop_path = 0.1f}},
  };
  return cases;
}

// Dense between layers of pixels: ONNX must change its shape there and back. MXNet's symbols cannot say this.
constexpr std::string_view kFlatAndBack = "flat_and_back";

nn::Graph flat_and_back() {
  nn::GraphBuilder builder{std::string(kFlatAndBack), {2, 3, 3}};
  const int dense = builder.add("dense", nn::Dense{4}, {0});
  const int pixel = builder.add("pixel", nn::Convolution{.out = 4}, {dense});
  const int sum = builder.add("sum", nn::Add{}, {dense, pixel});
  const int pool = builder.add("pool", nn::Pooling{.global = true}, {sum});
  return builder.finish(builder.add("out", nn::Convolution{.out = 3}, {pool}));
}

std::vector<Problem> layer_cases() {
  std::vector<Problem> cases = testing::layer_problems();
  for (Problem& problem : testing::host_problems()) cases.push_back(std::move(problem));
  return cases;
}

Problem problem_of(std::string_view name) {
  if (name == kFlatAndBack) return testing::make_problem(flat_and_back(), kSamples);
  for (const NetworkCase& each : network_cases()) {
    if (each.name == name) return testing::make_problem(nn::build_network(each.options), kSamples);
  }
  for (Problem& problem : layer_cases()) {
    if (problem.name == name) return std::move(problem);
  }
  throw UsageError(fmt::format("there is no case '{}'", name), "--list shows them");
}

train::Checkpoint checkpoint_of(const Problem& problem) {
  train::Checkpoint checkpoint{problem.graph, problem.state, {1, 0, 50000}, {}};
  checkpoint.state.updates = 391;
  checkpoint.job.seed = 1;
  checkpoint.job.samples = 50000;
  checkpoint.job.global_batch = 128;
  checkpoint.job.preprocessing = Json::object({{"mean", Json::array({123.68, 116.779, 103.939})}});
  if (problem.graph.parameter_count <= kMostWithOptimizer) checkpoint.state.optimizer = problem.state.parameters;
  for (float& value : checkpoint.state.optimizer) value *= -0.125f;
  return checkpoint;
}

std::vector<float> logits_of(const Problem& problem) {
  const auto executable = backend::make_reference_backend()->compile(
      problem.graph, {.max_samples = problem.n, .top_k = 1, .training = false});
  executable->write_state(problem.state);
  std::vector<float> logits(static_cast<std::size_t>(problem.n * problem.graph.classes()));
  executable->evaluate(problem.batch(), logits);
  return logits;
}

// The gammas that count as 1 whatever number is stored.
Json fixed_gammas(const nn::Graph& graph) {
  Json names = Json::array();
  for (const nn::Node& node : graph.nodes) {
    const auto* batch_norm = std::get_if<nn::BatchNorm>(&node.layer);
    if (batch_norm && batch_norm->fix_gamma)
      names.push_back(graph.parameters[static_cast<std::size_t>(node.parameters[0])].name);
  }
  return names;
}

// Whether MXNet has operators for all layers; then writes its files.
bool export_to_mxnet(const train::Checkpoint& checkpoint, const Path& prefix) {
  try {
    train::export_mxnet(checkpoint, prefix, 1);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

void dump_case(const Path& folder, const std::string& name) {
  const Problem problem = problem_of(name);
  const train::Checkpoint checkpoint = checkpoint_of(problem);
  const Path prefix = folder / name;
  train::save_checkpoint({prefix, 1}, checkpoint);
  train::export_safetensors(checkpoint, prefix.string() + ".safetensors");
  train::export_onnx(checkpoint, prefix.string() + ".onnx");
  const bool mxnet = export_to_mxnet(checkpoint, prefix);

  const nn::Shape& image = problem.graph.input();
  const Json description = Json::object({{"images", Json::array({problem.n, image.c, image.h, image.w})},
                                         {"logits", Json::array({problem.n, problem.graph.classes()})},
                                         {"mxnet", mxnet},
                                         {"fixed_gammas", fixed_gammas(problem.graph)}});
  const std::vector<float> logits = logits_of(problem);
  write_file_atomic(prefix.string() + ".case.json", description.dump());
  write_file_atomic(prefix.string() + ".images.f32", text_of(std::as_bytes(std::span(problem.images))));
  write_file_atomic(prefix.string() + ".logits.f32", text_of(std::as_bytes(std::span(logits))));
}

// judge_tensorboard.py knows the same formulas.
void dump_events(const Path& folder) {
  train::EventWriter writer(folder);
  for (std::uint64_t step = 0; step < 100; ++step) {
    writer.scalar("train/loss", 1.0 / (1.0 + static_cast<double>(step)), 391 * step);
    writer.scalar("train/accuracy", 0.01 * static_cast<double>(step), 391 * step);
  }
  data::Image image{3, 5, 7, {}};
  for (int i = 0; i < image.c * image.h * image.w; ++i) image.pixels.push_back(static_cast<std::uint8_t>(2 * i + 1));
  writer.image("first batch", image, 1);
  writer.flush();
}

void list_cases() {
  for (const NetworkCase& each : network_cases()) fmt::print("{}\n", each.name);
  for (const Problem& problem : layer_cases()) fmt::print("{}\n", problem.name);
}

int run(std::span<const std::string> arguments) {
  if (arguments.size() == 1 && arguments[0] == "--list") {
    list_cases();
  } else if (arguments.size() == 2 && arguments[0] == "--events") {
    dump_events(arguments[1]);
  } else if (arguments.size() == 2) {
    dump_case(arguments[0], arguments[1]);
  } else {
    fmt::print(stderr, "usage: dtrain_dump_checkpoint FOLDER CASE | --events FOLDER | --list\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace dtrain

int main(int count, char** values) {
  try {
    const std::vector<std::string> arguments(values + 1, values + count);
    return dtrain::run(arguments);
  } catch (const dtrain::Error& error) {
    fmt::print(stderr, "dtrain_dump_checkpoint: {} ({})\n", error.what(), error.hint());
    return 1;
  }
}
