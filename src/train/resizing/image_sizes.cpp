#include <dtrain/train/image_sizes.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph_json.hpp>

namespace dtrain::train {
namespace {

int halved(int extent, int times) {
  for (; times > 0; --times) extent = (extent + 1) / 2;
  return extent;
}

// Layers of a detector say how large the image is, and how large the first level of its pyramid: the image halved some
// times.
void fit_detector(Json& node, const nn::Shape& from, const nn::Shape& to) {
  if (node.find("image")) node["image"] = Json::array({to.h, to.w});
  const Json* const first = node.find("first");
  if (!first) return;
  const std::int64_t height = (first->is_array() ? first->as_array().front() : *first).as_integer();
  int times = 0;
  while (halved(from.h, times) > height) ++times;
  node["first"] = Json::array({halved(to.h, times), halved(to.w, times)});
}

// The hint says what helps a layer that does not fit.
nn::Graph read_graph(const Json& document, const std::string& name, const nn::Shape& image) try {
  return nn::graph_from_json(document, name);
} catch (const UsageError& problem) {
  throw UsageError(
      fmt::format("images of {}x{}: {}", image.h, image.w, problem.what()),
      "give larger images (setting 'resizing-initial-scale' or setting 'aspect-groups'), or a smaller network");
}

}  // namespace

nn::Graph with_image(const nn::Graph& graph, const nn::Shape& image) {
  if (image == graph.input()) return graph;
  Json document = nn::graph_to_json(graph);
  Json::Array nodes = document.at("nodes").as_array();
  nodes.front()["shape"] = Json::array({image.c, image.h, image.w});  // those of the others follow from it
  for (Json& node : nodes) fit_detector(node, graph.input(), image);
  document["nodes"] = std::move(nodes);
  nn::Graph other = read_graph(document, graph.name, image);
  for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
    if (other.parameters[i].shape == graph.parameters[i].shape) continue;
    throw UsageError(fmt::format("{} of {} depends on the size of the images", graph.parameters[i].name, graph.name),
                     "use a network that pools all pixels before its last layers, such as resnet");
  }
  return other;
}

SizedExecutable::SizedExecutable(nn::Graph graph, const nn::Shape& home, Compile compile)
    : graph_(std::move(graph)),
      compile_(std::move(compile)),
      home_(compiled(home, true)),
      active_(home_.executable.get()) {}

SizedExecutable::Sized SizedExecutable::compiled(const nn::Shape& image, bool training) const {
  return {image, compile_(with_image(graph_, image), training)};
}

void SizedExecutable::move_home(const nn::Shape& image) {
  backend::ModelState state = home_.executable->read_state();
  home_.executable.reset();
  home_ = compiled(image, true);
  active_ = home_.executable.get();
  write_state(std::move(state));
}

backend::Executable& SizedExecutable::on(const nn::Shape& image, bool training) {
  if (image == home_.image) return *(active_ = home_.executable.get());
  auto found = std::ranges::find(others_, image, &Sized::image);
  if (found == others_.end()) found = others_.insert(found, compiled(image, training));
  if (!std::exchange(found->is_current, true)) {
    const backend::ModelState& now = state();
    found->executable->write_state({.parameters = now.parameters,
                                    .statistics = now.statistics,
                                    .optimizer = {},
                                    .updates = now.updates,
                                    .loss_scale = now.loss_scale});
  }
  return *(active_ = found->executable.get());
}

void SizedExecutable::outdate() {
  for (Sized& other : others_) other.is_current = false;
}

void SizedExecutable::apply(const backend::Update& update) {
  home_.executable->apply(update);
  outdate();
}

void SizedExecutable::write_state(backend::ModelState state) {
  home_.executable->write_state(std::move(state));
  outdate();
}

void SizedExecutable::exchange_average() {
  home_.executable->exchange_average();
  outdate();
}

std::uint64_t SizedExecutable::planned_bytes() const {
  std::uint64_t bytes = home_.executable->planned_bytes();
  for (const Sized& other : others_) bytes += other.executable->planned_bytes();
  return bytes;
}

SizedExecutable::Compile compile_with(const backend::Backend& backend, const backend::CompileOptions& options) {
  return [&backend, options](const nn::Graph& of_size, bool training) {
    backend::CompileOptions each = options;
    if (!training) each.training = false, each.optimizer = {}, each.average = false;
    return backend.compile(of_size, each);
  };
}

}  // namespace dtrain::train
