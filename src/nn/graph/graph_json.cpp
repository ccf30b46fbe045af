#include <dtrain/nn/graph_json.hpp>

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

#include "graph_schema.hpp"

namespace dtrain::nn {
namespace {

std::string text(const Shape& shape) { return fmt::format("{},{},{}", shape.c, shape.h, shape.w); }

bool is_schema(const Json& document) {
  const Json* schema = document.find("schema");
  return schema && schema->is_string() && schema->as_string() == kGraphSchema;
}

bool is_mxnet_symbol(const Json& document) { return document.find("nodes") && document.find("heads"); }

Graph read_either(const Json& document, const std::optional<Shape>& image) {
  if (document.is_object() && is_schema(document)) return graph_from_schema(document);
  if (!document.is_object() || !is_mxnet_symbol(document)) {
    throw DataError(fmt::format("is neither a network (\"schema\": \"{}\") nor an MXNet symbol", kGraphSchema));
  }
  if (!image)
    throw UsageError("an MXNet symbol does not say the size of its images", "give it with setting 'image-shape'");
  return graph_from_mxnet_symbol(document, *image);
}

void require_agreement(const Graph& graph, const std::optional<Shape>& image, const std::optional<int>& classes) {
  if (image && !(*image == graph.input())) {
    throw UsageError(fmt::format("is a network for images of {}, not {}", text(graph.input()), text(*image)),
                     fmt::format("say setting 'image-shape' {}", text(graph.input())));
  }
  if (classes && *classes != graph.classes()) {
    throw UsageError(fmt::format("is a network for {} classes, not {}", graph.classes(), *classes),
                     fmt::format("say setting 'num-classes' {}, or change its last dense layer", graph.classes()));
  }
}

}  // namespace

Graph graph_from_json(const Json& document, std::string_view source, std::optional<Shape> image,
                      std::optional<int> classes) {
  const auto with_source = [&](const Error& error) { return fmt::format("{}: {}", source, error.what()); };
  try {
    Graph graph = read_either(document, image);
    require_agreement(graph, image, classes);
    return graph;
  } catch (const UsageError& error) {
    throw UsageError(with_source(error), error.hint());
  } catch (const Error& error) {
    throw DataError(with_source(error), error.hint());
  }
}

}  // namespace dtrain::nn
