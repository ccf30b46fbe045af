#include <dtrain/nn/initialize.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/checkpoint.hpp>
#include <dtrain/train/export.hpp>
#include <dtrain/train/weights.hpp>

#include "fuzz.hpp"

namespace dtrain::fuzz {
namespace {

constexpr nn::Shape kImage{1, 4, 4};

train::Checkpoint small_checkpoint() {
  train::Checkpoint checkpoint{nn::build_network({.name = "mlp", .image = kImage}), {}, {1, 0, 100}, {}};
  checkpoint.state.parameters.resize(checkpoint.graph.parameter_count);
  checkpoint.state.statistics.resize(checkpoint.graph.statistic_count);
  nn::initialize_parameters(checkpoint.graph, 1, checkpoint.state.parameters);
  nn::initialize_statistics(checkpoint.graph, checkpoint.state.statistics);
  checkpoint.state.optimizer.resize(checkpoint.state.parameters.size());
  return checkpoint;
}

// Reads the good checkpoint with one of its files replaced.
Target with_file(std::string name, const Path& file, std::function<void()> read) {
  const std::string good = read_file(file);
  return {std::move(name), {good}, [=](const std::string& input) {
            write_quickly(file, input);
            try {
              read();
            } catch (...) {
              write_quickly(file, good);
              throw;
            }
            write_quickly(file, good);
          }};
}

// A file of pretrained weights.
Target weights_target(std::string name, const Path& file, const std::string& good) {
  return {std::move(name), {good}, [file](const std::string& input) {
            write_quickly(file, input);
            train::load_weights({.file = file}, small_checkpoint().graph);
          }};
}

}  // namespace

std::vector<Target> checkpoint_targets(const Path& folder) {
  const train::Checkpoint checkpoint = small_checkpoint();
  train::save_checkpoint({folder / "own", 1, 0}, checkpoint);
  train::export_mxnet(checkpoint, folder / "mxnet", 1);
  const auto own = [=] { train::load_checkpoint(folder / "own", 1); };
  const auto mxnet = [=] { train::import_mxnet(folder / "mxnet", 1, kImage, 10); };
  const Path weights = folder / "weights.pt";
  return {
      weights_target("weights", weights, read_file(folder / "own-0001.safetensors")),
      with_file("manifest", folder / "own-0001.json", own),
      with_file("safetensors", folder / "own-0001.safetensors", own),
      with_file("mxnet-params", folder / "mxnet-0001.params", mxnet),
  };
}

}  // namespace dtrain::fuzz
