// A graph as JSON (schema "dtrain.graph/1"), as `inspect` prints it and `--network FILE.json` reads it, and MXNet's
// symbol.json made of the layers of graph.hpp.
#pragma once

#include <optional>
#include <string_view>

#include <dtrain/base/json.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

Json graph_to_json(const Graph& graph);

// Reads either format. `image` and `classes`: what the job's options say; a dtrain graph that disagrees is a
// UsageError, a symbol (which holds no input shape) is inferred from them. Throws DataError naming the node and its
// unknown layer or attribute.
Graph graph_from_json(const Json& document, std::string_view source, std::optional<Shape> image = {},
                      std::optional<int> classes = {});

// MXNet 1.x symbol.json with variables, attributes and heads as the real mxnet loads them.
Json graph_to_mxnet_symbol(const Graph& graph);

}  // namespace dtrain::nn
