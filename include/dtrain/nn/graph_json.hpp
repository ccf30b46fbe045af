// A graph as JSON (schema "dtrain.graph/1"), as `inspect` prints it and `--network FILE.json` reads it, and MXNet's
// symbol.json made of the layers of graph.hpp.
#pragma once

#include <optional>
#include <string_view>

#include <dtrain/base/json.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

Json graph_to_json(const Graph& graph);

// Reads either format. `image` and `classes`: what the job's options say; a graph that disagrees is a UsageError; a
// symbol holds no image shape and needs `image`. Attributes that a person leaves out have the defaults of graph.hpp, a
// node without inputs follows the one before it. Tensors of a symbol keep the names of its variables. Throws Errors
// that name `source` and the node: DataError with its unknown layer or attribute (and the nearest known one),
// UsageError when a layer does not fit its input. Never anything else, whatever the document holds.
Graph graph_from_json(const Json& document, std::string_view source, std::optional<Shape> image = {},
                      std::optional<int> classes = {});

// MXNet 1.x symbol.json with variables, attributes and heads as the real mxnet loads them. It holds all of the graph
// but its name, the size of its images and how weights begin; label smoothing comes back within a rounding.
Json graph_to_mxnet_symbol(const Graph& graph);

}  // namespace dtrain::nn
