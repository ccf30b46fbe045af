#include "aspect_groups.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/image_sizes.hpp>

#include "config/exchange/conflicts.hpp"
#include "config/option_values.hpp"

namespace dtrain::config {
namespace {

constexpr const char* kGroups = "--aspect-groups";
constexpr std::size_t kMostGroups = 16;
constexpr Range kGroupSide = between(64, 8192);  // detectors take no smaller images

std::string size_text(const data::ScaledSize& size) { return fmt::format("{}x{}", size.height, size.width); }

int side_from(const std::string& text) {
  const auto side = whole_number<int>(text, kGroupSide);
  if (side % nn::kDetectorStride == 0) return side;
  const int nearest = (side + nn::kDetectorStride / 2) / nn::kDetectorStride * nn::kDetectorStride;
  throw UsageError(
      fmt::format("{} is no multiple of {}, the stride of detectors: {} is", side, nn::kDetectorStride, nearest));
}

data::ScaledSize group_from(const std::string& text) {
  const std::vector<std::string> sides = split(text, 'x');
  if (sides.size() != 2) throw UsageError(fmt::format("must be HEIGHTxWIDTH such as 320x448, not '{}'", text));
  return {side_from(sides[0]), side_from(sides[1])};
}

std::vector<std::string> size_texts(const std::vector<data::ScaledSize>& groups) {
  std::vector<std::string> texts;
  for (const data::ScaledSize& group : groups) texts.push_back(size_text(group));
  return texts;
}

// The first that is larger than the input; "": all fit.
std::string too_large(const std::vector<data::ScaledSize>& groups, const nn::Shape& image) {
  const auto found = std::ranges::find_if(
      groups, [&](const data::ScaledSize& group) { return group.height > image.h || group.width > image.w; });
  return found == groups.end() ? "" : size_text(*found);
}

}  // namespace

std::vector<data::ScaledSize> aspect_groups_from(const std::string& text) {
  std::vector<data::ScaledSize> groups;
  if (trim(text).empty()) return groups;
  for (const std::string& word : split(text, ',')) {
    const data::ScaledSize group = group_from(std::string(trim(word)));
    if (std::ranges::find(groups, group) != groups.end())
      throw UsageError(fmt::format("{} is there twice", size_text(group)));
    groups.push_back(group);
  }
  if (groups.size() > kMostGroups)
    throw UsageError(
        fmt::format("{} groups are more than {}: each is a network of its own in memory", groups.size(), kMostGroups));
  return groups;
}

std::string aspect_groups_text(const std::vector<data::ScaledSize>& groups) {
  return fmt::format("{}", fmt::join(size_texts(groups), ","));
}

void bind_aspect_groups(OptionSet& set, DataOptions& options) {
  set.group("Data");
  set.add_custom(
         kGroups, "HxW,...",
         "for detectors on the CPU: sizes to which pictures are padded, in place of --image-shape, such as "
         "800x1088,1088x800 for landscape and portrait. A picture belongs to the size in which it becomes largest, and "
         "each step has pictures of one size. By default all are padded to --image-shape",
         [&options](const std::string& text) { options.aspect_groups = aspect_groups_from(text); },
         [&options] { return aspect_groups_text(options.aspect_groups); })
      .comma_list = true;
}

void settle_aspect_groups(const OptionSet& set, DataOptions& options) {
  if (options.aspect_groups.empty() || set.chosen("image-shape")) return;
  options.image.h = options.image.w = 0;
  for (const data::ScaledSize& group : options.aspect_groups) {
    options.image.h = std::max(options.image.h, group.height);
    options.image.w = std::max(options.image.w, group.width);
  }
}

void check_aspect_groups(const TrainOptions& options, const backend::Backend& backend) {
  const DataOptions& data = options.data;
  if (data.aspect_groups.empty()) return;
  const std::string larger = too_large(data.aspect_groups, data.image);
  refuse(
      kGroups,
      {{!data.detection.has_value(), "a classifier: its images all have the size of --image-shape",
        "leave it out, or train a detector (--network mask-rcnn)"},
       {!larger.empty(),
        fmt::format("--image-shape {},{},{}: the group {} does not fit into it", data.image.c, data.image.h,
                    data.image.w, larger),
        "leave --image-shape out to take the size that holds every group"},
       {backend.name() != "cpu", fmt::format("--device {}: only the cpu backend has several sizes", backend.name()),
        "use --device cpu"},
       {options.local.any(), "--local-steps: replicas have images of one size", "leave one of them out"},
       {options.job.is_by_servers(), "--kv-store dist_async or servers: their workers have images of one size",
        "leave one of them out"},
       {options.job.is_per_worker(), "--elastic-batch per-worker: the batches of an epoch are those of its start",
        "leave one of them out"},
       {data.balanced_sampler || data.repeated_augment > 1,
        "--balanced-sampler or --repeated-augment: pictures in groups come once in an epoch", "leave one of them out"},
       {options.benchmark || options.test_io, "--benchmark or --test-io: these measure images of one size",
        "leave one of them out"}});
}

std::vector<nn::Shape> group_shapes(const DataOptions& options) {
  std::vector<nn::Shape> shapes;
  for (const data::ScaledSize& group : options.aspect_groups)
    shapes.push_back({options.image.c, group.height, group.width});
  return shapes;
}

bool computes_in_groups(const DataOptions& options, const backend::Backend& backend) {
  return !options.aspect_groups.empty() && backend.name() == "cpu";
}

std::unique_ptr<backend::Executable> compile_evaluation(const backend::Backend& backend, const nn::Graph& graph,
                                                        backend::CompileOptions compile, const DataOptions& options) {
  compile.training = false;
  if (!computes_in_groups(options, backend)) return backend.compile(graph, compile);
  return train::compile_grouped(backend, graph, compile, group_shapes(options));
}

std::string aspect_groups_line(const DataOptions& options) {
  return fmt::format("each step has pictures of one size: {}", fmt::join(size_texts(options.aspect_groups), " or "));
}

}  // namespace dtrain::config
