// The two kinds of network file.
#pragma once

#include <string_view>

#include <dtrain/base/json.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

inline constexpr std::string_view kGraphSchema = "dtrain.graph/1";
inline constexpr const char* kLearns = "learns";  // of a node; stands there only where it is false

// Each throws an Error that does not name the file: graph_from_json adds it.
Graph graph_from_schema(const Json& document);
Graph graph_from_mxnet_symbol(const Json& document, const Shape& image);

}  // namespace dtrain::nn
