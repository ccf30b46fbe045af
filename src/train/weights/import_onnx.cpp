#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/train/export.hpp>
#include <dtrain/train/weights.hpp>

#include "weights_file.hpp"

namespace dtrain::train {

Checkpoint import_onnx(const Path& file) {
  const Json network = WeightsFile(file).graph();
  if (network.is_null()) {
    throw DataError(file.string() + ": is an ONNX model of another program, whose network dtrain does not read",
                    "`dtrain import FILE --network NAME --out PREFIX` takes its weights, where they have usual names");
  }
  const nn::Graph graph = nn::graph_from_json(network, file.string());
  return load_weights({.file = file, .whole = true}, graph).checkpoint;
}

}  // namespace dtrain::train
