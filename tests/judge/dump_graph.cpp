// dtrain_dump_graph NETWORK NUM_LAYERS C,H,W CLASSES FOLDER [WIDTH]: writes the network as FOLDER/symbol.json
// (MXNet's), as FOLDER/graph.json (ours), and its tensors as FOLDER/tensors.json. With a symbol.json in place of the
// network's name it reads that (NUM_LAYERS 0). For the judges only.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>

using namespace dtrain;

namespace {

int number(std::string_view text) {
  const auto value = parse_integer(text);
  if (!value) throw UsageError(fmt::format("{} is not a number", text));
  return static_cast<int>(*value);
}

nn::Graph read_or_build(const nn::NetworkOptions& options) {
  if (!options.name.ends_with(".json")) return nn::build_network(options);
  return nn::graph_from_json(Json::parse(read_file(options.name), options.name), options.name, options.image,
                             options.classes);
}

Json shapes_of(const std::vector<nn::TensorView>& views) {
  Json shapes = Json::object();
  for (const nn::TensorView& view : views) shapes[view.name] = Json::Array(view.shape.begin(), view.shape.end());
  return shapes;
}

void dump(const nn::Graph& graph, const Path& folder) {
  write_file_atomic(folder / "symbol.json", nn::graph_to_mxnet_symbol(graph).dump(2));
  write_file_atomic(folder / "graph.json", nn::graph_to_json(graph).dump(2));
  Json tensors;
  tensors["parameters"] = shapes_of(graph.parameters);
  tensors["statistics"] = shapes_of(graph.statistics);
  write_file_atomic(folder / "tensors.json", tensors.dump(2));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 6 && argc != 7) throw UsageError("dtrain_dump_graph NETWORK NUM_LAYERS C,H,W CLASSES FOLDER [WIDTH]");
    const auto extents = split(argv[3], ',');
    if (extents.size() != 3) throw UsageError("the image is C,H,W");
    const nn::Shape image{number(extents[0]), number(extents[1]), number(extents[2])};
    dump(read_or_build({.name = argv[1],
                        .num_layers = number(argv[2]),
                        .image = image,
                        .classes = number(argv[4]),
                        .width = argc == 7 ? number(argv[6]) : 0}),
         argv[5]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dtrain_dump_graph: %s\n", error.what());
    return 1;
  }
}
